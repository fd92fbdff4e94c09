"""`taskwall work --worktree`: a branch for each claim, nothing of it ever lost, and merges that never leave half of one."""

from __future__ import annotations

import subprocess
from io import StringIO

import pytest

from taskwall.config import find_board
from taskwall.worker.display import Display
from taskwall.worker.loop import Orders, Worker
from taskwall.worker.worktree import Forest, branch_stem
from worker_process import DONE, Site, site, until  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

COMMIT = 'echo "$TASKWALL_TASK" > "$TASKWALL_TASK.txt"\ngit add .\ngit commit -qm "work on $TASKWALL_TASK"\n'


def git(site, *words, status=0):
    done = subprocess.run(["git", "-C", site.folder, *words], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repo(site, monkeypatch):
    """The site as a repository with one commit; its board is committed, too."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.com")
        site.env |= {f"GIT_{name}_NAME": "A", f"GIT_{name}_EMAIL": "a@example.com"}
    git(site, "init", "-q", "-b", "main")
    (site.folder / "readme.txt").write_text("start\n")
    site.add("a")
    git(site, "add", ".")
    git(site, "commit", "-qm", "start")
    return site


def worktrees(site):
    return sorted(path.name for path in (site.board_path / ".local" / "worktrees").iterdir())


def branches(site):
    return git(site, "for-each-ref", "--format=%(refname:short)", "refs/heads/task").split()


def state_of_main(site):
    """What a merge must not touch: HEAD, and every change that is not in it."""
    return git(site, "rev-parse", "HEAD"), git(site, "status", "--porcelain", "--", ".", ":(exclude).tasks")


def test_a_claim_has_a_worktree_and_a_branch_and_the_board_stays_that_of_the_main_worktree(repo):
    main = state_of_main(repo)
    said = repo.work("--worktree", agent=f"pwd; git branch --show-current\n{COMMIT}{DONE}")
    assert repo.log().splitlines()[:2] == [str(repo.board_path / ".local" / "worktrees" / "a-e1"), "task/a-e1"]
    assert repo.task("a")["status"] == "completed" and state_of_main(repo) == main
    commit = git(repo, "rev-parse", "--short", "task/a-e1")
    told = f"branch task/a-e1: 1 commit ({commit}); unmerged commits in .tasks/.local/worktrees/a-e1"
    assert repo.task("a")["notes"][-1]["text"] == told and f"work: {told}" in said
    assert (worktrees(repo), branches(repo)) == (["a-e1"], ["task/a-e1"])


def test_the_prompt_says_where_the_agent_is_and_names_branches_of_earlier_attempts(repo):
    repo.work("--worktree", agent=f"cat\n{COMMIT}[ -e {repo.folder}/twice ] && exec {DONE}touch {repo.folder}/twice\n")
    assert "on the branch task/a-e1. Commit your work" in repo.log()
    assert "on the branch task/a-e2. Commit" in repo.log() and "Earlier attempts left work on task/a-e1." in repo.log()
    assert "without completing it, after 0 s; its last words: " in repo.task("a")["notes"][0]["text"]
    assert "; branch task/a-e1: 1 commit (" in repo.task("a")["notes"][0]["text"]


def test_products_are_looked_for_in_the_worktree(repo):
    repo.run("edit", "a", "--product", "a.txt")
    repo.work("--worktree", agent=COMMIT + DONE)
    assert repo.task("a")["status"] == "completed" and not (repo.folder / "a.txt").exists()


def test_a_worktree_without_any_work_goes_and_its_branch_with_it(repo):
    said = repo.work("--worktree")
    assert (worktrees(repo), branches(repo)) == ([], [])
    assert "notes" not in repo.task("a") and "work:" not in said


@pytest.mark.parametrize(
    "leave",
    [
        "echo x > new.txt",
        "echo x >> readme.txt",
        "echo x > new.txt; git add new.txt",
        "echo '*.o' > .git-x; touch kept.o",
    ],
)
def test_what_is_not_committed_stays_even_where_git_ignores_it(repo, leave):
    exclude = repo.folder / ".git" / "info" / "exclude"
    exclude.write_text("*.o\n")
    repo.work("--worktree", agent=f"{leave}\n{DONE}")
    assert worktrees(repo) == ["a-e1"]
    assert "branch task/a-e1: 0 commits; uncommitted or ignored files in " in repo.task("a")["notes"][-1]["text"]


def test_commits_that_are_on_no_branch_stay(repo):
    repo.work("--worktree", agent=f"git checkout -q --detach\n{COMMIT}{DONE}")
    assert worktrees(repo) == ["a-e1"] and "unmerged commits in " in repo.task("a")["notes"][-1]["text"]


def test_the_work_of_a_superseded_claim_stays_on_its_branch_and_the_task_is_left_alone(repo):
    worker = repo.start("--worktree", agent=f"{COMMIT}echo more > more.txt\ntouch ready\nexec sleep 600\n")
    until((repo.board_path / ".local" / "worktrees" / "a-e1" / "ready").exists, of=worker)
    repo.board("thief").claim("a", steal=True, reason="mine")
    repo.board("thief").complete("a")
    out, _ = worker.communicate(timeout=20)
    assert "a superseded" in out and "branch task/a-e1: 1 commit" in out
    assert worktrees(repo) == ["a-e1"] and branches(repo) == ["task/a-e1"]
    assert "notes" not in repo.task("a")


def test_a_branch_that_is_there_already_is_never_used_again(repo):
    git(repo, "branch", "task/a-e1")
    before = git(repo, "rev-parse", "task/a-e1")
    repo.work("--worktree", agent=COMMIT + DONE)
    assert branches(repo) == ["task/a-e1", "task/a-e1.2"] and git(repo, "rev-parse", "task/a-e1") == before


def test_branches_begin_where_base_says(repo):
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    repo.work("--worktree", "--base", "HEAD~1", agent=COMMIT + DONE)
    assert git(repo, "rev-parse", "task/a-e1~1") == git(repo, "rev-parse", "main~1")
    git(repo, "branch", "aside", git(repo, "commit-tree", "-m", "aside", "HEAD^{tree}"))
    repo.add("b")
    repo.work("--worktree", "--base", "aside")
    assert branches(repo) == ["task/a-e1"]  # that of b had no commit of its own
    assert "no commit '--help' to begin at" in repo.work("--worktree", "--base=--help", status=2)


# Merging


def test_merge_brings_completed_work_into_the_main_worktree_before_dependents_begin(repo):
    repo.add("b", "-b", "a")
    slow = f"[ $TASKWALL_TASK = b ] && ls a.txt\n{COMMIT}{DONE}sleep 1\n"
    repo.work("--worktree", "--merge", "--agents", 2, agent=slow)
    assert (repo.folder / "a.txt").read_text() == "a\n" and (repo.folder / "b.txt").exists()
    assert "a.txt\n" in repo.log() and worktrees(repo) == []
    assert repo.task("a")["notes"][-1]["text"].endswith(", merged into main")
    assert git(repo, "log", "-2", "--first-parent", "--format=%s").split("\n") == [
        "Merge task/b-e1: task b",
        "Merge task/a-e1: task a",
    ]


def test_of_several_workers_none_begins_before_what_a_task_waits_for_is_merged(repo):
    repo.add("b", "-b", "a")
    lib = f"{COMMIT}{DONE}touch {repo.folder}/ended\nsleep 2\n"
    first = repo.start("--as", "A", "--worktree", "--merge", agent=lib)
    until((repo.folder / "ended").exists, of=first)
    repo.work("--as", "B", "--worktree", "--merge", agent=f"ls\n{DONE}")
    first.communicate(timeout=20)
    assert repo.task("b")["status"] == "completed" and "a.txt\n" in repo.log()
    assert [note["text"].count("merged into main") for note in repo.task("a")["notes"]] == [1]


@pytest.mark.parametrize("dependents", [0, 1])
def test_what_a_worker_did_not_merge_before_it_was_killed_the_next_one_merges(repo, dependents):
    if dependents:
        repo.add("b", "-b", "a")
    first = repo.start("--worktree", "--merge", agent=f"{COMMIT}{DONE}touch {repo.folder}/ended\nsleep 600\n")
    until((repo.folder / "ended").exists, of=first)
    first.kill()
    first.wait()
    repo.work("--worktree", "--merge", agent=f"ls\n{DONE}")
    assert (repo.folder / "a.txt").exists() and ("a.txt\n" in repo.log()) == bool(dependents)
    assert repo.task("a")["notes"][-1]["text"].endswith(", merged into main") and worktrees(repo) == []
    repo.work("--worktree", "--merge")
    assert len(repo.task("a")["notes"]) == 1


def test_a_branch_that_an_earlier_board_left_is_neither_merged_nor_waited_for(repo):
    git(repo, "branch", "task/a-e1", git(repo, "commit-tree", "-m", "of old", "-p", "HEAD", "HEAD^{tree}"))
    repo.add("b", "-b", "a")
    repo.work("--worktree", "--merge", agent=f"ls\n{COMMIT}{DONE}")
    repo.add("c", "-b", "b")
    repo.work("--worktree", "--merge", agent=f"ls\n{COMMIT}{DONE}")
    assert (repo.folder / "b.txt").exists() and (repo.folder / "c.txt").exists()
    assert git(repo, "branch", "--no-merged", "HEAD", "--format=%(refname:short)").split() == ["task/a-e1"]
    assert [note["text"].split(":")[0] for note in repo.task("a")["notes"]] == ["branch task/a-e1.2"]


def test_what_the_worker_itself_could_not_note_is_merged_later_and_not_waited_for(repo):
    repo.add("b", "-b", "a")
    repo.add("c")
    away = f"mv {repo.board_path}/a.json {repo.folder}/a.away"
    back = f"mv {repo.folder}/a.away {repo.board_path}/a.json"
    agent = f"ls\n[ $TASKWALL_TASK = c ] && {back}\n{COMMIT}{DONE}[ $TASKWALL_TASK = a ] && {away}\n"
    said = repo.work("--worktree", "--merge", agent=agent)
    assert "] a gone after " in said and "a was left unmerged: branch task/a-e1: 1 commit (" in said
    assert repo.task("b")["status"] == "completed" and "a.txt\n" in repo.log()
    assert repo.task("a")["notes"][-1]["text"].endswith(", merged into main")


def test_what_somebody_else_works_on_is_left_out_with_all_that_waits_for_it(repo):
    repo.add("b", "-b", "a")
    location, board = find_board(None, {}, str(repo.folder)), repo.board()
    board.claim("a")
    worker = Worker(location, board, Orders(("true",)), Display(StringIO()), forest=Forest(location, merge=True))
    assert worker._unmerged(board.store.read()) == {"b"}, "it may be completed before the worker claims another"


def test_work_that_has_nothing_in_common_is_named_and_not_tried_for_ever(repo):
    git(repo, "branch", "aside", git(repo, "commit-tree", "-m", "aside", "HEAD^{tree}"))
    repo.add("b", "-b", "a")
    first = ("--worktree", "--merge", "--base", "aside")
    worker = repo.start(*first, agent=f"{COMMIT}{DONE}touch {repo.folder}/ended\nsleep 600\n")
    until((repo.folder / "ended").exists, of=worker)
    worker.kill()
    worker.wait()
    repo.work("--worktree", "--merge")
    assert [note["text"].split(":")[0] for note in repo.task("a")["notes"]] == ["branch task/a-e1, not merged"]


def test_a_worktree_that_cannot_go_or_is_gone_hides_no_merge(repo, tmp_path):
    git(repo, "clone", "-q", "--bare", repo.folder, tmp_path / "library")
    own = ("-c", "protocol.file.allow=always")
    git(repo, *own, "submodule", "add", "-q", tmp_path / "library", "lib")
    git(repo, "commit", "-qm", "lib")
    unfold = "git -c protocol.file.allow=always submodule update -q --init\n"
    repo.work("--worktree", "--merge", agent=unfold + COMMIT + DONE)
    told = repo.task("a")["notes"][-1]["text"]
    assert ", merged into main; submodules in .tasks/.local/worktrees/a-e1" in told and "fatal" not in told
    repo.add("b")
    repo.work("--worktree", "--merge", agent=f'{COMMIT}{DONE}cd /\nrm -rf "$OLDPWD"\n')
    assert repo.task("b")["notes"][-1]["text"].endswith(", merged into main")


def test_what_an_agent_has_removed_or_renamed_is_told_as_it_is(repo):
    repo.work("--worktree", "--merge", agent=f"{COMMIT}git branch -m mine\n{DONE}")
    told = "branch task/a-e1, worktree .tasks/.local/worktrees/a-e1 (there is no such branch any more)"
    assert repo.task("a")["notes"][-1]["text"] == told and worktrees(repo) == ["a-e1"]
    repo.add("b")
    repo.work("--worktree", "--merge", agent=f'cd {repo.folder}\ngit worktree remove "$OLDPWD"\n{DONE}')
    assert "notes" not in repo.task("b") and branches(repo) == []


def test_a_board_in_a_folder_of_the_repository_has_its_work_looked_for_in_that_folder_of_the_worktree(repo, tmp_path):
    inner = Site(repo.folder / "pkg")
    inner.env = repo.env | {"XDG_STATE_HOME": str(tmp_path / "state"), "TASKWALL_BOARD": str(inner.board_path)}
    (inner.folder / "t.txt").write_text("OK\n")
    inner.add("good", "--product", "good.txt", "--check", "pwd")
    inner.add("bad", "--check", "grep OK t.txt", "-b", "good")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "pkg")
    inner.run("trust", "--yes")
    spoil = f'[ "$TASKWALL_TASK" = bad ] && echo broken > t.txt\n{COMMIT}{DONE}'
    inner.work("--worktree", "--merge", agent=spoil, status=7)
    [check] = inner.task("good")["evidence"]["checks"]
    assert check["output"] == str(inner.board_path / ".local" / "worktrees" / "good-e1" / "pkg")
    assert "merged into main" in inner.task("good")["notes"][-1]["text"] and (inner.folder / "good.txt").exists()
    assert inner.task("bad")["status"] == "pending" and (inner.folder / "t.txt").read_text() == "OK\n"


def test_what_is_broken_in_the_worktree_is_not_proved_from_a_repository_in_it(repo, tmp_path):
    repo.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    repo.set("max_attempts = 1")
    repo.run("edit", "a", "--check", "grep start readme.txt")
    repo.run("trust", "a", "--yes")
    spoil = "echo broken > readme.txt\ngit init -q inner\ncd inner\n"
    repo.work("--worktree", "--merge", agent=spoil + DONE, status=7)
    assert repo.task("a")["status"] == "pending" and "a is not done: grep start readme.txt" in repo.log()


def test_what_was_not_completed_is_not_merged(repo):
    repo.set("max_attempts = 1")
    main = git(repo, "rev-parse", "HEAD")
    repo.work("--worktree", "--merge", agent=COMMIT, status=7)
    assert git(repo, "rev-parse", "HEAD") == main and worktrees(repo) == ["a-e1"]


def test_changes_in_the_main_worktree_are_not_merged_over(repo):
    (repo.folder / "readme.txt").write_text("somebody works here\n")
    main = state_of_main(repo)
    repo.work("--worktree", "--merge", agent=COMMIT + DONE)
    assert state_of_main(repo) == main and worktrees(repo) == ["a-e1"]
    assert ", not merged: the main worktree has uncommitted changes;" in repo.task("a")["notes"][-1]["text"]


def test_conflicts_leave_both_sides_as_they_are(repo):
    agent = f"echo ours > readme.txt\ngit commit -qam ours\ncd {repo.folder}\necho theirs > readme.txt\n"
    agent += f"git commit -qm theirs readme.txt\n{DONE}"
    repo.work("--worktree", "--merge", agent=agent)
    assert (repo.folder / "readme.txt").read_text() == "theirs\n" and state_of_main(repo)[1] == ""
    assert ", not merged: there are conflicts;" in repo.task("a")["notes"][-1]["text"]
    assert git(repo, "show", "task/a-e1:readme.txt") == "ours"


@pytest.mark.parametrize("way", ["a file in the way", "a hook that refuses"])
def test_a_merge_that_fails_half_way_is_taken_back(repo, way):
    if way == "a file in the way":
        (repo.folder / "a.txt").write_text("precious\n")
    else:
        hook = repo.folder / ".git" / "hooks" / "pre-merge-commit"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    main = state_of_main(repo)
    repo.work("--worktree", "--merge", agent=COMMIT + DONE)
    assert state_of_main(repo) == main and not (repo.folder / ".git" / "MERGE_HEAD").exists()
    assert ", not merged: git merge: " in repo.task("a")["notes"][-1]["text"]


def test_a_merge_that_somebody_is_at_in_the_main_worktree_is_not_taken_back(repo):
    git(repo, "branch", "theirs", git(repo, "commit-tree", "-m", "theirs", "-p", "HEAD", "HEAD^{tree}"))
    git(repo, "commit", "-q", "--allow-empty", "-m", "ours")
    git(repo, "merge", "-q", "--no-commit", "--no-ff", "theirs")
    repo.work("--worktree", "--merge", agent=COMMIT + DONE)
    assert (repo.folder / ".git" / "MERGE_HEAD").exists()
    assert ", not merged: somebody merges in the main worktree" in repo.task("a")["notes"][-1]["text"]


def test_a_branch_that_changes_the_board_is_not_merged(repo):
    repo.work("--worktree", "--merge", agent=f"echo >> .tasks/a.json\n{COMMIT}{DONE}")
    assert ", not merged: it changes files of the board;" in repo.task("a")["notes"][-1]["text"]


def test_what_a_worker_that_was_killed_left_is_named_by_the_next(repo):
    worker = repo.start("--worktree", agent="touch ready\nexec sleep 600\n")
    until((repo.board_path / ".local" / "worktrees" / "a-e1" / "ready").exists, of=worker)
    worker.kill()
    worker.wait(10)
    assert "worktrees: a-e1\n" in repo.work("--worktree")
    assert worktrees(repo) == ["a-e1"] and (repo.board_path / ".local" / "worktrees" / "a-e1" / "ready").exists()


def test_a_detached_main_worktree_is_not_merged_into(repo):
    git(repo, "checkout", "-q", "--detach")
    repo.work("--worktree", "--merge", agent=COMMIT + DONE)
    assert "not merged: the main worktree is on no branch" in repo.task("a")["notes"][-1]["text"]


def test_without_worktree_no_git_command_is_run(repo, tmp_path):
    spy = tmp_path / "bin"
    spy.mkdir()
    (spy / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (spy / "git").chmod(0o755)
    repo.work(env={"PATH": f"{spy}:{repo.env['PATH']}"})
    assert not (tmp_path / "ran").exists()


def test_where_no_worktree_can_be_made_the_claim_is_given_back(repo):
    git(repo, "branch", "task")  # git has no branch task/… beside it
    worker = repo.start("--worktree")
    assert "task" in repo.hear(worker, "a was given back: no agent could be started")
    worker.terminate()
    worker.wait(20)
    assert repo.task("a")["status"] == "pending" and "attempts" not in repo.task("a")


@pytest.mark.parametrize("task_id", ["走水电", ".a", "a..b", "a.lock", "-f", "x" * 64, "a...b."])
def test_any_id_makes_a_branch_name_that_git_takes(task_id):
    name = f"refs/heads/task/{branch_stem(task_id)}-e1"
    assert subprocess.run(["git", "check-ref-format", name]).returncode == 0
