"""A board goes from files to PostgreSQL and back, whole; where it was it is only read."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from conftest import add, ids, open_board
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres import board_url, open_postgres, shared_database
from test_sample_boards import BOARDS, SAMPLES

from taskwall import config
from taskwall.core.errors import Refused
from taskwall.core.model import Actor, Claim, Task
from taskwall.interop.moving import mirror, move
from taskwall.stores.files.store import FileStore
from taskwall.stores.files.whole import held_whole
from taskwall.stores.postgres.rows import row_of
from taskwall.stores.whole import unlike

pytestmark = pytest.mark.slow

USER = Actor("user", "user")
NAMES = iter(range(10**9))


def files_in(board: Path) -> dict[str, bytes]:
    """Every file of a board but what belongs to this machine alone."""
    found = (path for path in board.rglob("*") if path.is_file() and ".local" not in path.parts)
    return {str(path.relative_to(board)): path.read_bytes() for path in found}


def location(path) -> config.Location:
    if isinstance(path, Path):
        path.mkdir(exist_ok=True)
    return config.find_board(str(path), {}, "/")


def fresh_url() -> str:
    return board_url(f"move{os.getpid()}_{next(NAMES)}")


def refused(code, call, *arguments):
    with pytest.raises(Refused) as found:
        call(*arguments)
    assert found.value.code == code, found.value
    return found.value


@pytest.fixture
def board(tmp_path):
    """A board in files with something of everything."""
    (tmp_path / ".tasks").mkdir()
    store = FileStore(str(tmp_path / ".tasks"))
    user = open_board(store, "user")
    add(user, "a", subject="走水电")
    add(user, "b", "a", products=("out/*.md",), priority=0)
    add(user, "house")
    add(user, "c", "b", parent="house", key="k", labels=("地面",))
    add(user, "old")
    add(user, "held")
    user.hold("held", "wait for the delivery")
    user.ask("c", "white or grey?", ["white", "grey"])
    bob = open_board(store, "bob")
    bob.claim("old")
    bob.complete("old", result="fine")
    user.archive()
    (tmp_path / ".tasks/board.toml").write_text('# ours\npeople = ["ann"]\nmax_attempts = 5\n')
    return tmp_path / ".tasks"


@pytest.mark.parametrize("name", BOARDS)
def test_every_sample_board_comes_back_byte_for_byte(name, tmp_path):
    shutil.copytree(SAMPLES / name, tmp_path / "in" / ".tasks")
    board, url = tmp_path / "in" / ".tasks", fresh_url()
    try:
        with held_whole(FileStore(str(board))) as whole:
            before = files_in(board)
    except Refused as flawed:
        assert flawed.code == "unreadable"
        refused("unreadable", move, location(board), location(url), USER)
        assert not list(open_by(url))
        return
    move(location(board), location(url), USER)
    assert unlike(whole, config.open_database(location(url)).read_whole()) == []
    move(location(url), location(tmp_path / "out"), USER)
    assert files_in(tmp_path / "out" / ".tasks") == before


def open_by(url):
    return config.open_board(location(url), USER, make=True).store.read()


def test_a_board_goes_over_with_all_that_belongs_to_it_and_answers_alike(board, tmp_path):
    files = open_board(FileStore(str(board), config.read_settings(str(board))), "user")
    before = (files.next(10), files.list(everything=True), files.history(), files.get("old"), files.why("c"))
    url = fresh_url()
    told = move(location(board), location(url), USER)
    assert (told.tasks, told.archived, told.events) == (7, 1, len(files.store.events()))
    there = config.open_board(location(url), USER)
    there.root = files.root
    after = (there.next(10), there.list(everything=True), there.history(), there.get("old"), there.why("c"))
    for one, other in zip(before, after, strict=True):
        assert str(one).replace("archived in archive/2026-09", "archived") == str(other)
    assert there.store.settings.people == ("ann",)
    add(there, "new", "b")
    there.reopen("old")
    move(location(url), location(tmp_path / "back"), USER)
    back = tmp_path / "back" / ".tasks"
    assert {"old.json", "new.json", "board.toml"} <= set(files_in(back))
    assert (back / "board.toml").read_text() == '# ours\npeople = ["ann"]\nmax_attempts = 5\n'
    again = open_board(FileStore(str(back)), "user")
    assert ids(again.list(everything=True).rows) == ids(there.list(everything=True).rows)
    assert again.store.events() == there.store.events()


def test_a_moved_board_is_only_read_where_it_was(board, tmp_path):
    url = fresh_url()
    move(location(board), location(url), USER)
    files = config.open_board(location(board), USER)
    assert files.get("a").row.task.subject == "走水电"
    assert url.partition("?")[0].rpartition("/")[2] in refused("read_only", add, files, "x").message
    assert files_in(board).keys() == {*files_in(board)}
    move(location(url), location(tmp_path / "back"), USER)
    assert str(tmp_path / "back") in refused("read_only", add, config.open_board(location(url), USER), "x").message
    add(config.open_board(location(tmp_path / "back"), USER), "x")


def test_who_has_the_board_open_writes_no_more_where_it_was(board, tmp_path):
    files = config.open_board(location(board), USER)
    add(files, "before")
    url = fresh_url()
    move(location(board), location(url), USER)
    before = files_in(board)
    for call in ((add, files, "x"), (files.claim,), (files.hold, "a")):
        refused("read_only", *call)
    refused("read_only", move, location(board), location(fresh_url()), USER)
    assert files_in(board) == before
    assert "before" in ids(config.open_board(location(url), USER).list().rows)
    assert "lies at" in config.open_board(location(board), USER).store.notices[0]


def test_a_move_that_the_database_does_not_keep_leaves_the_files_open(board, monkeypatch):
    from taskwall.stores.postgres.database import Session

    url = fresh_url()
    config.open_database(location(url)).make()
    monkeypatch.setattr(Session, "keeping", lambda *_: (_ for _ in ()).throw(Refused("gave up")))
    with pytest.raises(Refused, match="gave up"):
        move(location(board), location(url), USER)
    monkeypatch.undo()
    add(config.open_board(location(board), USER), "still")
    move(location(board), location(url), USER)


def test_ids_longer_than_any_id_are_moved_all_the_same(board, tmp_path):
    long = {"id": "long", "subject": "s" * 9000, "status": "pending", "owner": None, "blockedBy": ["b" * 9000]}
    (board / "long.json").write_text(json.dumps(long | {"parent": "p" * 9000, "key": "k" * 9000, "rev": 1}))
    before, url = files_in(board), fresh_url()
    move(location(board), location(url), USER)
    assert "b" * 9000 in config.open_board(location(url), USER).get("long").missing
    move(location(url), location(tmp_path / "out"), USER)
    assert files_in(tmp_path / "out/.tasks") == before


def test_a_move_may_take_longer_than_a_client_may_hang(board, monkeypatch):
    from taskwall.stores.postgres import database, store

    monkeypatch.setattr(store, "MOVE", store.MOVE.replace("'20s'", "'50ms'"))
    assert "'50ms'" in store.MOVE
    monkeypatch.setattr("taskwall.interop.moving.require_same", lambda *_: time.sleep(0.3))
    move(location(board), location(fresh_url()), USER)
    assert database.MOVE.endswith("= 0")


def test_claims_go_with_the_board_and_their_leases_begin_anew(board, tmp_path):
    config.open_board(location(board), Actor("bob", "s1")).claim("a", ttl=30)
    url = fresh_url()
    move(location(board), location(url), USER)
    there = config.open_board(location(url), Actor("bob", "s1"))
    claim = there.get("a").claim
    assert (claim["actor"], claim["epoch"], claim["lease"]) == ("bob", 1, "live")
    assert claim["left"] == pytest.approx(30, abs=1)
    there.complete("a", result="done there")
    move(location(url), location(tmp_path / "back"), USER)
    assert config.open_board(location(tmp_path / "back"), USER).get("a").row.task.result == "done there"


def test_nothing_is_written_over(board, tmp_path):
    url = fresh_url()
    add(config.open_board(location(url), USER, make=True), "theirs")
    before = files_in(board)
    assert "holds tasks already" in refused("invalid", move, location(board), location(url), USER).message
    assert files_in(board) == before
    (tmp_path / "other/.tasks").mkdir(parents=True)
    add(open_board(FileStore(str(tmp_path / "other/.tasks")), "user"), "mine")
    assert "a board of its own" in refused("invalid", move, location(url), location(tmp_path / "other"), USER).message
    refused("invalid", move, location(board), location(tmp_path / "third"), USER)
    in_vain = fresh_url()
    (board / "broken.json").write_text("{")
    refused("unreadable", move, location(board), location(in_vain), USER)
    assert not config.is_there(location(in_vain))  # and no empty board is left behind
    (board / "broken.json").unlink()
    assert ids(open_by(url)) == ["theirs"]


def test_a_broken_file_stops_the_move_before_anything_happens(board):
    (board / "broken.json").write_text("{")
    before, url = files_in(board), fresh_url()
    assert "doctor" in refused("unreadable", move, location(board), location(url), USER).next
    assert files_in(board) == before


def test_a_move_that_was_broken_off_is_made_again(board, tmp_path, monkeypatch):
    from taskwall.interop import moving

    url = fresh_url()
    monkeypatch.setattr(moving, "require_same", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        move(location(board), location(url), USER)
    assert not list(open_by(url))
    monkeypatch.undo()
    # Killed after the files said so, and before the database kept it.
    toml = (board / "board.toml").read_text()
    (board / "board.toml").write_text(f"moved = {json.dumps(config.open_database(location(url)).place)}\n{toml}")
    move(location(board), location(url), USER)
    monkeypatch.setattr(moving, "set_moved", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        move(location(url), location(tmp_path / "back"), USER)
    refused("read_only", add, config.open_board(location(tmp_path / "back"), USER), "x")
    monkeypatch.undo()
    move(location(url), location(tmp_path / "back"), USER)
    add(config.open_board(location(tmp_path / "back"), USER), "x")


def test_what_was_not_kept_as_it_was_given_is_not_moved(board, monkeypatch):
    from taskwall.stores.postgres import whole

    monkeypatch.setattr(whole, "row_of", lambda task: row_of(task.replace(result=None)))
    before, url = files_in(board), fresh_url()
    assert "differs" in refused("unwritable", move, location(board), location(url), USER).message
    monkeypatch.undo()
    assert files_in(board) == before
    assert not list(open_by(url))


def test_an_image_follows_the_living_board(board, tmp_path):
    url, image = fresh_url(), tmp_path / "image" / ".tasks"
    move(location(board), location(url), USER)
    there = config.open_board(location(url), Actor("bob", "bob"))
    first = mirror(location(url), location(tmp_path / "image"))
    assert (first.image, first.tasks) == (True, 7)
    assert mirror(location(url), location(tmp_path / "image")).changed == 0
    there.claim("a")
    there.complete("a")
    before = files_in(image)
    assert mirror(location(url), location(tmp_path / "image")).changed == 1
    changed = {name for name, text in files_in(image).items() if before.get(name) != text}
    assert changed == {"a.json"}
    there.archive()
    mirror(location(url), location(tmp_path / "image"))
    assert "a.json" not in files_in(image)
    assert any(name.endswith("/a.json") for name in files_in(image))
    refused("read_only", add, config.open_board(location(tmp_path / "image"), USER), "x")
    add(there, "still")
    assert ids(open_by(url)) and "still" in ids(open_by(url))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bodies=st.lists(
        st.fixed_dictionaries(
            {"description": TEXT, "metadata": st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=3)}
        ),
        min_size=1,
        max_size=6,
    ),
    spaces=st.sampled_from(["  ", "\t", "    ", ""]),
    extra=st.dictionaries(st.sampled_from(["x", "关", "estimate"]), TEXT | st.integers(), max_size=2),
)
def test_any_text_and_layout_comes_back(bodies, spaces, extra, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    board, url = folder / ".tasks", fresh_url()
    board.mkdir()
    for number, body in enumerate(bodies):
        task = {"id": f"t{number}", "subject": "s", "status": "pending", "owner": None, "blockedBy": []} | extra | body
        text = json.dumps(task, ensure_ascii=number % 2 == 0, indent=spaces or None)
        (board / f"t{number}.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    before = files_in(board)
    move(location(board), location(url), USER)
    move(location(url), location(folder / "out"), USER)
    assert files_in(folder / "out" / ".tasks") == before


def test_a_claim_with_a_host_and_a_past_is_kept():
    store = open_postgres(database=shared_database())
    with store.write() as txn:
        txn.put(Task("a", "a", status="in_progress", owner="bob", epoch=3, rev=1))
        txn.record(Claim("a", 3, "bob", "s", "2026-01-01T00:00:00Z", reserved="ann", past=(("eve", "s0", 2),)))
    assert store.read_whole().pieces[0].claim.past == (("eve", "s0", 2),)


def test_the_command_line_moves_a_board_without_telling_its_password(board, tmp_path):
    url = fresh_url().replace("//postgres:@", "//postgres:geheim@")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TASKWALL_BOARD": str(board)}
    command = [str(Path(os.sys.executable).parent / "taskwall"), "move", url]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr + "".join(p.read_text() for p in board.rglob("*") if p.is_file())
    assert "geheim" not in said
    assert "Moved 7 tasks" in said
