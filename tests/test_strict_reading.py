"""One bad file: it is named with its line, the rest goes on, what depends on it stays blocked, nothing writes to it."""

from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boardfiles import Files
from conftest import add, ids
from taskwall.core.errors import Invalid, Refused, Unreadable
from taskwall.core.refusals import Blocked
from taskwall.core.rules import Draft, Edit
from taskwall.core.state import state
from taskwall.stores.files.disk import MAX_BYTES, NotPlain, read_text

GOOD = """{
  "id": "bad",
  "subject": "was good",
  "description": "表",
  "status": "pending",
  "owner": null,
  "blockedBy": []
}
"""
CONFLICT = """{
  "id": "bad",
  "subject": "s",
<<<<<<< HEAD
  "status": "in_progress",
=======
  "status": "completed",
>>>>>>> theirs
  "blockedBy": []
}
"""

BAD = {
    "truncated": (GOOD[:60].encode(), "bad.json:4: "),
    "empty": (b"", "bad.json: the file is empty"),
    "blank": (b"\n\n", "bad.json: the file is empty"),
    "zeros": (b"\0" * 4096, "bad.json: the file is all zero bytes"),
    "a zero within": (GOOD.encode().replace(b"was", b"w\0s"), "bad.json:3: "),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD.encode(), "bad.json:1: starts with a byte order mark"),
    "UTF-16": (GOOD.encode("utf-16"), "bad.json:1: not UTF-8"),
    "bad UTF-8": (GOOD.encode().replace("表".encode(), b"\xe8\xa1"), "bad.json:4: not UTF-8 (byte 60)"),
    "surrogates as UTF-8": (GOOD.encode().replace("表".encode(), b"\xed\xa0\x80"), "bad.json:4: not UTF-8"),
    "conflict markers": (CONFLICT.encode(), "bad.json:4: git conflict markers"),
    "too large": (GOOD.encode() + b" " * MAX_BYTES, "bad.json: larger than 1024 KiB"),
    "a duplicate key": (GOOD.replace('"owner"', '"status"').encode(), "bad.json: key 'status' stands twice"),
    "NaN": (GOOD.replace("null", "NaN").encode(), "bad.json: NaN is not JSON"),
    "Infinity": (GOOD.replace("null", "-Infinity").encode(), "bad.json: -Infinity is not JSON"),
    "an infinite number": (GOOD.replace("null", "1e999").encode(), "bad.json: 1e999 is too large"),
    "a huge number": (GOOD.replace("null", "9" * 5000).encode(), "bad.json: Exceeds the limit"),
    "deep nesting": (GOOD.replace("null", "[" * 40 + "]" * 40).encode(), "bad.json: nested deeper than 32"),
    "very deep nesting": (b'{"id": "bad", "a": ' + b"[" * 200_000, "bad.json: nested deeper than 32"),
    "a list": (b'[{"id": "bad"}]', "bad.json: not a JSON object but a list"),
    "two documents": (GOOD.encode() * 2, "bad.json:9: Extra data"),
    "an id that leads out": (b'{"id": "../x", "subject": "s", "status": "pending", "rev": 1}', "its id cannot be used"),
    "an absolute id": (b'{"id": "/etc/x", "subject": "s", "status": "pending", "rev": 1}', "its id cannot be used"),
    "an id of dots": (b'{"id": "..", "subject": "s", "status": "pending", "rev": 1}', "its id cannot be used"),
    "a device as id": (b'{"id": "CON", "subject": "s", "status": "pending", "rev": 1}', "its id cannot be used"),
    "a surrogate id": (b'{"id": "\\ud800", "subject": "s", "status": "pending"}', "its id cannot be used"),
    "an id with a control": (b'{"id": "a\\u001b[2J", "subject": "s", "status": "pending"}', "its id cannot be used"),
    "a decomposed id": ('{"id": "e\u0301", "subject": "s", "status": "pending"}'.encode(), "its id cannot be used"),
    "an empty id": (b'{"id": "", "subject": "s", "status": "pending"}', "its id cannot be used"),
    "a long id": (b'{"id": "' + b"x" * 65 + b'", "subject": "s", "status": "pending"}', "its id cannot be used"),
}
each_bad_file = pytest.mark.parametrize("kind", BAD)


def make_bad(path, kind):
    """Put something at `path` that is no regular file of text; return what must be there afterwards."""
    if kind in BAD:
        path.write_bytes(BAD[kind][0])
    elif kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a link":
        (path.parent.parent / "outside.json").write_text(GOOD)
        path.symlink_to(path.parent.parent / "outside.json")
    elif kind == "a link to nothing":
        path.symlink_to("nowhere")


def fingerprint(path):
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    content = path.read_bytes() if stat.S_ISREG(kind) else os.readlink(path) if stat.S_ISLNK(kind) else None
    return kind, found.st_ino, found.st_mtime_ns, content


@pytest.fixture
def around(tmp_path):
    """`around(kind)`: a board with a bad file `bad.json`, one that depends on it, one that does not."""

    def around(kind):
        files = Files(
            tmp_path,
            {
                "after.json": '{"id": "after", "subject": "a", "status": "pending", "blockedBy": ["bad"]}',
                "free.json": '{"id": "free", "subject": "f", "status": "pending", "blockedBy": []}',
            },
        )
        make_bad(files.path / "bad.json", kind)
        return files

    return around


@each_bad_file
def test_a_bad_file_is_named_with_its_line_and_the_rest_goes_on(around, kind):
    files = around(kind)
    view = files.store.read()
    (flawed,) = [task for task in view if task.flaw]
    assert BAD[kind][1] in flawed.flaw and flawed.flaw.startswith("bad.json:")
    assert state(view, view.get(flawed.id)).name == "broken"
    assert state(view, view.get("free")).name == "ready"
    assert state(view, view.get("after")).name == "blocked"
    assert ids(files.board().next(limit=9).rows) == ["free"]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("a FIFO", "not a regular file"),
        ("a folder", "not a regular file"),
        ("a link", "a symbolic link"),
        ("a link to nothing", "a symbolic link"),
    ],
)
def test_what_is_no_regular_file_is_named_and_not_followed(around, kind, why):
    files = around(kind)
    (flawed,) = [task for task in files.store.read() if task.flaw]
    assert (flawed.id, flawed.flaw) == ("bad", f"bad.json: {why}")
    assert files.board().get("after").row.state == "blocked"


@pytest.mark.parametrize("kind", [*BAD, "a FIFO", "a folder", "a link", "a link to nothing"])
def test_no_verb_changes_a_bad_file(around, kind):
    files = around(kind)
    bad = files.path / "bad.json"
    before = fingerprint(bad)
    agent, user = files.board(), files.board("user")
    task_id = next(task.id for task in files.store.read() if task.flaw)
    for attempt in (
        lambda: agent.claim(task_id),
        lambda: agent.claim(task_id, steal=True, reason="r"),
        lambda: agent.complete(task_id),
        lambda: agent.release(task_id, failed=True),
        lambda: agent.heartbeat(task_id, ttl=3),
        lambda: agent.update(task_id, Edit(note="n")),
        lambda: agent.update(task_id, Edit(subject="n")),
        lambda: agent.update(task_id, Edit(add_blocked_by=("free",))),
        lambda: agent.ask(task_id, "q?"),
        lambda: user.answer(task_id, "a"),
        lambda: agent.hold(task_id, "r"),
        lambda: user.resume(task_id),
        lambda: user.cancel(task_id),
        lambda: user.cancel(task_id, cascade=True),
        lambda: user.cancel(task_id, drop_edges=True),
        lambda: user.reopen(task_id),
        lambda: agent.create([Draft(subject="s", id=task_id)]),
        lambda: agent.create([Draft(subject="s", id="bad")]),
        lambda: agent.claim("after"),
    ):
        with pytest.raises(Refused):
            attempt()
        assert fingerprint(bad) == before
    agent.claim("free")
    agent.complete("free")
    agent.update("after", Edit(note="still here"))
    user.cancel("after")
    add(agent, "new", "free")
    assert fingerprint(bad) == before
    if kind == "a link":
        assert (files.folder / "outside.json").read_text() == GOOD


def test_a_dependent_of_a_bad_file_says_why_it_waits_and_exit_8_tells(around):
    files = around("truncated")
    board = files.board()
    with pytest.raises(Blocked, match=r"bad cannot be read: bad\.json:4"):
        board.claim("after")
    board.complete(board.claim("free").row.task.token)
    offer = board.next()
    assert offer.exit == 8 and offer.waiting.broken[0][0] == "bad"
    with pytest.raises(Unreadable) as refusal:
        board.claim()
    assert refusal.value.exit == 8 and "force" not in refusal.value.next


def test_a_mended_file_is_a_task_again(around):
    files = around("conflict markers")
    assert files.board().get("bad").row.state == "broken"
    (files.path / "bad.json").write_text(GOOD)
    assert files.board().get("bad").row.state == "ready"


def test_two_files_of_one_id_are_both_broken_and_both_are_named(tmp_path):
    texts = {
        "a.json": '{"id": "x", "subject": "a", "status": "completed"}',
        "b.json": '{"id": "x", "subject": "b", "status": "pending"}',
        "1.json": '{"id": 1, "subject": "number", "status": "pending"}',
        "one.json": '{"id": "1", "subject": "text", "status": "pending"}',
        "after.json": '{"id": "after", "subject": "c", "status": "pending", "blockedBy": ["x"]}',
    }
    files = Files(tmp_path, texts)
    view = files.store.read()
    assert "a.json" in view.get("x").flaw and "b.json" in view.get("x").flaw
    assert "1.json" in view.get("1").flaw and "one.json" in view.get("1").flaw
    assert state(view, view.get("after")).name == "blocked"
    for verb in (files.board().claim, files.board("user").cancel, files.board("user").reopen):
        with pytest.raises(Unreadable):
            verb("x")
    assert files.diff() == {}


def test_a_broken_file_does_not_hide_a_healthy_task_of_the_same_id(tmp_path):
    files = Files(
        tmp_path,
        {
            "a.json": '{"id": "x", "subject": "a", "status": "pending"}',
            "b.json": '{"id": "x", "subject": ',
            "x.json": '{"id": "x", ',
        },
    )
    view = files.store.read()
    assert view.get("x").flaw is None and sum(1 for task in view if task.flaw) == 2


def test_a_file_of_another_name_is_written_where_it_was_found(tmp_path):
    files = Files(tmp_path, {"other name.json": '{"id": "x", "subject": "a", "status": "pending"}'})
    files.board().claim("x")
    assert list(files.diff()) == ["other name.json"]


def test_lone_surrogates_in_text_do_not_stop_anything(tmp_path):
    text = '{\n  "id": "x",\n  "subject": "a\\ud83d",\n  "status": "pending",\n  "owner": null\n}\n'
    files = Files(tmp_path, {"x.json": text})
    files.board().claim("x")
    files.board().update("x", Edit(note="n"))
    files.board().release("x")
    assert '"subject": "a\\ud83d",' in files.texts()["x.json"].decode()
    with pytest.raises(Invalid):
        files.board().update("x", Edit(note="\udcff"))


def test_a_file_name_that_is_no_text_is_shown_escaped(tmp_path):
    files = Files(tmp_path)
    path = os.fsencode(files.path) + b"/\xff\xfe.json"
    for content in (b"{", b'{"id": "x", "subject": "a", "status": "pending"}'):
        with open(path, "wb") as file:
            file.write(content)
        for task in files.reread():
            f"{task.id} {task.flaw}".encode()
    files.board().claim("x")
    with open(path, "rb") as file:
        assert json.load(file)["status"] == "in_progress"


@pytest.mark.parametrize(
    "task_id", ["../x", "a/b", "/x", ".", "..", "a\\b", "a\0b", "nul", "COM1.x", "x" * 65, "a b", ""]
)
def test_no_id_of_a_caller_leads_outside_the_board(tmp_path, task_id):
    files = Files(tmp_path / "deep")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    if task_id:
        with pytest.raises(Invalid):
            add(files.board(), task_id, subject="s")
    with pytest.raises(Refused):
        files.board().claim(task_id or " ")
    after = sorted(str(path) for path in tmp_path.rglob("*") if ".local" not in str(path))
    assert after == before


def test_what_a_blocker_is_called_leads_nowhere(tmp_path):
    (tmp_path / "x.json").write_text('{"id": "x", "subject": "outside", "status": "completed"}')
    text = '{"id": "t", "subject": "a", "status": "pending", "blockedBy": ["../x"], "parent": "../x"}'
    files = Files(tmp_path / "board", {"t.json": text})
    assert files.board().get("t").row.state == "blocked"


def test_products_of_a_file_are_not_looked_for_outside_the_worktree(tmp_path):
    (tmp_path / "secret").write_text("12345")
    files = Files(tmp_path / "board")
    add(files.board(), "t")
    path = files.path / "t.json"
    for glob in ("../secret", str(tmp_path / "secret"), "~/x", "a/../../secret", "\\..\\secret", "x\u0000y"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "pending", "products": [glob]}))
        files.board().claim("t")
        with pytest.raises(Refused) as refusal:
            files.board().complete("t")
        assert refusal.value.code == "products_missing"
        files.board().release("t")


def test_a_link_to_nothing_is_no_product(tmp_path):
    files = Files(tmp_path)
    (tmp_path / "out.txt").symlink_to("nowhere")
    add(files.board(), "t", products=("*.txt",))
    files.board().claim("t")
    with pytest.raises(Refused, match="out|txt"):
        files.board().complete("t")
    (tmp_path / "made.txt").write_text("123")
    assert files.board().complete("t").row.task.evidence == {"products": {"made.txt": 3}}


@pytest.mark.parametrize("name", [".tasks", ".tasks/.local", ".tasks/.local/lock", ".tasks/.local/claims"])
def test_what_lies_in_the_place_of_the_boards_own_folders_is_refused_in_words(tmp_path, name):
    files = Files(tmp_path)
    add(files.board(), "t")
    place = tmp_path / name
    os.rename(place, tmp_path / "away")
    place.mkdir() if name.endswith("lock") else place.write_text("a file")
    with pytest.raises(Refused) as refusal:
        files.board().claim("t")
    assert str(files.path) in refusal.value.message
    assert (tmp_path / "away").exists() and place.exists()


@pytest.mark.parametrize("name", [".local/lock", ".local/events.jsonl", ".local/claims/t.json", ".local/.gitignore"])
def test_links_that_came_with_a_repository_are_not_followed(tmp_path, name):
    files = Files(tmp_path)
    add(files.board(), "t")
    for target in ("precious", "not made"):
        (tmp_path / "precious").write_text("keep")
        (files.path / name).unlink(missing_ok=True)
        (files.path / name).symlink_to(tmp_path / target)
        try:
            files.board().claim("t")
            files.board().release("t")
        except Refused as refusal:
            assert "nothing was changed" in refusal.message
        assert (tmp_path / "precious").read_text() == "keep" and not (tmp_path / "not made").exists()


@pytest.mark.parametrize("name", [".local", ".local/claims"])
def test_a_local_folder_that_is_a_link_is_refused(tmp_path, name):
    files = Files(tmp_path)
    add(files.board(), "t")
    (tmp_path / "elsewhere").mkdir()
    os.rename(files.path / name, tmp_path / "away")
    (files.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="not a folder of its own"):
        files.board().claim("t")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_board_that_cannot_be_written_is_readable_all_the_same(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    for path in (files.path / ".local", files.path):
        path.chmod(0o555)
    try:
        assert files.board().next().exit == 0
        with pytest.raises(Refused) as refusal:
            files.board().claim("t")
        assert refusal.value.code == "unwritable"
    finally:
        for path in (files.path, files.path / ".local"):
            path.chmod(0o755)


def test_an_unfinished_line_of_events_takes_no_other_with_it(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    events = files.path / ".local" / "events.jsonl"
    with events.open("a") as file:
        file.write('{"at": "2026", "verb": "cla')
    files.board().claim("t")
    assert [event["verb"] for event in files.store.events("t")] == ["create", "claim"]


def test_events_that_cannot_be_written_do_not_undo_what_was(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    events = files.path / ".local" / "events.jsonl"
    events.unlink()
    events.mkdir()
    assert files.board().claim("t").row.state == "in_progress"
    assert files.board("agent").complete("t#1").row.state == "completed"
    assert files.store.events() == []


def test_a_write_without_a_change_leaves_the_file_alone(tmp_path):
    text = '{"id": "x", "subject": "a", "status": "pending"}'
    files = Files(tmp_path, {"x.json": text})
    before = fingerprint(files.path / "x.json")
    files.board("a").claim("x")
    files.board("a").release("x", failed=True)
    assert files.texts()["x.json"].decode() == text
    files.board("user").resume("x")  # attempts live in the ledger alone
    after = fingerprint(files.path / "x.json")
    assert after[3] == before[3]
    files.board("user").resume("x")
    assert fingerprint(files.path / "x.json") == after


def test_no_write_makes_a_file_too_large_to_be_read(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    kept = 0
    with pytest.raises(Invalid, match="larger than 1024 KiB"):
        while True:
            files.board().update("t", Edit(note="n" * 65_000))
            kept += 1
    assert len(files.reread().get("t").notes) == kept == 16
    files.board().complete(files.board().claim("t").row.task.token)


def test_file_modes_survive_a_write(tmp_path):
    files = Files(tmp_path, {"x.json": '{"id": "x", "subject": "a", "status": "pending"}'})
    (files.path / "x.json").chmod(0o640)
    files.board().claim("x")
    assert stat.S_IMODE((files.path / "x.json").stat().st_mode) == 0o640


def test_a_file_that_is_not_there_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_text(str(tmp_path / "x"))
    with pytest.raises(NotPlain):
        read_text(str(tmp_path))


@given(st.data())
@settings(max_examples=100)
def test_a_damaged_file_never_stops_the_board_and_is_never_written_unless_it_is_a_task(tmp_path_factory, data):
    text = GOOD.encode()
    at = data.draw(st.integers(0, len(text)))
    junk = data.draw(st.binary(max_size=6) | st.sampled_from([b"{", b'"', b"<<<<<<< a\n", b"\\ud800", b"1e999", b"\0"]))
    damaged = text[:at] + junk + text[at + data.draw(st.integers(0, 30)) :]
    files = Files(
        tmp_path_factory.mktemp("damaged"),
        {"bad.json": damaged, "free.json": '{"id": "free", "subject": "f", "status": "pending", "blockedBy": []}'},
    )
    view = files.store.read()
    assert state(view, view.get("free")).name == "ready"
    (other,) = [task for task in view if task.id != "free"]
    try:
        files.board().claim(other.id)
    except Refused:
        assert files.texts()["bad.json"] == damaged
    else:
        assert not other.flaw and files.reread().get(other.id).status == "in_progress"
