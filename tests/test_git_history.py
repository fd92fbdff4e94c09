"""What git knows of a board, told in task words; and the set-up of git on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from taskwall.core.rules import Edit
from test_doctor import GIT_ENV, Patient, git, healthy, sparse  # noqa: F401 - a fixture


@pytest.fixture
def here(tmp_path, healthy):  # noqa: F811
    return Patient(tmp_path / "repository", healthy)


def taskwall(here, *words, code=0, **more):
    command = [sys.executable, "-m", "taskwall", *words]
    env = {k: v for k, v in GIT_ENV.items() if not k.startswith("TASKWALL")}
    done = subprocess.run(command, cwd=here.folder, capture_output=True, text=True, env=env, timeout=60, **more)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def work(here):
    """Three commits after the first: one task is claimed, done and noted, one added, one removed, edges change."""
    here.board("alice").claim("t")
    here.edit("u", blockedBy=["w"], description="line\nanother", priority=0)
    here.commit()
    here.board("alice").complete("t", result="all of it")
    here.file("new").write_text(
        '{"id": "new", "subject": "新任务", "status": "pending", "blockedBy": ["t"], "owner": null}'
    )
    here.file("z").unlink()
    here.commit()
    here.edit("x", status="cancelled", notes=[{"at": "2026-01-01T00:00:00Z", "by": "bob", "text": "why\x1b[31m"}])
    here.file("y").write_text("<<<<<<<")
    here.commit()


def test_diff_tells_what_changed_between_two_commits(here):
    work(here)
    assert taskwall(here, "diff", "HEAD~3..HEAD") == (
        "HEAD~3 → HEAD\n"
        "new: 新任务\n  created (blockedBy t; pending)\n"
        "t: task t\n  completed by alice\n  result: all of it\n"
        "u: task u\n  waits for w\n  description: +2 −0 lines\n  priority 2 → 0\n"
        "x: task x\n  cancelled\n  note by bob: why\\x1b[31m\n"
        "y: y.json\n  unreadable: git conflict markers\n"
        "z: task z\n  removed, was pending\n"
    )
    assert "x: task x\n  reopened\n" in taskwall(here, "diff", "HEAD..HEAD~1")
    assert taskwall(here, "diff", "HEAD..HEAD") == "HEAD → HEAD: no task changed\n"


@pytest.mark.slow
def test_diff_without_a_second_commit_looks_at_the_worktree(here):
    assert "no task changed" in taskwall(here, "diff")
    here.board("bob").claim("w")
    (here.tasks / "archive" / "2026-01").mkdir(parents=True)
    here.file("t").rename(here.tasks / "archive" / "2026-01" / "t.json")
    assert taskwall(here, "diff") == "HEAD → the worktree\nw: task w\n  claimed by bob\n"
    data = json.loads(taskwall(here, "diff", "HEAD", "--json"))["data"]
    assert data["tasks"] == [
        {"task": "w", "subject": "task w", "changes": [{"what": "claimed", "text": "claimed by bob"}]}
    ]
    git(here.folder, "worktree", "add", "-q", str(here.folder.parent / "linked"))
    linked = subprocess.run(
        [sys.executable, "-m", "taskwall", "diff"], cwd=here.folder.parent / "linked", capture_output=True, text=True
    )
    assert "w: task w" in linked.stdout, "the board is that of the main worktree"


def test_what_a_sparse_checkout_leaves_out_is_not_removed(here):
    sparse(here)
    here.edit("u", subject="another")
    assert not here.file("t").exists()
    assert taskwall(here, "diff") == "HEAD → the worktree\nu: another\n  subject: task u → another\n"
    assert "removed" not in taskwall(here, "log", "t", "--git")


def test_a_repository_without_a_commit_is_told_so(tmp_path):
    (tmp_path / ".tasks").mkdir()
    git(tmp_path, "init", "-q")
    done = subprocess.run([sys.executable, "-m", "taskwall", "diff"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "nothing is committed in this repository yet")


def test_diff_is_at_most_a_page(here):
    for n in range(60):
        here.file(f"more-{n}").write_text(
            json.dumps({"id": f"more-{n}", "subject": "s", "status": "pending", "blockedBy": []})
        )
    told = taskwall(here, "diff").splitlines()
    assert len(told) == 1 + 2 * 50 + 1 and told[-1] == "… 10 more tasks"


@pytest.mark.parametrize("asked", ["--output=pwned", "-p", "nowhere..HEAD", "HEAD...HEAD", "HEAD..--all", "a\nb"])
def test_what_is_no_commit_is_refused_and_never_an_option(here, asked):
    told = taskwall(here, "diff", *(["--", asked] if asked.startswith("-") else [asked]), code=2)
    assert "Next: " in told
    assert not (here.folder / "pwned").exists()


@pytest.mark.slow
def test_log_tells_what_each_commit_did_to_a_task(here):
    work(here)
    told = taskwall(here, "log", "t", "--git").splitlines()
    assert [line for line in told if line.startswith("  ")] == [
        "  created (pending)",
        "  claimed by alice",
        "  completed by alice",
        "  result: all of it",
    ]
    assert told[0].endswith(" t@t: a state")
    here.edit("t", subject="new words")
    assert taskwall(here, "log", "t", "--git").splitlines()[-2:] == ["not committed:", "  subject: task t → new words"]
    assert "removed, was pending" in taskwall(here, "log", "z", "--git"), "git remembers what is gone"
    last = json.loads(taskwall(here, "log", "t", "--git", "-n", "1", "--json"))["data"]
    assert last["more"] == 2 and [word["what"] for word in last["commits"][0]["changes"]] == ["completed", "result"]


def test_log_follows_a_task_where_its_file_moved_and_was_changed(here):
    git(here.folder, "mv", ".tasks/t.json", ".tasks/-other $(name).json")
    path = here.tasks / "-other $(name).json"
    path.write_text(path.read_text().replace("task t", "quite different words"))
    here.commit()
    told = taskwall(here, "log", "t", "--git")
    assert "  created (pending)\n" in told and "  subject: task t → quite different words\n" in told


def told_by_commit(here, task="t"):
    """By the subject of each commit: the words of it."""
    data = json.loads(taskwall(here, "log", task, "--git", "--json"))["data"]
    return {each["subject"]: [word["what"] for word in each["changes"]] for each in data["commits"]}


def committed(here, subject, change):
    change(here.board("user"))
    git(here.folder, "add", "-A")
    git(here.folder, "commit", "-q", "-m", subject)


def test_log_tells_each_commit_once_wherever_the_task_lay(here):
    committed(here, "claim", lambda board: board.claim("t"))
    committed(here, "done", lambda board: board.complete("t"))
    here.board().archive()
    expected = {"a state": ["created"], "claim": ["claimed"], "done": ["completed"]}
    assert told_by_commit(here) == expected, "what is not committed yet has not moved for git"
    committed(here, "archive", lambda board: None)
    committed(here, "reopen", lambda board: board.reopen("t"))
    expected |= {"archive": ["archived"], "reopen": ["reopened"]}
    assert told_by_commit(here) == expected
    committed(here, "done again", lambda board: (board.claim("t"), board.complete("t"), board.archive()))
    (there,) = here.tasks.glob("archive/*/t.json")
    there.rename(here.file("t"))
    committed(here, "back", lambda board: None)
    here.file("t").unlink()
    committed(here, "away", lambda board: None)
    expected |= {"done again": ["completed", "archived"], "back": ["returned"], "away": ["removed"]}
    assert told_by_commit(here) == expected
    assert list(told_by_commit(here)) == list(expected), "oldest first"


def test_log_tells_the_commits_of_both_sides_of_a_merge_and_what_only_the_merge_did(here):
    git(here.folder, "switch", "-q", "-c", "side")
    committed(here, "theirs", lambda board: board.update("t", Edit(note="theirs")))
    git(here.folder, "switch", "-q", "main")
    committed(here, "ours", lambda board: board.update("t", Edit(priority=0)))
    git(here.folder, "merge", "-q", "side", "-m", "both")
    assert told_by_commit(here) == {"a state": ["created"], "theirs": ["note"], "ours": ["priority"]}
    git(here.folder, "switch", "-q", "-c", "third")
    committed(here, "third", lambda board: board.update("t", Edit(note="third")))
    git(here.folder, "switch", "-q", "main")
    git(here.folder, "merge", "-q", "-s", "ours", "--no-commit", "third")
    here.edit("t", subject="words of the merge")
    committed(here, "a merge by hand", lambda board: None)
    assert list(told_by_commit(here).items())[3:] == [("third", ["note"]), ("a merge by hand", ["subject"])]


@pytest.mark.slow
def test_log_and_diff_say_what_they_need(here, tmp_path):
    assert "in no git worktree" in run_outside(tmp_path, "diff")
    assert "in no git worktree" in run_outside(tmp_path, "log", "t", "--git")
    assert "tells of one task" in taskwall(here, "log", "--git", code=2)
    assert "no task" in taskwall(here, "log", "../../etc/passwd", "--git", code=3)
    assert "unknown" not in taskwall(here, "log", "nowhere-at-all", "--git", code=3)


def run_outside(folder, *words):
    place = folder / "outside"
    place.mkdir(exist_ok=True)
    (place / ".tasks").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "taskwall", *words]
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, env=GIT_ENV | {"GIT_CEILING_DIRECTORIES": "/"}
    )
    assert done.returncode == 2
    return done.stderr


@pytest.mark.slow
def test_looking_changes_nothing_in_git_or_on_the_board(here):
    work(here)
    before = {p: p.read_bytes() for p in here.folder.rglob("*") if p.is_file()}
    for words in (["diff"], ["diff", "HEAD~2..HEAD"], ["log", "t", "--git"], ["doctor"]):
        taskwall(here, *words, code=8 if words == ["doctor"] else 0)
    assert {p: p.read_bytes() for p in here.folder.rglob("*") if p.is_file()} == before


# Set-up


@pytest.mark.slow
def test_set_up_is_shown_first_and_uninstall_leaves_no_trace(tmp_path):
    here = tmp_path
    git(here, "init", "-q", "-b", "main")
    (here / ".tasks").mkdir()
    (here / "CLAUDE.md").write_text("# Ours\n")
    (here / ".gitattributes").write_text("*.png binary")
    before = everything(here)
    place = Place(here)
    shown = taskwall(place, "setup", "git", code=4)
    assert "+/.tasks/**/*.json merge=taskwall" in shown and "Nothing was written" in shown
    assert everything(here) == before
    taskwall(place, "setup", "git", "--check", code=4)
    taskwall(place, "setup", "git", "--yes")
    taskwall(place, "setup", "claude", "--yes")
    taskwall(place, "setup", "git", "--check")
    assert "git is set up by itself" in taskwall(place, "setup", "git", "claude", code=2)
    assert "Nothing was written" in taskwall(place, "uninstall", code=4)
    taskwall(place, "uninstall", "--yes")
    assert everything(here) == before
    taskwall(place, "uninstall")


def test_init_with_git_sets_both_up(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    told = taskwall(Place(tmp_path), "init", "--git", "--yes")
    assert "Made " in told and "Set up for git: .gitattributes, .git/config changed" in told
    assert json.loads(taskwall(Place(tmp_path), "init", "--git", "--json"))["data"]["git"]["files"] == []
    assert "in no git worktree" in run_outside_init(tmp_path)


def run_outside_init(folder):
    command = [sys.executable, "-m", "taskwall", "--board", str(folder.parent / "no-git"), "init", "--git"]
    (folder.parent / "no-git").mkdir(exist_ok=True)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=GIT_ENV).stderr


def test_a_config_that_git_is_writing_is_left_alone(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".tasks").mkdir()
    (tmp_path / ".git" / "config.lock").write_text("")
    assert "config.lock exists" in taskwall(Place(tmp_path), "setup", "git", "--yes", code=4)
    assert not (tmp_path / ".gitattributes").exists()
    assert (tmp_path / ".git" / "config.lock").exists()


def test_a_driver_whose_program_is_gone_is_written_anew_and_one_that_runs_stays(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".tasks").mkdir()
    place = Place(tmp_path)
    git(tmp_path, "config", "merge.taskwall.driver", "/nowhere/python x %A")
    taskwall(place, "setup", "git", "--yes")
    assert git(tmp_path, "config", "merge.taskwall.driver").startswith(sys.executable)
    taskwall(place, "setup", "git", "--remove", "--yes")
    git(tmp_path, "config", "merge.taskwall.driver", "true %A")
    assert "which set-up did not write: it stays" in taskwall(place, "setup", "git", "--yes")
    git(tmp_path, "config", "--remove-section", "merge.taskwall")
    taskwall(place, "setup", "git", "--yes")
    git(tmp_path, "config", "--remove-section", "merge.taskwall")
    assert "take the lines that begin with `# taskwall:`" in taskwall(place, "setup", "git", "--yes", code=2)


def test_a_board_in_a_folder_of_an_odd_name_is_matched_by_its_pattern(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    odd = tmp_path / "a [b] *"
    (odd / ".tasks" / "archive").mkdir(parents=True)
    taskwall(Place(odd), "--board", str(odd), "setup", "git", "--yes")
    for path in ("a [b] */.tasks/t.json", "a [b] */.tasks/archive/t.json"):
        assert git(tmp_path, "check-attr", "merge", "--", path).endswith("merge: taskwall\n")
    assert git(tmp_path, "check-attr", "merge", "--", "a b x/.tasks/t.json").endswith("unspecified\n")


class Place:
    def __init__(self, folder):
        self.folder = folder


def everything(folder):
    found = {p: p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
    return {path: data for path, data in found.items() if ".local" not in path.parts}
