"""The index of a large folder: derived, never needed, and never another answer than the files themselves give."""

import json
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Clock, add, ids, open_board
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskwall import registry, verbs  # noqa: F401 - importing verbs registers them
from taskwall.board import NEAR
from taskwall.core.errors import Refused
from taskwall.core.model import Settings
from taskwall.core.refusals import NothingActionable
from taskwall.core.rules import Draft, Edit
from taskwall.stores.base import Outdated
from taskwall.stores.files import index as index_module
from taskwall.stores.files import sqlite as sqlite_module
from taskwall.stores.files import tables
from taskwall.stores.files.disk import Disk
from taskwall.stores.files.store import FileStore

ACTORS = ("user", "a", "b")
NAMES = [f"t{n}" for n in range(8)]
RULES = Settings(durability="fast", max_attempts=2)


class Wall:
    """One folder, seen through the index by two stores and without one by a third."""

    def __init__(self, folder):
        self.path = Path(folder) / ".tasks"
        self.path.mkdir()
        self.clock = Clock()
        self.stores = [self.store(0), self.store(0), self.store(None)]

    def store(self, index_from):
        return FileStore(str(self.path), RULES, monotonic=self.clock.monotonic, index_from=index_from)

    def board(self, which, actor="a"):
        return open_board(self.stores[which], actor, clock=self.clock, root=self.path)

    def surely(self, which):
        try:
            return self.answers(which)
        except Refused as damage:  # every face asks once more, see `Verb.run`
            assert isinstance(damage, Outdated) and "made anew" in damage.message
            return self.answers(which)

    def answers(self, which):
        """All that a board tells, through each of its questions."""
        found = {}
        for actor in ACTORS:
            board = self.board(which, actor)
            offer = board.next(50)
            found["next", actor] = (ids(offer.rows), offer.more, offer.open, offer.total, offer.waiting)
            found["digest", actor] = board.digest()
        board = self.board(which)
        listed = board.list(everything=True)
        found["list"] = (listed.rows, listed.more, listed.total)
        found["open"] = board.list()
        found["filtered"] = [
            board.list(["pending"]),
            board.list(owner="a"),
            board.list(text="work"),
            board.list(glob="t*"),
        ]
        found["after"] = [board.list(after=row.task.id, limit=2) for row in listed.rows]
        view = self.stores[which].read()
        for row in listed.rows:
            found["show", row.task.id] = board.get(row.task.id)
            found["rank", row.task.id] = None if row.task.closed or row.task.flaw else view.rank(row.task.id)
        found["by id"] = [attempt(lambda name=name: board.get(name)) for name in NAMES]
        found["graph"] = board.graph()
        found["keys"] = [view.by_key(f"key-{name}") for name in NAMES]
        found["held"] = [ids(sorted(view.in_progress(), key=lambda t: t.id)), view.counts()]
        found["found"] = [attempt(lambda name=name: view.find(f"work on {name}").id) for name in NAMES]
        return found

    def compare(self):
        plain, *indexed = (self.surely(which) for which in (2, 0, 1))
        for answers in indexed:
            for question, answer in plain.items():
                assert answers[question] == answer, question


def attempt(act):
    try:
        return act()
    except Refused as refusal:
        return refusal.code, refusal.message


def draft(name, blockers, parent, owner=""):
    return Draft(f"work on {name}", id=name, blocked_by=tuple(blockers), parent=parent, owner=owner, key=f"key-{name}")


name = st.sampled_from(NAMES)
VERBS = st.one_of(
    st.tuples(
        st.just("create"),
        name,
        st.lists(name, max_size=2),
        st.sampled_from(["", *NAMES[:3]]),
        st.sampled_from(["", "a"]),
    ),
    st.tuples(st.sampled_from(["claim", "complete", "release", "cancel", "reopen", "hold", "resume"]), name),
    st.tuples(st.sampled_from(["block", "unblock"]), name, name),
    st.tuples(st.just("claim best"), st.sampled_from([None, 5.0])),
    st.tuples(st.just("ask"), name),
    st.tuples(st.just("priority"), name, st.integers(0, 4)),
    st.tuples(st.just("lapse")),
)
EDITS = st.one_of(
    st.tuples(st.just("remove"), name),
    st.tuples(st.just("garbage"), name),
    st.tuples(st.just("twin"), name),
    st.tuples(st.just("broken copy"), name),
    st.tuples(st.sampled_from(["to the archive", "from the archive", "reopened there"]), name),
    st.tuples(st.just("status"), name, st.sampled_from(["pending", "in_progress", "completed", "done", "odd"])),
    st.tuples(st.just("blocks"), name, name),
    st.tuples(st.just("foreign"), name, st.lists(name, max_size=2)),
    st.tuples(st.just("epoch"), name, st.integers(0, 3)),
    st.tuples(st.just("forget claims")),
)
"""What editors, checkouts and other programs do to a folder."""


def act(wall, which, actor, verb, *given):
    board = wall.board(which, actor)
    if verb == "create":
        task, blockers, parent, owner = given
        board.create([draft(task, [b for b in blockers if b != task], parent, owner)])
    elif verb == "claim best":
        board.claim(ttl=given[0])
    elif verb in ("block", "unblock"):
        edges = {"block": "add_blocked_by", "unblock": "remove_blocked_by"}[verb]
        board.update(given[0], Edit(**{edges: (given[1],)}))
    elif verb == "ask":
        board.ask(given[0], "which?")
    elif verb == "priority":
        board.update(given[0], Edit(priority=given[1]))
    elif verb == "lapse":
        wall.clock.sleep(minutes=6)
    elif verb == "cancel":
        board.cancel(given[0], cascade=True)
    else:
        getattr(board, verb)(*given)


def edit(wall, in_place, what, task=None, *given):
    path = wall.path / f"{task}.json"
    if what == "forget claims":
        for entry in (wall.path / ".local" / "claims").glob("*.json"):
            entry.unlink()
    elif what == "remove":
        path.unlink(missing_ok=True)
    elif what == "foreign":
        write(
            path,
            json.dumps({"id": task, "subject": f"work on {task}", "status": "pending", "blockedBy": given[0]}),
            in_place,
        )
    elif what in ("to the archive", "reopened there"):
        put_away = wall.path / "archive" / "2026-01" / path.name
        put_away.parent.mkdir(parents=True, exist_ok=True)
        status = "completed" if what == "to the archive" else "pending"
        done = {"id": task, "subject": f"work on {task}", "status": status, "blockedBy": []}
        write(put_away, json.dumps(done), in_place)
        path.unlink(missing_ok=True)
    elif what == "from the archive":
        for put_away in wall.path.glob(f"archive/*/{path.name}"):
            os.replace(put_away, path)
    elif what == "broken copy":
        copy = path.with_name(f"copy-of-{path.name}")
        if copy.exists():
            copy.unlink()
        elif path.exists():
            write(copy, path.read_text()[:40], in_place)
    elif what == "garbage" and path.exists():
        write(path, path.read_text()[:20], in_place)
    elif path.exists():
        try:
            raw = json.loads(path.read_text())
        except ValueError:
            return
        if what == "twin":
            path = wall.path / f"copy-of-{task}.json"
        changed = {"status": ("status",), "blocks": ("blocks",), "epoch": ("epoch",)}.get(what, ())
        for key in changed:
            raw[key] = [given[0]] * 2 if key == "blocks" else given[0]
        if what == "blocks":
            raw.pop("rev", None)  # another program's file: ours stores an edge on one side alone
        write(path, json.dumps(raw), in_place)


def write(path, text, in_place):
    if in_place:
        path.write_text(text)
    else:
        other = path.parent / "part.new"
        other.write_text(text)
        os.replace(other, path)


def run(steps, in_place):
    """in_place: as editors write; else as git does, each time in another tick of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        wall = Wall(folder)
        attempt(lambda: act(wall, 0, "a", "create", "t0", [], "", ""))
        for which, actor, step in steps:
            if isinstance(step, tuple) and step[0] == "edit":
                edit(wall, in_place, *step[1])
                if not in_place:
                    os.utime(wall.path, ns=(0, time.time_ns()))
            else:
                attempt(lambda: act(wall, which, actor, *step))
            wall.compare()


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(ACTORS), st.one_of(VERBS, VERBS, st.tuples(st.just("edit"), EDITS))),
    min_size=1,
    max_size=14,
)


@settings(max_examples=8)
@given(STEPS)
def test_the_index_gives_the_answers_of_the_files_after_any_verbs_and_edits(steps):
    run(steps, in_place=True)


@pytest.mark.slow
@settings(max_examples=80)
@given(STEPS)
def test_the_index_gives_the_answers_of_the_files_after_any_verbs_and_edits_at_length(steps):
    run(steps, in_place=True)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_so_it_does_where_it_is_trusted_by_the_stamp_of_the_folder_alone(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "LOOK_AT_ALL", -1)
        patch.setattr(index_module, "TICKS_NS", 0)
        run(steps, in_place=False)


def test_a_write_carries_the_index_on_so_that_nothing_need_be_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(index_module, "LOOK_AT_ALL", -1)
    monkeypatch.setattr(index_module, "TICKS_NS", 0)
    wall = Wall(tmp_path)
    wall.board(0).create([draft("t0", [], ""), draft("t1", ["t0"], ""), draft("t2", ["t1"], ""), draft("t3", [], "t2")])
    wall.compare()
    looks = []
    changed = index_module.Index._changed
    monkeypatch.setattr(index_module.Index, "_changed", lambda self, c: looks.append(1) or changed(self, c))
    board = wall.board(0)
    board.claim("t0")
    board.release("t0")
    add(board, "t4", "t0")
    board.claim("t0", ttl=5)
    board.complete("t0")
    board.update("t1", Edit(priority=1))
    board.beat((), ttl=5)
    board.claim()
    board.reopen("t0")
    wall.compare()
    assert looks == []


@pytest.mark.slow
def test_what_makes_chains_longer_or_shorter_has_no_rank_counted_anew(tmp_path, monkeypatch):
    wall = large_wall(tmp_path)
    counted = []
    count = tables.count_ranks
    monkeypatch.setattr(tables, "count_ranks", lambda c: counted.append(is_unranked(c)) or count(c))
    board = wall.board(0)
    for change in (
        lambda: board.reopen("t0"),
        lambda: board.update("t3", Edit(add_blocked_by=("t2",))),
        lambda: board.create([draft("last", ["t5"], ""), draft("very-last", ["last"], "t7")]),
        lambda: board.update("t3", Edit(remove_blocked_by=("t2",))),
        lambda: board.cancel("t14", drop_edges=True),
        lambda: edit(wall, True, "status", "t4", "completed"),
        lambda: edit(wall, True, "foreign", "t20", ["t17"]),
        lambda: edit(wall, True, "blocks", "t10", "t16"),
        lambda: edit(wall, True, "remove", "t20"),
    ):
        change()
        wall.compare()
    assert not any(counted)


def is_unranked(connection):
    return connection.execute("SELECT unranked FROM about").fetchone()[0]


@pytest.mark.slow
def test_ranks_before_a_ring_that_a_merge_brought_are_those_of_the_files(tmp_path):
    wall = large_wall(tmp_path)
    board = wall.board(0)
    edit(wall, True, "foreign", "t3", ["t5"])
    wall.compare()
    board.create([draft("before-the-ring", [], "")])
    board.update("t5", Edit(add_blocked_by=("before-the-ring",)))
    wall.compare()
    edit(wall, True, "foreign", "t3", [])
    wall.compare()


def test_text_that_no_database_takes_is_read_like_any_other(tmp_path):
    wall = large_wall(tmp_path)
    odd = {"id": "t99", "subject": "\ud800", "key": "\ud800", "parent": "\ud800", "createdAt": "\ud800", "rev": 1}
    write(wall.path / "t99.json", json.dumps(odd | {"status": "pending", "blockedBy": ["\ud800"]}), True)
    wall.compare()


class Interfering(Disk):
    """An editor writes into t1 at the moment at which a change of several files is committed."""

    def rename(self, old, new):
        super().rename(old, new)
        if new.endswith(f"{os.sep}journal"):
            path = Path(new).parent.parent / "t1.json"
            path.write_text(path.read_text().replace("work on", "work by hand on"))


def test_an_edit_that_was_kept_over_ours_is_not_hidden_by_the_index(tmp_path, monkeypatch):
    monkeypatch.setattr(index_module, "LOOK_AT_ALL", -1)
    monkeypatch.setattr(index_module, "TICKS_NS", 0)
    wall = Wall(tmp_path)
    wall.board(0).create([draft("t0", [], ""), draft("t1", ["t0"], ""), draft("t2", ["t1"], "")])
    wall.compare()
    wall.stores[0] = FileStore(str(wall.path), RULES, wall.clock.monotonic, disk=Interfering(), index_from=0)
    changed = wall.board(0).cancel("t0", cascade=True)
    assert "t1.json was edited" in " ".join([*changed.notices, *wall.stores[0].notices])
    wall.compare()


def age(board, seconds=60):
    """Let all files and folders have been as they are for so long."""
    for path in (board, *board.rglob("*")):
        os.utime(path, (time.time() - seconds,) * 2)


class Counting(FileStore):
    """Counts the task files that are read while the lock is held."""

    held, read_then = False, 0

    @contextmanager
    def _lock(self):
        with super()._lock() as still:
            self.held = True
            try:
                yield still
            finally:
                self.held = False


class CountingDisk(Disk):
    store = None

    def read(self, path, *most):
        self.store.read_then += self.store.held and os.path.dirname(path) == self.store.path
        return super().read(path, *most)


def test_a_claim_passes_over_what_others_must_do_without_keeping_the_lock(tmp_path):
    board = open_board(FileStore(str(tmp_path), RULES, index_from=0), "user")
    board.create([Draft(f"for a person {n}", owner="user", priority=0) for n in range(3 * NEAR)])
    last = add(board, "last")
    age(tmp_path)
    disk = CountingDisk()
    store = disk.store = Counting(board.store.path, RULES, disk=disk, index_from=0)
    assert open_board(store, "a").claim().row.task.id == last
    assert 0 < store.read_then < 2 * NEAR
    with pytest.raises(NothingActionable):
        open_board(store, "b").claim()


# What may happen to the index itself


def large_wall(tmp_path, tasks=18):
    wall = Wall(tmp_path)
    plan = [draft(f"t{n}", [f"t{n - 1}"] if n % 3 else [], "") for n in range(tasks)]
    wall.board(0).create(plan)
    for n in range(0, tasks, 6):
        wall.board(0).claim(f"t{n}")
        wall.board(0).complete(f"t{n}")
    wall.compare()
    return wall


def index_of(wall):
    return Path(wall.stores[0]._index.path)


def gone(path):
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def emptied(path):
    gone(path)
    path.write_bytes(b"")


def garbage(path):
    gone(path)
    path.write_bytes(os.urandom(20_000))


def log_gone(path):
    Path(f"{path}-wal").unlink(missing_ok=True)


def cut_short(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    gone(path)
    path.write_bytes(whole[: len(whole) * 2 // 3])


def a_page_garbled(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    gone(path)
    path.write_bytes(whole[:12288] + os.urandom(8192) + whole[20480:])


def another_database(path):
    gone(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE about (cats)")
        connection.execute("INSERT INTO about VALUES (9)")


def of_another_version(path):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET version = 99")


def of_another_boot(path):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET boot = 'before the power cut'")
        connection.execute("UPDATE files SET text = '', done = 1, open = 0")


def a_folder(path):
    gone(path)
    path.mkdir()


DAMAGE = [
    gone,
    emptied,
    garbage,
    cut_short,
    log_gone,
    a_page_garbled,
    another_database,
    of_another_version,
    of_another_boot,
    a_folder,
]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("fresh", [True, False], ids=["another process", "the same process"])
def test_a_damaged_index_changes_no_answer(tmp_path, damage, fresh):
    wall = large_wall(tmp_path)
    if fresh:
        wall.stores[:2] = [wall.store(0), wall.store(0)]
    damage(index_of(wall))
    wall.compare()
    registry.call(wall.board(1), "create_task", {"subject": "one more", "blockedBy": ["t1"]})
    claimed = registry.call(wall.board(0), "claim_task", {}).row.task.id
    registry.call(wall.board(0), "complete_task", {"task_id": claimed})
    wall.compare()


def test_an_index_that_was_removed_alone_while_others_have_it_open_is_made_anew_at_once(tmp_path):
    wall = large_wall(tmp_path)
    index_of(wall).unlink()
    script = (
        "import sys; from taskwall.stores.files import sqlite; from taskwall.stores.files.store import FileStore\n"
        "sqlite.Connections.discard = lambda *error: print(error)\n"
        "print(FileStore(sys.argv[1], index_from=0).read().counts())\n"
    )
    told = subprocess.run([sys.executable, "-c", script, str(wall.path)], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(wall.stores[2].read().counts())
    wall.compare()


def test_what_was_not_asked_to_its_end_keeps_nobody_from_taking_in_what_was_written(tmp_path):
    wall = large_wall(tmp_path)
    store = wall.store(0)
    with store.write() as txn:
        offered = txn.unblocked()
        first = next(offered)
        with sqlite3.connect(index_of(wall)) as other:  # as somebody who looks at the folder
            other.execute("UPDATE about SET looked = looked + 1")
        txn.put(first.replace(priority=0))
    with sqlite3.connect(index_of(wall)) as connection:
        row = connection.execute("SELECT priority FROM files WHERE id = ?", (first.id,)).fetchone()
    assert row == (0,)


def test_what_the_index_says_of_a_blocker_opens_no_gate(tmp_path):
    wall = large_wall(tmp_path)
    with sqlite3.connect(index_of(wall)) as connection:
        connection.execute("UPDATE files SET text = replace(text, 'pending', 'completed'), done = 1, waits = 0")
    with pytest.raises(Refused, match="t3"):
        wall.board(0).claim("t4")


@pytest.mark.slow
def test_a_board_that_cannot_be_written_is_read_without_an_index(tmp_path):
    wall = large_wall(tmp_path)
    answers = wall.answers(2)
    index_of(wall).unlink()
    (wall.path / ".local" / ".gitignore").unlink()
    wall.stores[0] = wall.store(0)
    assert wall.answers(0)["list"] == answers["list"]
    assert not index_of(wall).exists(), "nothing would keep it out of git"


@pytest.mark.slow
def test_processes_that_refresh_at_once_and_writers_between_them_agree_in_the_end(tmp_path):
    wall = large_wall(tmp_path)
    index_of(wall).unlink()
    script = (
        "import sys; from taskwall.board import Board; from taskwall.core.model import Actor, Settings\n"
        "from taskwall.core.rules import Draft; from taskwall.stores.files.store import FileStore\n"
        "who = sys.argv[2]\n"
        "board = Board(FileStore(sys.argv[1], Settings(durability='fast'), index_from=0), Actor(who, who))\n"
        "for n in range(12):\n"
        "    board.create([Draft(f'{who} {n}', blocked_by=('t1',) if n % 2 else ())])\n"
        "    board.next(50); task = board.claim().row.task.id; board.list(); board.complete(task)\n"
    )
    with_index = [sys.executable, "-c", script, str(wall.path)]
    running = [subprocess.Popen([*with_index, f"p{n}"], stderr=subprocess.PIPE, text=True) for n in range(4)]
    for _ in range(10):
        edit(wall, False, "foreign", random.choice(NAMES) + "x", [])
    assert [each.communicate()[1] for each in running] == [""] * 4
    wall.compare()
    assert wall.stores[0].read().counts()[1] >= 18 + 48


@pytest.mark.slow
def test_threads_that_share_a_store_get_whole_answers_and_keep_what_is_theirs(tmp_path):
    wall = large_wall(tmp_path)
    for n in range(12):
        add(wall.board(0), f"work-{n}")
    failed, before = [], sys.getswitchinterval()

    def work(name):
        board = open_board(wall.stores[0], "agent", name, clock=wall.clock, root=wall.path)
        try:
            for _ in range(3):
                task = board.claim().row.task
                assert board.beat((), ttl=5)[0] == {task.token}
                assert [held.id for held in board.store.read().held_by(board.actor)] == [task.id]
                board.complete(task.token)
        except Exception as error:  # told by the thread that can fail the test
            failed.append(error)

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert failed == []
    done = [e["task"] for e in wall.stores[0].events() if e["verb"] == "complete" and e["by"] == "agent"]
    assert len(done) == len({*done}) == 12
    wall.compare()


def test_a_child_does_not_use_the_connection_of_its_parent(tmp_path):
    wall = large_wall(tmp_path)
    view = wall.stores[0].read()
    child = os.fork()
    if not child:
        try:
            add(wall.board(0, "b"), "of-the-child", "t1")
            wall.compare()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert view.get("of-the-child") is None
    wall.compare()


@pytest.mark.slow
def test_a_change_in_the_same_tick_as_ours_shows(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "LOOK_AT_ALL", -1)
        wall = large_wall(tmp_path)
        for n in range(30):
            add(wall.board(0), f"ours-{n}")
            edit(wall, False, "foreign", f"theirs-{n}", [])
            assert wall.stores[1].read().get(f"theirs-{n}")


@pytest.mark.slow
def test_an_index_that_is_in_use_for_too_long_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_module, "MOMENT", 0.05)
    monkeypatch.setattr(index_module, "PATIENCE", 0.1)
    wall = large_wall(tmp_path)
    wall.stores[0] = wall.store(0)
    before = index_of(wall).stat().st_ino
    with sqlite3.connect(index_of(wall), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        edit(wall, True, "status", "t1", "completed")
        assert wall.answers(0)["list"] == wall.answers(2)["list"]
        other.execute("ROLLBACK")
    assert index_of(wall).stat().st_ino == before


def test_a_file_of_another_program_that_somebody_gives_back_by_hand_is_offered_in_its_place():
    run(
        [
            (0, "a", ("edit", ("foreign", "t5", []))),
            (0, "a", ("claim", "t5")),
            (0, "a", ("edit", ("status", "t5", "pending"))),
        ],
        in_place=True,
    )


def test_a_parent_that_a_merge_left_open_in_the_archive_makes_no_chain_longer():
    run(
        [
            (0, "a", ("edit", ("reopened there", "t2"))),
            (0, "a", ("create", "t7", [], "t2", "")),
            (0, "b", ("create", "t1", [], "", "")),
            (0, "a", ("block", "t7", "t1")),
        ],
        in_place=True,
    )


def test_a_broken_file_beside_a_held_task_of_its_id_does_not_count_as_held(tmp_path):
    run(
        [
            (0, "a", ("claim best", None)),
            (1, "a", ("edit", ("twin", "t0"))),
            (0, "a", ("edit", ("garbage", "t0"))),
        ],
        in_place=True,
    )


# What came with a repository


def precious(path):
    """A database of somebody else's, as it is told."""
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE precious (x)")
    return path.read_bytes()


def linked_folder(local, theirs):
    for path in sorted(local.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    local.rmdir()
    local.symlink_to(theirs)


def linked_index(local, theirs):
    (local / "index").symlink_to(theirs / "db")


def left_over_from_a_crash(local, theirs):
    """A journal that says that it belongs to another file, which SQLite then removes."""
    with sqlite3.connect(local / "index") as index:
        index.execute("CREATE TABLE about (x)")
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(theirs / "db")
    head = magic + struct.pack(">IIIII", 0, 1, (local / "index").stat().st_size // 4096, 512, 4096)
    tail = struct.pack(">I", 262145) + name + struct.pack(">II", len(name), sum(name)) + magic
    (local / "index-journal").write_bytes(head.ljust(512, b"\0") + tail)


def endless_view(local, theirs):
    with sqlite3.connect(local / "index") as index:
        endless = "WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x FROM r WHERE x = 2"
        index.execute(f"CREATE VIEW about AS {endless}")


@pytest.mark.slow
@pytest.mark.parametrize("trap", [linked_folder, linked_index, left_over_from_a_crash, endless_view])
def test_an_index_that_came_with_a_repository_is_neither_read_nor_followed(tmp_path, trap):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    precious(theirs / "db")
    (theirs / "index").write_bytes(b"DIRC")
    wall = large_wall(tmp_path)
    for left in (wall.path / ".local").glob("index*"):
        left.unlink()
    trap(wall.path / ".local", theirs)
    before = {path.name: path.read_bytes() for path in theirs.iterdir()}
    look = "import sys; from taskwall.stores.files.store import FileStore; print(len(list(FileStore(sys.argv[1], index_from=0).read())))"
    done = subprocess.run([sys.executable, "-c", look, wall.path], capture_output=True, text=True, timeout=60)
    assert done.stdout == "18\n", done.stderr
    wall.stores[0] = wall.store(0)
    attempt(lambda: add(wall.board(0), "t99"))
    assert {path.name: path.read_bytes() for path in theirs.iterdir() if path.name in before} == before
    assert not {path.name for path in theirs.iterdir() if "index-" in path.name or "db-" in path.name}


def test_indexes_of_other_boots_go_when_they_are_old(tmp_path):
    wall = large_wall(tmp_path)
    for name, days in (("index", 0), ("index-old", 9), ("index-old-wal", 9), ("index-of-another-machine", 0.5)):
        (index_of(wall).parent / name).write_text("")
        os.utime(index_of(wall).parent / name, (time.time() - days * 86_400,) * 2)
    index_of(wall).unlink()
    wall.compare()
    kept = {path.name for path in index_of(wall).parent.glob("index*")} - {
        index_of(wall).name + end for end in ("", "-wal", "-shm")
    }
    assert kept == {"index-of-another-machine"}


# What others do beside the board


def test_a_broken_copy_of_a_file_takes_nothing_along_when_it_goes(tmp_path):
    wall = large_wall(tmp_path)
    add(wall.board(0), "top", "t17")
    edit(wall, True, "broken copy", "top")
    wall.compare()
    edit(wall, True, "broken copy", "top")
    wall.compare()
    with pytest.raises(Refused, match="open tasks wait for t17: top"):
        wall.board(0).cancel("t17")


@pytest.mark.parametrize("at_all", [-1, 1000])
def test_a_blocker_that_somebody_puts_into_the_archive_is_noticed(tmp_path, monkeypatch, at_all):
    monkeypatch.setattr(index_module, "LOOK_AT_ALL", at_all)
    wall = large_wall(tmp_path)
    for n in range(18):
        edit(wall, True, "foreign", f"t{n}", ["gone"])
    age(wall.path)
    with pytest.raises(NothingActionable):
        wall.board(0).claim()
    edit(wall, True, "to the archive", "gone")
    assert wall.board(0).next().rows[0].task.id == "t0"
    wall.compare()


class Coarse(Disk):
    """A file system whose time stamps are whole seconds."""

    def seen(self, path):
        found = super().seen(path)
        return found and (*(stamp // 1_000_000_000 * 1_000_000_000 for stamp in found[:2]), *found[2:])

    def stamp(self, folder, now, before):
        return None


def test_whoever_has_the_lock_sees_what_was_written_within_the_tick_of_the_last_look(tmp_path, monkeypatch):
    monkeypatch.setattr(index_module, "LOOK_AT_ALL", -1)
    wall = Wall(tmp_path)
    stores = [FileStore(str(wall.path), RULES, wall.clock.monotonic, disk=Coarse(), index_from=0) for _ in range(2)]
    ours, theirs = (open_board(store, "a", clock=wall.clock, root=wall.path) for store in stores)
    for n in range(12):
        add(theirs, f"base-{n}")
        ours.store.read()  # just now, and so not again before the lock
        add(theirs, f"waits-{n}", f"base-{n}")
        with pytest.raises(Refused, match=f"open tasks wait for base-{n}: waits-{n}"):
            ours.cancel(f"base-{n}")
        key = Draft("made once", key=f"key-{n}")
        ours.store.read()
        made = theirs.create([key]).rows[0].task.id
        assert ours.create([key]).rows[0].task.id == made


@pytest.mark.slow
def test_whoever_keeps_the_index_to_himself_keeps_nobody_from_writing(tmp_path):
    wall = large_wall(tmp_path)
    age(wall.path)
    wall.compare()
    with sqlite3.connect(index_of(wall), isolation_level=None) as stopped:
        stopped.execute("BEGIN IMMEDIATE")
        edit(wall, True, "status", "t1", "completed")
        made = []
        writers = [threading.Thread(target=lambda n=n: made.append(add(wall.board(n), f"new-{n}"))) for n in (0, 1)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        stopped.execute("ROLLBACK")
    assert sorted(made) == ["new-0", "new-1"]
    wall.compare()


@pytest.mark.parametrize("looked", ["looked + 1e6", "looked - 1e5, cost = 1e5"])
def test_neither_a_long_look_nor_a_clock_that_went_back_puts_the_next_one_off(tmp_path, monkeypatch, looked):
    monkeypatch.setattr(index_module, "LOOK_AT_ALL", -1)
    wall = large_wall(tmp_path)
    age(wall.path)
    wall.compare()
    with sqlite3.connect(index_of(wall)) as connection:
        connection.execute(f"UPDATE about SET looked = {looked}")
    edit(wall, True, "foreign", "t17", [])
    assert wall.board(0).next(50).rows[-1].task.id == "t17"
    wall.compare()


def test_what_is_archived_is_not_written_over_by_another_of_its_id(tmp_path):
    wall = large_wall(tmp_path)
    edit(wall, True, "to the archive", "t1")
    (wall.path / "archive" / "2026-01").rename(wall.path / "archive" / "undated")
    another = {"id": "t1", "subject": "another", "status": "completed", "blockedBy": []}
    write(wall.path / "t1.json", json.dumps(another), True)
    answer = wall.board(0).archive()
    assert answer.left == ("t1",) and "others of that name are archived" in answer.lines()[-1]
    assert "work on t1" in (wall.path / "archive" / "undated" / "t1.json").read_text()
    wall.compare()


def test_whoever_makes_the_index_removes_no_log_of_one_that_another_has_just_made(tmp_path, monkeypatch):
    """A second process that finds none while the first one makes it neither waits nor touches what lies beside it."""
    wall = large_wall(tmp_path)
    for left in index_of(wall).parent.glob("index*"):
        left.unlink()
    seen = []
    tidy_up = sqlite_module.Connections._tidy_up

    def meanwhile(self):
        tidy_up(self)
        index_of(wall).rename(tmp_path / "not yet")
        with pytest.raises(OSError):
            sqlite_module.Connections(self._path)._make_file()
        seen.append(os.path.exists(self._path))
        (tmp_path / "not yet").rename(index_of(wall))

    monkeypatch.setattr(sqlite_module.Connections, "_tidy_up", meanwhile)
    wall.stores[0] = wall.store(0)
    wall.compare()
    assert seen == [False]
