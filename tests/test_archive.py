"""Finished tasks out of the way: found by id, still gating, and back when they change."""

import json
import os
import subprocess
import sys

import pytest
from conftest import add, ids, open_board, open_store

from taskwall.core.errors import Invalid, Refused
from taskwall.core.model import Settings
from taskwall.core.rules import Edit
from taskwall.stores.files.whole import held_whole


def finished(board, id, *blockers):
    add(board, id, *blockers)
    board.claim(id)
    return board.complete(id)


def archived(tmp_path):
    return sorted(str(path.relative_to(tmp_path / ".tasks" / "archive")) for path in tmp_path.rglob("archive/*/*.json"))


def test_finished_tasks_go_and_open_ones_stay(board_for, store):
    board = board_for("a")
    finished(board, "one")
    finished(board, "two", "one")
    add(board, "three", "two")
    answer = board.archive()
    assert (answer.ids, answer.left) == (("one", "two"), ())
    assert ids(board.list(everything=True).rows) == ["three"]
    assert board.next().rows[0].task.id == "three"
    assert board.archive().ids == ()


def test_an_archived_blocker_opens_the_gate_and_is_shown_by_its_id(board_for):
    board = board_for("a")
    finished(board, "one")
    board.archive()
    add(board, "two", "one")
    assert board.get("one").row.state == "completed"
    assert ids(board.get("two").blockers) == ["one"]
    assert board.claim("two").row.task.status == "in_progress"
    with pytest.raises(Invalid, match="one exists already"):
        add(board, "one")


def test_an_archived_task_is_found_by_a_part_of_its_id_unless_a_task_of_the_board_is_meant(board_for, store):
    board = board_for("a")
    finished(board, "schema-1")
    finished(board, "schema-2")
    board.archive()
    add(board, "schema-3")
    assert board.get("schema-3").row.task.id == board.get("sche").row.task.id
    assert (board.get("ma-1").row.task.id, board.reopen("ma-2").row.task.id) == ("schema-1", "schema-2")
    assert list(store.read().archived_ids()) == ["schema-1"]
    with pytest.raises(Refused, match="no task 'ma-7'"):
        board.get("ma-7")


def test_a_part_of_an_id_may_be_written_in_other_letters_in_the_archive_as_on_the_board(board_for):
    board = board_for("a")
    finished(board, "SCHEMA-1")
    add(board, "SCHEMA-2")
    for _ in range(2):
        assert (board.get("schema-1").row.task.id, board.get("ma-2").row.task.id) == ("SCHEMA-1", "SCHEMA-2")
        board.archive()


def test_two_tasks_of_one_id_are_not_both_put_away(tmp_path, clock):
    board = open_board(open_store("files", tmp_path, clock), "a", clock=clock)
    finished(board, "one")
    board.archive()
    (first,) = (tmp_path / ".tasks").rglob("archive/*/one.json")
    other = first.parent.with_name("2020-01")
    other.mkdir()
    first.rename(other / first.name)
    (tmp_path / ".tasks" / "one.json").write_text((other / first.name).read_text().replace("task one", "another"))
    assert board.archive().left == ("one",)
    (tmp_path / ".tasks" / "one.json").rename(first)
    assert list(board.store.read().archived_ids()) == ["one"]


def test_what_lies_in_the_archive_and_in_the_folder_is_no_archived_task(tmp_path, clock):
    board = open_board(open_store("files", tmp_path, clock), "a", clock=clock)
    finished(board, "one")
    board.archive()
    (copy,) = tmp_path.rglob("archive/*/one.json")
    (tmp_path / ".tasks" / "one.json").write_text(copy.read_text())
    assert list(board.store.read().archived_ids()) == []


def test_only_what_was_finished_long_enough_ago_goes(board_for, clock):
    board = board_for("a")
    finished(board, "old")
    clock.sleep(minutes=60 * 24 * 3)
    finished(board, "new")
    assert board.archive(2).ids == ("old",)


def test_a_task_that_is_reopened_comes_back_and_gates_again(board_for):
    board = board_for("a")
    finished(board, "one")
    add(board, "two", "one")
    board.archive()
    assert ids(board.reopen("one").also) == []
    assert ids(board.list().rows) == ["one", "two"]
    with pytest.raises(Refused, match="one"):
        board.claim("two")
    board.claim("one")
    assert ids(board.complete("one").unblocked) == ["two"]


def test_whatever_changes_an_archived_task_brings_it_back_whole(tmp_path, clock):
    for kind in ("files", "indexed"):
        folder = tmp_path / kind
        folder.mkdir()
        board = open_board(open_store(kind, folder, clock), "a", clock=clock, root=folder)
        finished(board, "one")
        path = folder / ".tasks" / "one.json"
        path.write_text(path.read_text().replace('"rev"', '"of": "another program",\n  "rev"'))
        board.archive()
        assert [name[8:] for name in archived(folder)] == ["one.json"] and not path.exists()
        board.update("one", Edit(note="it held"))
        assert archived(folder) == []
        assert json.loads(path.read_text())["of"] == "another program"


def test_a_file_that_is_not_called_like_its_task_stays(tmp_path, clock):
    board = open_board(open_store("files", tmp_path, clock), "a", clock=clock)
    (tmp_path / ".tasks" / "task_7.json").write_text(
        json.dumps({"id": 7, "subject": "numbered", "status": "completed", "blockedBy": []})
    )
    answer = board.archive()
    assert (answer.ids, answer.left) == ((), ("7",))
    assert "7" in answer.lines()[1]


def test_done_archives_by_itself_where_the_settings_say_so(tmp_path, clock):
    board = open_board(open_store("indexed", tmp_path, clock, Settings(archive_days=1)), "a", clock=clock)
    finished(board, "one")
    os.utime(tmp_path / ".tasks" / ".local" / "archived", (0, 0))
    clock.sleep(minutes=60 * 48)
    finished(board, "two")
    assert [name[8:] for name in archived(tmp_path)] == ["one.json"]
    clock.sleep(minutes=60 * 48)
    finished(board, "three")
    assert [name[8:] for name in archived(tmp_path)] == ["one.json"], "once an hour is enough"


def test_an_archive_killed_between_two_files_has_each_task_in_one_place(tmp_path, clock):
    board = open_board(open_store("files", tmp_path, clock), "a", clock=clock)
    for n in range(6):
        finished(board, f"t{n}")
    script = (
        "import os, sys\n"
        "from taskwall.stores.files.disk import Disk\n"
        "from taskwall.stores.files.store import FileStore\n"
        "class Dies(Disk):\n"
        "    left = 3\n"
        "    def rename(self, old, new):\n"
        "        Dies.left -= 1\n"
        "        if not Dies.left: os.kill(os.getpid(), 9)\n"
        "        super().rename(old, new)\n"
        "FileStore(sys.argv[1], disk=Dies()).archive([f't{n}' for n in range(6)])\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path / ".tasks")])
    assert run.returncode == -9
    assert len(archived(tmp_path)) == 2
    assert [board.get(f"t{n}").row.state for n in range(6)] == ["completed"] * 6
    assert len(board.archive().ids) == 4


@pytest.mark.parametrize("where", ["archive", "archive/2026-09"])
def test_the_archive_does_not_lead_out_of_the_board(tmp_path, clock, where):
    board = open_board(open_store("files", tmp_path, clock), "a", clock=clock)
    finished(board, "one")
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / ".tasks" / where
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(Refused, match="not a folder of its own"):
        board.archive()
    assert list(outside.iterdir()) == [] and board.get("one").row.state == "completed"


def reopened_there(folder, kind, clock, **fields):
    """A board on which a merge left `one` open in the archive, and `two` waits for it."""
    folder.mkdir()
    board = open_board(open_store(kind, folder, clock), "a", clock=clock, root=folder)
    finished(board, "one")
    add(board, "two", "one")
    board.archive()
    (path,) = folder.rglob("archive/*/one.json")
    raw = json.loads(path.read_text()) | {"status": "pending", "owner": None} | fields
    path.write_text(json.dumps(raw, indent=2) + "\n")
    return board


@pytest.mark.parametrize("kind", ["files", "indexed"])
def test_a_task_that_a_merge_left_open_in_the_archive_gates_is_found_and_is_not_made_twice(tmp_path, clock, kind):
    board = reopened_there(tmp_path / "board", kind, clock)
    shown = board.get("one")
    assert (shown.row.state, ids(shown.dependents), ids(shown.would_unblock)) == ("ready", ["two"], ["two"])
    assert "no list shows it there; `taskwall doctor --fix` brings it back" in shown.row.task.notices[-1]
    assert [reason.text for reason in board.get("two").row.reasons] == ["one is pending: task one"]
    with pytest.raises(Refused, match="one is pending"):
        board.claim("two")
    with pytest.raises(Invalid, match="one exists already"):
        add(board, "one")
    assert board.next().waiting.lines() == [
        "archived: two waits for one, which is not finished and lies in the archive: "
        "`taskwall doctor --fix` brings it back"
    ]
    with pytest.raises(Refused, match="1 unfinished tasks lie in the archive"), held_whole(board.store):
        pass


@pytest.mark.parametrize("kind", ["files", "indexed"])
def test_whatever_changes_a_task_that_was_left_open_in_the_archive_brings_it_back(tmp_path, clock, kind):
    changes = {
        "claim": lambda board: board.claim("one", ttl=5),
        "done": lambda board: board.complete("one"),
        "note": lambda board: board.update("one", Edit(note="found")),
        "hold": lambda board: board.hold("one"),
        "cancel": lambda board: board.cancel("one", drop_edges=True),
    }
    for name, change in changes.items():
        board = reopened_there(tmp_path / name, kind, clock)
        if name == "done":
            board.claim("one")
        changed = change(board)
        assert not list((tmp_path / name).rglob("archive/*/one.json")), name
        assert board.list(everything=True).rows[0].task.id == changed.row.task.id == "one"
        assert ids(changed.unblocked) == (["two"] if name in ("done", "cancel") else [])


@pytest.mark.parametrize("kind", ["files", "indexed"])
def test_who_claimed_a_task_that_a_merge_left_in_the_archive_holds_it(tmp_path, clock, kind):
    board = reopened_there(tmp_path / "board", kind, clock, epoch=0)  # as it was before the claim known here
    assert board.get("one").row.task.epoch == 1
    assert board.claim("one").row.task.token == "one#2"


@pytest.mark.parametrize("kind", ["files", "indexed"])
def test_an_edge_that_only_the_blocker_tells_keeps_a_task_in_the_archive_waiting_too(tmp_path, clock, kind):
    board = reopened_there(tmp_path / "board", kind, clock)
    theirs = {"id": "0", "subject": "theirs", "status": "pending", "blockedBy": [], "blocks": ["one"]}
    (tmp_path / "board" / ".tasks" / "0.json").write_text(json.dumps(theirs))
    assert (board.get("one").row.state, ids(board.get("one").blockers)) == ("blocked", ["0"])
    assert ids(board.get("0").dependents) == []
