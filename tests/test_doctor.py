"""Doctor: boards broken in every way that is known, one by one and all at once, and what it repairs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Clock, add, ids, open_board
from taskwall.config import find_board
from taskwall.core.model import Settings
from taskwall.core.rules import Edit
from taskwall.interop.doctor import doctor
from taskwall.interop.doctor.findings import CODES
from taskwall.interop.gitconf import set_up_git
from taskwall.stores.files.store import FileStore

pytestmark = pytest.mark.slow

GIT_ENV = os.environ | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
TASKS = ("t", "u", "v", "w", "x", "y", "z")


def git(folder, *args, check=True):
    done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, env=GIT_ENV, timeout=60)
    assert not check or done.returncode == 0, (args, done.stderr)
    return done.stdout


class Patient:
    """A board in a repository, healthy and committed until something is done to it."""

    def __init__(self, folder: Path, like: Patient | None = None):
        self.folder, self.tasks, self.clock = folder, folder / ".tasks", Clock()
        if like:
            shutil.copytree(like.folder, folder, symlinks=True)
            return
        self.tasks.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        for task_id in TASKS:
            add(self.board("user"), task_id)
        self.board("user").update("v", Edit(add_blocked_by=("u",)))
        set_up_git(str(self.tasks), yes=True)
        self.commit()

    def board(self, name="agent"):
        store = FileStore(str(self.tasks), Settings(durability="fast"), self.clock.monotonic)
        return open_board(store, name, clock=self.clock, root=self.folder)

    def commit(self):
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", "a state")

    def file(self, name):
        return self.tasks / f"{name}.json"

    def edit(self, name, **changes):
        self.file(name).write_text(json.dumps(json.loads(self.file(name).read_text()) | changes, indent=2) + "\n")

    def doctor(self, **how):
        return doctor(find_board(str(self.folder), {}, str(self.folder)), **how)

    def codes(self, **how):
        return {finding.code for finding in self.doctor(**how).findings}

    def bytes(self):
        """What every file holds, but for what each command renews."""
        apart = ("lock", "lock.next", "events.jsonl")
        return {p: p.read_bytes() for p in self.tasks.rglob("*") if p.is_file() and p.name not in apart}


@pytest.fixture(scope="session")
def healthy(tmp_path_factory):
    return Patient(tmp_path_factory.mktemp("healthy") / "repository")


@pytest.fixture
def patient(tmp_path, healthy):
    return Patient(tmp_path / "repository", healthy)


# What can be wrong: how it comes about, and the code under which it is found


def conflict(here, names=("t",)):
    """A merge that git stopped at, for this clone has no driver."""
    inert_driver(here)
    git(here.folder, "switch", "-q", "-c", "side")
    for name in names:
        here.edit(name, subject="their words", priority=0)
    here.commit()
    git(here.folder, "switch", "-q", "main")
    for name in names:
        here.edit(name, subject="our words", labels=["ours"])
    here.commit()
    git(here.folder, "merge", "-q", "side", check=False)
    assert "<<<<<<<" in here.file(names[0]).read_text()


def marks_committed(here):
    here.file("t").write_text("<<<<<<< HEAD\n" + here.file("t").read_text() + "=======\n{}\n>>>>>>> side\n")
    here.commit()


def damaged(change):
    def damage(here):
        here.file("t").write_bytes(change(here.file("t").read_bytes()))

    return damage


def twin(same):
    def copy(here):
        text = here.file("t").read_text()
        (here.tasks / "t copy.json").write_text(text if same else text.replace("task t", "another task"))

    return copy


def renamed(here):
    here.file("t").rename(here.tasks / "other.json")


def left_behind(here):
    for path in (here.tasks / ".local" / "part-3.tmp", here.tasks / ".t.json.taskwall-tmp"):
        path.write_text("{")
        os.utime(path, (1, 1))


def settings_damaged(here):
    (here.tasks / "board.toml").write_text("people = 3")


def local_a_link(here):
    git(here.folder, "clean", "-fdxq", ".tasks")
    (here.tasks / ".local").symlink_to("..")


def local_taken_by_git(here):
    git(here.folder, "add", "-f", ".tasks/.local/.gitignore")


def local_not_ignored(here):
    (here.tasks / ".local" / ".gitignore").write_text("")


def newer(here):
    body = "[]"
    head = {"v": 99, "serial": 1, "length": len(body), "sha256": "x"}
    (here.tasks / ".local" / "journal").write_text(f"{json.dumps(head)}\n{body}\n")


def unfinished(here):
    (here.tasks / ".local" / "journal").write_text("half")


def writable_by_all(here):
    here.file("t").chmod(0o666)


def parked_by_recovery(here):
    (here.tasks / ".local" / "conflicts").mkdir()
    (here.tasks / ".local" / "conflicts" / "0123456789ab-t.json").write_text(here.file("t").read_text())


def ledger_damaged(here):
    here.board().claim("t")
    (here.tasks / ".local" / "claims" / "t.json").write_text("{")


def reopened_in_the_archive(here, reopened="t", **changes):
    """What a merge leaves of a task that one side archived and the other reopened."""
    here.edit(reopened, status="pending", **changes)
    there = here.tasks / "archive" / "2026-01" / f"{reopened}.json"
    there.parent.mkdir(parents=True, exist_ok=True)
    here.file(reopened).rename(there)
    return there


def removed_while_held(here):
    here.board().claim("t")
    here.file("t").unlink()


def cycle(here):
    here.edit("u", blockedBy=["v"])


def waits_for_itself(here):
    here.edit("u", blockedBy=["u"])


def blocker_gone(here):
    here.file("u").unlink()


def blocker_cancelled(here):
    here.edit("u", status="cancelled")


def parent_gone(here):
    here.edit("t", parent="nowhere")


def only_in_blocks(here):
    here.file("a").write_text(
        '{"id": "a", "subject": "a", "status": "pending", "blockedBy": [], "blocks": ["t", "no"]}'
    )


def held_by_nobody(here):
    here.edit("t", status="in_progress")


def lapsed(here):
    here.board().claim("t", ttl=15)
    entry = here.tasks / ".local" / "claims" / "t.json"
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"lease": {"until": 0, "boot": "another"}}))


def idle(here):
    from taskwall.stores.files.ledger import boot_id

    here.board().claim("t")
    entry = here.tasks / ".local" / "claims" / "t.json"
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"taken": {"at": -1e6, "boot": boot_id()}}))


def taken_back(here):
    here.board().claim("t")
    git(here.folder, "restore", ".tasks/t.json")


def claimed_twice(here):
    here.board("agent").claim("t")
    here.edit("t", owner="bob")


def done_too_early(here):
    here.edit("v", status="completed")


def begun_too_early(here):
    here.edit("v", status="in_progress", owner="agent")


def unknown_status(here):
    here.edit("t", status="someday")


def foreign_type(here):
    here.edit("t", labels="urgent")


def prose(here):
    here.edit("t", description="Paint it. This depends on task u and must wait.")


def secret(here):
    here.edit("t", description="use ghp_" + "a1B2" * 9)


def no_driver(here):
    set_up_git(str(here.tasks), remove=True, yes=True)
    here.commit()


def inert_driver(here):
    git(here.folder, "config", "--remove-section", "merge.taskwall")


def union(here):
    (here.folder / ".gitattributes").write_text("*.json merge=union\n")


def worktree(here):
    git(here.folder, "worktree", "add", "-q", str(here.folder.parent / "linked"))


def worked_in_a_worktree(here):
    worktree(here)
    (here.folder.parent / "linked" / ".tasks" / ".local").mkdir()


def sparse(here):
    git(here.folder, "update-index", "-q", "--refresh")
    git(here.folder, "sparse-checkout", "set", "--no-cone", "/*", "!/.tasks/t.json")


def whole_board_in_a_file(here):
    (here.tasks / "tasks.json").write_text('{"next_id": 3, "tasks": {}}')


BREAKAGES = {
    "git conflict markers": (conflict, {"conflict", "driver_inert"}),
    "conflict markers, committed": (marks_committed, {"conflict"}),
    "truncated": (damaged(lambda data: data[:50]), {"unreadable"}),
    "empty": (damaged(lambda _: b""), {"unreadable"}),
    "zeros": (damaged(lambda data: b"\0" * len(data)), {"unreadable"}),
    "a byte order mark": (damaged(lambda data: b"\xef\xbb\xbf" + data), {"unreadable"}),
    "not UTF-8": (damaged(lambda data: data.replace(b"task t", b"task \xff")), {"unreadable"}),
    "a key twice": (damaged(lambda data: data.replace(b'"rev"', b'"rev": 1, "rev"')), {"unreadable"}),
    "not JSON": (damaged(lambda _: b"hello"), {"unreadable"}),
    "too large": (damaged(lambda data: data + b" " * 1_100_000), {"unreadable"}),
    "another program's JSON": (damaged(lambda _: b'{"tid": 1, "prompt": ""}'), {"unreadable"}),
    "a board in one file": (whole_board_in_a_file, {"unreadable"}),
    "two files of one id, the same": (twin(same=True), {"twin_ids"}),
    "two files of one id": (twin(same=False), {"twin_ids"}),
    "open in the archive": (reopened_in_the_archive, {"open_in_archive"}),
    "a file of another name": (renamed, {"name_differs"}),
    "temporary files": (left_behind, {"old_tmp"}),
    "settings": (settings_damaged, {"settings_unreadable"}),
    "a link for .local": (local_a_link, {"local_not_folder"}),
    ".local in git": (local_taken_by_git, {"local_in_git"}),
    ".local not ignored": (local_not_ignored, {"local_in_git"}),
    "a newer board": (newer, {"newer_board"}),
    "a change unfinished": (unfinished, {"unfinished_change"}),
    "writable by all": (writable_by_all, {"permissions"}),
    "parked by a recovery": (parked_by_recovery, {"parked"}),
    "a damaged ledger entry": (ledger_damaged, {"ledger_unreadable"}),
    "removed while held": (removed_while_held, {"gone_while_claimed"}),
    "a cycle": (cycle, {"cycle"}),
    "a task that waits for itself": (waits_for_itself, {"cycle"}),
    "a blocker removed": (blocker_gone, {"missing_blocker"}),
    "a blocker cancelled": (blocker_cancelled, {"cancelled_blocker"}),
    "a parent missing": (parent_gone, {"missing_parent"}),
    "an edge in blocks alone": (only_in_blocks, {"one_sided_edge", "missing_dependent"}),
    "in progress without owner": (held_by_nobody, {"no_owner"}),
    "a lapsed lease": (lapsed, {"stale_claim"}),
    "an idle claim": (idle, {"idle_claim"}),
    "a claim taken back by git": (taken_back, {"reverted"}),
    "two machines' claims of one epoch": (claimed_twice, {"displaced_claim"}),
    "finished before its blocker": (done_too_early, {"finished_early"}),
    "begun before its blocker": (begun_too_early, {"started_early"}),
    "an unknown status": (unknown_status, {"oddity"}),
    "a foreign type": (foreign_type, {"oddity"}),
    "a wait in prose": (prose, {"prose_wait"}),
    "a secret": (secret, {"secret"}),
    "no driver": (no_driver, {"driver_absent"}),
    "a driver in .gitattributes alone": (inert_driver, {"driver_inert"}),
    "merge=union": (union, {"driver_union"}),
    "a copy in a worktree": (worktree, {"worktree_copy"}),
    "a sparse checkout": (sparse, {"left_out"}),
    "work in a copy": (worked_in_a_worktree, {"worktree_work"}),
}


def test_a_healthy_board_has_nothing_wrong_and_is_not_touched(patient):
    before = patient.bytes()
    answer = patient.doctor(fix=True, yes=True)
    assert (answer.exit, answer.lines()) == (0, ["Nothing is wrong."])
    assert patient.bytes() == before


@pytest.mark.parametrize("name", BREAKAGES)
def test_each_breakage_is_found_and_looking_changes_nothing(patient, name):
    breakage, expected = BREAKAGES[name]
    breakage(patient)
    before = patient.bytes()
    answer = patient.doctor()
    assert {finding.code for finding in answer.findings} == expected, answer.lines()
    assert all(finding.fix and finding.means for finding in answer.findings)
    unreadable = expected & {"unreadable", "conflict", "twin_ids"}
    notes = all(finding.severity == "note" for finding in answer.findings)
    assert answer.exit == (8 if unreadable else 0 if notes else 4)
    assert patient.bytes() == before
    assert patient.doctor(fix=True).findings == answer.findings, "without a yes nothing is repaired"
    assert patient.bytes() == before


REPAIRED = {
    "git conflict markers", "empty", "zeros", "a byte order mark", "two files of one id, the same", "two files of one id",
    "open in the archive", "a file of another name", "temporary files", ".local not ignored", "writable by all",
}  # fmt: skip
STAYS = {"git conflict markers": {"unmerged", "parked", "driver_inert"}}
"""What a person has still to do after a repair."""


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_safe_is_repaired_once_and_nothing_is_lost(patient, name):
    breakage, expected = BREAKAGES[name]
    breakage(patient)
    before = patient.bytes()
    answer = patient.doctor(fix=True, yes=True)
    left = {finding.code for finding in answer.findings}
    if name in REPAIRED:
        assert left == STAYS.get(name, set()), answer.lines()
        assert answer.repaired
    else:
        assert left == expected and not answer.repaired
        assert patient.bytes() == before
    after = patient.bytes()
    assert set(before.values()) <= {*after.values(), b""}, "every text that was there still is"
    again = patient.doctor(fix=True, yes=True)
    assert not again.repaired and again.findings == answer.findings
    assert patient.bytes() == after


def test_every_code_has_a_breakage_here():
    known = {code for _, codes in BREAKAGES.values() for code in codes}
    assert set(CODES) - known == {"not_examined", "unmerged"}


def test_a_board_broken_in_many_ways_at_once_is_told_whole_and_repaired_as_far_as_is_safe(patient):
    conflict(patient, ("t", "w"))
    damaged_file = patient.file("x")
    damaged_file.write_bytes(b"\xef\xbb\xbf" + damaged_file.read_bytes())
    patient.file("y").write_bytes(b"\0" * 90)
    patient.file("z").write_text('{"id": "z", "subj')
    (patient.tasks / "v copy.json").write_bytes(patient.file("v").read_bytes())
    for breakage in (cycle, left_behind, settings_damaged, local_not_ignored, whole_board_in_a_file, only_in_blocks):
        breakage(patient)
    before = patient.bytes()
    found = patient.codes()
    assert found >= {
        "conflict", "unreadable", "twin_ids", "old_tmp", "settings_unreadable", "local_in_git", "driver_inert",
        "missing_dependent",
    }  # fmt: skip
    answer = patient.doctor(fix=True, yes=True)
    left = {(finding.code, finding.file) for finding in answer.findings if finding.severity == "error"}
    assert left == {
        ("settings_unreadable", ".tasks/board.toml"),
        ("unreadable", ".tasks/z.json"),
        ("unreadable", ".tasks/tasks.json"),
        ("cycle", None),
    }
    assert set(before.values()) <= {*patient.bytes().values(), b""}
    assert json.loads(patient.file("t").read_text())["labels"] == ["ours"]
    assert json.loads(patient.file("t").read_text())["priority"] == 0
    assert json.loads(patient.file("y").read_text())["subject"] == "task y"


def test_what_changes_between_the_plan_and_the_repair_is_left_alone(patient):
    patient.file("t").write_bytes(b"\xef\xbb\xbf" + patient.file("t").read_bytes())

    def meanwhile(_):
        patient.file("t").write_text("somebody's edit")
        return True

    answer = patient.doctor(fix=True, ask=meanwhile)
    assert "not done (it was changed just now)" in answer.lines()[0]
    assert patient.file("t").read_text() == "somebody's edit"


def test_copies_become_tasks_under_ids_that_nobody_has(patient):
    for name in ("t copy", "t+copy", "other"):
        (patient.tasks / f"{name}.json").write_text(patient.file("t").read_text().replace("task t", name))
    patient.file("u").rename(patient.tasks / "t-copy-2.json")
    patient.file("w").write_text(patient.file("t").read_text().replace("task t", "w too"))
    answer = patient.doctor(fix=True, yes=True)
    assert len(answer.repaired) == 5 and answer.findings == ()
    told = {row.task.id: row.task.subject for row in patient.board().list(everything=True).rows}
    assert told["t"] == "task t" and told["u"] == "task u"
    assert sorted(told.values()) == sorted(
        ["task t", "task u", "task v", "task x", "task y", "task z", "t copy", "t+copy", "other", "w too"]
    )


def test_what_lies_open_in_the_archive_comes_back_and_is_parked_where_its_id_is_taken(patient):
    reopened_in_the_archive(patient)
    there = reopened_in_the_archive(patient, "u", priority=0)
    patient.file("u").write_text(there.read_text())
    patient.edit("u", priority=2, subject="the task here")
    assert [finding.task for finding in patient.doctor().findings] == ["t", "u"]
    answer = patient.doctor(fix=True, yes=True)
    assert sorted(answer.repaired) == [
        "brings archive/2026-01/t.json back to the board",
        "parks what archive/2026-01/u.json says otherwise than u.json, and sets it aside",
    ]
    assert patient.file("t").exists() and not list(patient.tasks.glob("archive/*/*.json"))
    (finding,) = answer.findings
    assert finding.code == "parked" and "u: both sides of a merge changed subject, priority" in finding.found
    assert json.loads(patient.file("u").read_text())["subject"] == "the task here"
    assert not patient.doctor(fix=True, yes=True).repaired


def test_git_itself_brings_an_open_task_to_the_archive_and_doctor_brings_it_back(patient):
    board = patient.board("user")
    board.claim("u")
    board.complete("u")
    patient.commit()
    board.reopen("u")
    git(patient.folder, "stash", "-q")
    board.archive()
    patient.commit()
    git(patient.folder, "stash", "pop", "-q")
    assert not patient.file("u").exists()
    assert patient.board().get("v").row.state == "blocked"
    assert patient.codes() == {"open_in_archive"}
    assert patient.doctor(fix=True, yes=True).lines()[-1] == "Nothing is wrong."
    assert ids(patient.board().list(["pending"]).rows) == list(TASKS)


def test_a_person_is_shown_the_plan_and_may_refuse(patient):
    renamed(patient)
    shown = []
    answer = patient.doctor(fix=True, ask=lambda lines: shown.extend(lines))
    assert shown == ["renames other.json to t.json"] and not answer.repaired
    assert (patient.tasks / "other.json").exists()


def test_the_last_good_version_of_a_file_is_named_however_long_ago_it_was(patient):
    good = git(patient.folder, "rev-parse", "HEAD").strip()[:12]
    marks_committed(patient)
    damaged(lambda data: data[:30])(patient)
    patient.commit()
    (finding,) = patient.doctor().findings
    assert f"`git restore --source={good} .tasks/t.json` takes it" in finding.fix
    git(patient.folder, "restore", f"--source={good}", ".tasks/t.json")
    assert patient.doctor().findings == ()


def test_a_conflict_that_is_mended_by_hand_is_not_merged_again(patient):
    conflict(patient)
    mended = patient.file("u").read_text().replace('"u"', '"t"').replace("task u", "mended")
    patient.file("t").write_text(mended)
    answer = patient.doctor(fix=True, yes=True)
    assert {finding.code for finding in answer.findings} == {"unmerged", "driver_inert"}
    assert patient.file("t").read_text() == mended


@pytest.mark.parametrize("driver", [True, False])
def test_two_tasks_made_under_one_id_on_two_branches_are_told_apart(patient, driver):
    if not driver:
        inert_driver(patient)
    git(patient.folder, "switch", "-q", "-c", "side")
    add(patient.board("user"), "docs", subject="the interface")
    patient.board().claim("docs")
    patient.board().complete("docs")
    patient.commit()
    git(patient.folder, "switch", "-q", "main")
    patient.clock.sleep(minutes=1)
    add(patient.board("user"), "docs", subject="the manual")
    add(patient.board("user"), "send", "docs")
    patient.commit()
    git(patient.folder, "merge", "-q", "side", check=False)
    assert patient.board().get("send").row.state == "blocked"
    answer = patient.doctor(fix=True, yes=True)
    assert answer.repaired == ("keeps our task in docs.json and makes theirs one of its own, with the id docs-2",)
    finding = answer.findings[0]
    assert finding.code == "unmerged" and "send waits for docs" in finding.found
    assert finding.fix.endswith("then `git add .tasks/docs.json .tasks/docs-2.json`")
    assert not patient.doctor(fix=True, yes=True).repaired
    told = {row.task.subject: (row.task.id, row.state) for row in patient.board().list(everything=True).rows}
    assert (told["the manual"], told["the interface"]) == (("docs", "ready"), ("docs-2", "completed"))
    assert patient.board().get("send").row.state == "blocked"
    git(patient.folder, "add", ".tasks/docs.json", ".tasks/docs-2.json")
    assert patient.codes() == (set() if driver else {"driver_inert"})


def test_a_repair_of_one_id_for_two_tasks_that_was_cut_short_is_finished(patient):
    git(patient.folder, "switch", "-q", "-c", "side")
    patient.file("docs").write_text(patient.file("t").read_text().replace('"t"', '"docs"').replace("task t", "theirs"))
    patient.commit()
    git(patient.folder, "switch", "-q", "main")
    patient.clock.sleep(minutes=1)
    add(patient.board("user"), "docs", subject="ours")
    patient.commit()
    git(patient.folder, "merge", "-q", "side", check=False)
    marked = patient.file("docs").read_text()
    patient.doctor(fix=True, yes=True)
    patient.file("docs").write_text(marked)
    answer = patient.doctor(fix=True, yes=True)
    assert answer.repaired == ("keeps our task in docs.json",)
    assert json.loads(patient.file("docs").read_text())["subject"] == "ours"
    assert not patient.file("docs-3").exists()


def test_git_is_never_told_anything(patient):
    """Repairs leave index, refs and config as they are."""
    conflict(patient)
    before = {p: p.read_bytes() for p in (patient.folder / ".git").rglob("*") if p.is_file()}
    patient.doctor(fix=True, yes=True)
    assert {p: p.read_bytes() for p in (patient.folder / ".git").rglob("*") if p.is_file()} == before


def test_a_board_outside_git_needs_no_git(tmp_path, monkeypatch):
    (tmp_path / ".tasks").mkdir()
    (tmp_path / ".tasks" / "t.json").write_text('{"id": "t", "subject": "s", "status": "pending", "blockedBy": []}')
    monkeypatch.setenv("PATH", str(tmp_path))
    location = find_board(str(tmp_path), {}, str(tmp_path))
    assert doctor(location).lines() == ["Nothing is wrong."]
    (tmp_path / ".git").mkdir()
    assert doctor(find_board(str(tmp_path), {}, str(tmp_path))).exit == 0


# Waits in prose


@pytest.mark.parametrize(
    "sentence",
    [
        "This needs `schema` to be there.",
        "Start after api-v1 was deployed.",
        "Depends on task schema",
        "once “schema” is merged, go on",
        "Create the API endpoints must be done first.",
        "It reads db/schema.sql, so wait for db/schema.sql.",
        "等走水电完成后再开始",
        "走水电完成后开始",
        "依赖 `schema` 的结果",
        "先走水电，再封墙",
        "需要 api-v1 的输出",
    ],
)
def test_a_wait_written_in_prose_is_found(tmp_path, sentence):
    assert waits(tmp_path, sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "A schema is needed.",
        "Look after the schema drawings.",
        "This does not depend on api-v1.",
        "不依赖 api-v1。",
        "See api-v1 for an example.",
        "After lunch, look at something. And api-v1 is nice.",
        "needs api-v10 and my-api-v1 and api-v1.py",
        "depends on finished",
        "needs own-id",
        "需要耐心",
    ],
)
def test_other_sentences_are_not_taken_for_waits(tmp_path, sentence):
    assert not waits(tmp_path, sentence)


def waits(folder, sentence, **links):
    board = made(folder)
    add(board, "own-id", description=sentence, **links)
    found = doctor(find_board(str(folder), {}, str(folder))).findings
    return [finding for finding in found if finding.code == "prose_wait"]


def made(folder):
    (folder / ".tasks").mkdir(exist_ok=True)
    board = open_board(FileStore(str(folder / ".tasks"), Settings(durability="fast")))
    add(board, "schema", subject="set up the schema", products=("db/schema.sql",))
    add(board, "api-v1", "schema", subject="create the API endpoints")
    add(board, "wires", subject="走水电")
    add(board, "finished", subject="finished")
    board.claim("finished")
    board.complete("finished")
    return board


def test_a_wait_that_an_edge_covers_in_either_direction_is_none(tmp_path):
    for direct in ({"blocked_by": ("api-v1",)}, {"blocked_by": ("schema",)}):
        folder = tmp_path / direct["blocked_by"][0]
        folder.mkdir()
        board = made(folder)
        add(board, "own-id", description="needs `schema`", **direct)
        assert doctor(find_board(str(folder), {}, str(folder))).findings == ()
    folder = tmp_path / "other"
    folder.mkdir()
    add(made(folder), "own-id", description="needs `schema`")
    open_board(FileStore(str(folder / ".tasks"), Settings(durability="fast"))).update(
        "schema", Edit(add_blocked_by=("own-id",))
    )
    assert doctor(find_board(str(folder), {}, str(folder))).findings == ()


def test_edges_at_any_distance_cover_a_wait_on_a_large_board_too_and_in_rings(tmp_path):
    tasks, size = tmp_path / ".tasks", 1500
    tasks.mkdir()
    for n in range(size):
        other = (n * 7 + 1) % size
        blockers = [f"t-{n - 1}"] if n else ["ring-2"]
        written(tasks, f"t-{n}", blockers, f"needs t-{other}, and then t-{(n * 13 + 2) % size}")
    for n in range(3):
        written(tasks, f"ring-{n}", [f"ring-{(n + 1) % 3}"], "needs t-5" if n else "needs ring-2")
    began = time.process_time()
    found = doctor(find_board(str(tmp_path), {}, str(tmp_path))).findings
    assert [finding.code for finding in found] == ["cycle"]
    assert time.process_time() - began < 10  # walking from every task to every other took minutes
    (tasks / "t-700.json").unlink()
    found = doctor(find_board(str(tmp_path), {}, str(tmp_path))).findings
    assert {finding.code for finding in found} == {"cycle", "missing_blocker", "prose_wait"}


def written(tasks, task_id, blockers, description):
    task = {"id": task_id, "subject": f"the {task_id}", "description": description, "status": "pending", "owner": None}
    (tasks / f"{task_id}.json").write_text(json.dumps(task | {"blockedBy": blockers, "rev": 1}))


def test_no_text_makes_the_search_for_secrets_slow(patient):
    patient.edit("t", description="eyJ-" * 75_000)
    began = time.process_time()
    assert patient.codes() == set()
    assert time.process_time() - began < 5  # from every `eyJ` on it looked through all that follows
    patient.edit("t", description=f"Bearer eyJ{'a' * 20}.eyJ{'b' * 20}.{'c-' * 10}")
    assert patient.codes() == {"secret"}


# On the command line


def taskwall(folder, *words, **more):
    command = [sys.executable, "-m", "taskwall", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=GIT_ENV, timeout=60, **more)


@pytest.mark.slow
def test_the_command_says_what_it_means_and_what_helps_and_repairs_with_a_yes(patient):
    patient.file("t").write_bytes(b"\xef\xbb\xbf" + patient.file("t").read_bytes())
    secret_text = "ghp_" + "a1B2" * 9
    patient.edit("u", description=f"use {secret_text}\x1b[31m")
    seen = taskwall(patient.folder, "doctor")
    assert seen.returncode == 8
    assert "error unreadable: the file is no readable task" in seen.stdout
    assert "fix: `taskwall doctor --fix` takes the byte order mark out of t.json" in seen.stdout
    assert secret_text not in seen.stdout and "ghp_…" in seen.stdout and "\x1b" not in seen.stdout
    plan = taskwall(patient.folder, "doctor", "--fix").stdout.partition("Nothing was written. --fix --yes would:\n")[2]
    assert plan == "- takes the byte order mark out of t.json\n"
    data = json.loads(taskwall(patient.folder, "doctor", "--fix", "--yes", "--json").stdout)["data"]
    assert data["repaired"] == ["takes the byte order mark out of t.json"]
    assert [finding["code"] for finding in data["findings"]] == ["secret"]
    assert taskwall(patient.folder, "doctor").returncode == 4
    assert taskwall(patient.folder, "show", "t").returncode == 0


def test_what_a_killed_driver_left_is_merged_and_their_words_are_kept(patient):
    git(patient.folder, "config", "merge.taskwall.driver", "kill -9 $$")
    git(patient.folder, "switch", "-q", "-c", "side")
    patient.edit("t", description="their words")
    patient.commit()
    git(patient.folder, "switch", "-q", "main")
    patient.edit("t", description="our words")
    patient.commit()
    git(patient.folder, "merge", "-q", "side", check=False)
    assert "our words" in patient.file("t").read_text(), "git left our side, without a mark in it"
    answer = patient.doctor(fix=True, yes=True)
    assert {finding.code for finding in answer.findings} == {"unmerged", "parked"}
    [kept] = (patient.tasks / ".local" / "conflicts").iterdir()
    assert "their words" in kept.read_text()
    assert not patient.doctor(fix=True, yes=True).repaired


def test_a_name_in_a_file_never_becomes_a_command(patient):
    patient.edit("t", blockedBy=["x; touch pwned"])
    (patient.tasks / "-a $(b).json").write_text("{")
    told = "\n".join(patient.doctor().lines())
    assert "`taskwall unblock t 'x; touch pwned'`" in told
    assert "-a $(b).json: Expecting" in told


def test_what_is_no_file_is_told_and_not_followed(patient):
    (patient.tasks / "folder.json").mkdir()
    (patient.tasks / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(patient.tasks / "pipe.json")
    answer = patient.doctor(fix=True, yes=True)
    assert [finding.fix for finding in answer.findings] == ["move it out of the folder"] * 3
    assert "a symbolic link" in answer.findings[1].found


def test_there_must_be_a_board(tmp_path):
    refused = taskwall(tmp_path, "doctor")
    assert refused.returncode == 2 and "there is no board" in refused.stderr
