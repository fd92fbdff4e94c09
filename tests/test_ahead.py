"""A claim of the best task, made before the board's lock is taken: the same as one under the lock, whatever comes between."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import threading
import time
import traceback

import pytest
from conftest import Clock, add, ids, open_board

from taskwall.core import rules
from taskwall.core.errors import Locked
from taskwall.core.model import Settings
from taskwall.core.refusals import NothingActionable
from taskwall.core.rules import Edit
from taskwall.stores.base import Overtaken
from taskwall.stores.files import ahead, folder, lock
from taskwall.stores.files.disk import Disk
from taskwall.stores.files.store import FileStore

KILLED = 9
FAST, FULL = Settings(durability="fast"), Settings(durability="full")


class Site:
    """A board that is read through its index, and programs that work on it: `first` is better than `second`."""

    def __init__(self, place):
        self.tasks = place / ".tasks"
        self.tasks.mkdir(exist_ok=True)
        self.local = self.tasks / ".local"
        self.clock = Clock()
        other = self.board("other")
        add(other, "gate")
        other.claim("gate")
        other.complete("gate")
        add(other, "first", "gate", priority=0)
        add(other, "second")
        old = time.time_ns() - 10**10  # so long ago that stamps and signatures vouch for what they are of
        for path in (*self.tasks.glob("*.json"), self.local / "claims", self.tasks):
            os.utime(path, ns=(old, old))
        other.store.read(anew=True)

    def store(self, index_from=0, settings=FAST, **more):
        return FileStore(str(self.tasks), settings, monotonic=self.clock.monotonic, index_from=index_from, **more)

    def board(self, name, between=None, **more):
        """between: is done once, when the board is asked for the time: after the choice and before the commit."""
        todo = [between] if between else []

        def clock():
            if todo:
                todo.pop()()
            return self.clock()

        return open_board(self.store(**more), name, clock=clock, root=self.tasks.parent)

    def file(self, name):
        return self.tasks / f"{name}.json"

    def set(self, name, **keys):
        """As an editor does it, in place."""
        self.file(name).write_text(json.dumps(json.loads(self.file(name).read_text()) | keys))

    @property
    def parts(self):
        return [path.name for path in self.local.glob("part-*")]

    def same_without_an_index(self):
        seen = [self.store(index_from=index_from).read(anew=True) for index_from in (0, None)]
        through, without = ({task.id: (task, view.claim(task.id)) for task in view} for view in seen)
        return through == without


def in_fork(work):
    """How a process of its own that does this work ends: 0 when it answers true."""
    if not (pid := os.fork()):
        try:
            os._exit(0 if work() else 1)
        finally:
            traceback.print_exc()
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


CHANGES = {
    "nothing": (lambda site: None, "first"),
    "edited by a verb": (lambda site: site.board("user").update("first", Edit(subject="another word")), "first"),
    "edited in place": (lambda site: site.set("first", subject="another word"), "first"),
    "noted": (lambda site: site.board("user").update("first", Edit(note="look here")), "first"),
    "held": (lambda site: site.board("user").hold("first"), "second"),
    "reserved for another": (lambda site: site.board("user").update("first", Edit(owner="other")), "second"),
    "a new blocker": (lambda site: add(site.board("user"), "new", priority=4) and block(site, "new"), "second"),
    "a new child": (lambda site: add(site.board("user"), "child", parent="first", priority=4), "second"),
    "its blocker open again": (lambda site: site.board("user").reopen("gate"), "gate"),
    "its blocker open again, in place": (lambda site: site.set("gate", status="pending"), "second"),
    "its blocker broken": (lambda site: site.file("gate").write_text("<<<<<<< ours"), "second"),
    "its blocker gone": (lambda site: site.file("gate").unlink(), "second"),
    "taken by id": (lambda site: site.board("other").claim("first"), "second"),
    "taken and given back": (lambda site: there_and_back(site), "first"),
    "finished": (lambda site: (site.board("other").claim("first"), site.board("other").complete("first")), "second"),
    "its file gone": (lambda site: site.file("first").unlink(), "second"),
    "its file broken": (lambda site: site.file("first").write_text("{"), "second"),
    "a new file": (
        lambda site: site.file("new").write_text('{"id": "new", "subject": "s", "status": "pending"}'),
        "first",
    ),
    "the index gone": (lambda site: [path.unlink() for path in site.local.glob("index-*")], "first"),
    "all of .local gone": (lambda site: shutil.rmtree(site.local), "first"),
    "a better one": (lambda site: add(site.board("user"), "better", priority=0), "first"),
    "another taken": (lambda site: site.board("other").claim("second"), "first"),
}
"""What others may do between the choice and the commit, and what is claimed then."""


def block(site, blocker):
    site.board("user").update("first", Edit(add_blocked_by=(blocker,)))


def there_and_back(site):
    site.board("other").claim("first")
    site.board("other").release("first")


@pytest.fixture
def vouched(monkeypatch):
    """The signature of a file vouches for it at once, and it is not read again before it is written."""
    monkeypatch.setattr(folder, "RACY_NS", 0)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_so_it_does_where_the_file_is_not_read_again(site, change, vouched):
    test_what_changes_between_choice_and_commit_is_kept_and_decides(site, change)


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_choice_and_commit_is_kept_and_decides(site, change):
    between, claimed = CHANGES[change]
    board = site.board("agent", lambda: between(site))
    task = board.claim().row.task
    assert (task.id, task.owner) == (claimed, "agent")
    assert json.loads(site.file(claimed).read_text())["status"] == "in_progress"
    if "edited" in change:
        assert task.subject == json.loads(site.file("first").read_text())["subject"] == "another word"
    if change == "noted":
        assert [note["text"] for note in task.notes] == ["look here"]
    assert site.parts == [] and site.same_without_an_index()
    assert site.store().read().claim(claimed).actor == "agent"


def test_a_stale_claim_whose_holder_beats_after_all_is_not_taken_over(site):
    holder = site.board("holder")
    holder.claim("first", ttl=5)
    site.clock.sleep(minutes=6)
    site.board("other").claim("second")
    board = site.board("agent", lambda: holder.beat((), ttl=5))
    with pytest.raises(NothingActionable):
        board.claim()
    assert site.store().read().get("first").owner == "holder"


def test_a_change_that_a_killed_process_left_is_finished_first(site):
    def killed():
        disk = Disk()
        disk.link = lambda *_: os._exit(KILLED)  # the journal is there, and none of its files
        assert in_fork(lambda: site.board("user", disk=disk).create([rules.Draft("p"), rules.Draft("q")])) == KILLED
        assert (site.local / "journal").exists()

    board = site.board("agent", killed)
    assert board.claim().row.task.id == "first"
    assert sorted(task.subject for task in site.store().read()) == ["p", "q", "task first", "task gate", "task second"]
    assert not (site.local / "journal").exists() and site.same_without_an_index()


def test_who_chooses_passes_over_what_another_is_about_to_claim_and_waits_for_nobody(site):
    with site.store().write(alone=False, choosing=True) as txn:
        assert next(txn.unblocked()).id == "first"
        assert not lock.is_locked(str(site.local / "lock"))
        done = []
        thread = threading.Thread(target=lambda: done.append(ids(site.store(settings=FULL).read().unblocked())))
        thread.start()
        thread.join(10)
        assert done == [["first", "second"]]  # whoever only looks is told of both
        assert in_fork(lambda: site.board("other").claim().row.task.id == "second") == 0
    assert site.board("agent").claim().row.task.id == "first"


def test_what_nobody_else_would_take_is_claimed_under_the_lock(site):
    site.board("other").claim("second")
    with site.store().write(alone=False, choosing=True) as txn:
        assert next(txn.unblocked()).id == "first"
        # It may be that the other comes to nothing.
        assert in_fork(lambda: site.board("agent").claim().row.task.id == "first") == 0


def test_a_choice_that_was_overtaken_writes_nothing_and_keeps_nobody_waiting(site, vouched):
    with pytest.raises(Overtaken) as overtaken, site.store().write(alone=False, choosing=True) as txn:
        task = next(txn.unblocked())
        txn.apply(rules.claim(txn, site.board("agent").actor, task, None, "2026-01-01T00:00:00Z"))
        site.board("user").hold("first")
        before = site.file("first").read_bytes()
    assert site.file("first").read_bytes() == before
    assert not (site.local / "claims" / "first.json").exists() and site.parts == []
    assert overtaken.tb  # what it keeps alive holds neither the index nor the lock
    (index,) = [path for path in site.local.glob("index-*") if "-wal" not in path.name and "-shm" not in path.name]
    with contextlib.closing(sqlite3.connect(index, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
    assert not lock.is_locked(str(site.local / "lock"))


def test_what_a_killed_process_left_of_its_parts_goes_with_the_next_claim(site, monkeypatch):
    monkeypatch.setattr(ahead, "SEATS", 1)
    disk = Disk()
    disk.rename = lambda *_: os._exit(KILLED)
    for name in ("first", "first"):
        assert in_fork(site.board("killed", disk=disk).claim) == KILLED
        assert json.loads(site.file(name).read_text())["status"] == "pending"
    assert len(site.parts) == 2  # of the second, who removed those of the first
    assert site.board("agent").claim().row.task.id == "first"
    assert site.parts == []


def test_a_mark_that_came_with_a_repository_leads_nowhere(site, monkeypatch):
    monkeypatch.setattr(ahead, "SEATS", 1)
    (site.local / "lock.0.next").write_text("/../../first.json\0")
    assert site.board("agent").claim().row.task.id == "first"


def test_two_at_one_seat_whose_file_was_removed_write_each_their_own(site, monkeypatch):
    monkeypatch.setattr(ahead, "SEATS", 1)

    def other():
        (site.local / "lock.0.next").unlink()
        assert in_fork(lambda: site.board("other").claim().row.task.id == "second") == 0

    assert site.board("agent", other).claim().row.task.id == "first"
    told = {name: json.loads(site.file(name).read_text()) for name in ("first", "second")}
    assert {name: (task["id"], task["owner"]) for name, task in told.items()} == {
        "first": ("first", "agent"),
        "second": ("second", "other"),
    }


def test_a_ledger_that_was_removed_is_made_before_a_task_is_claimed(site):
    shutil.rmtree(site.local / "claims")
    site.store().read(anew=True)
    assert site.board("agent").claim().row.task.id == "first"
    assert (site.local / "claims" / "first.json").exists()


def test_who_gets_no_seat_in_time_claims_under_the_lock(site, monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE", 0.05)
    monkeypatch.setattr(ahead, "SEATS", 1)
    with lock.seat(str(site.local / "lock"), 1):
        assert site.board("agent").claim().row.task.id == "first"


def test_what_recovery_found_is_told_with_the_claim_that_comes_of_it(site):
    board = site.board("agent", lambda: site.board("user").hold("first"))
    board.store.notices.append("an edit was kept")
    assert board.claim().notices == ("an edit was kept",)


class Told(Disk):
    """Remembers what becomes durable, in its order."""

    def __init__(self):
        self.told = []

    def _sync(self, fd):
        self.told.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")
        super()._sync(fd)

    def rename(self, old, new):
        super().rename(old, new)
        self.told.append(f"rename {os.path.relpath(new, self.site.tasks)}")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="reads the names of open files from /proc")
def test_a_claim_is_answered_when_the_task_and_then_its_entry_are_on_the_disk(site):
    disk = Told()
    disk.site = site
    board = site.board("agent", disk=disk, settings=FULL)
    with board.store.write():
        pass
    disk.told.clear()
    board.claim()
    first, second, *then = disk.told
    assert first.startswith("sync part-") and second.startswith("sync part-") and first != second
    assert then == ["rename first.json", "sync .tasks", "rename .local/claims/first.json", "sync claims"]


def test_threads_that_share_a_board_claim_each_another_task(site):
    board = site.board("agent")
    for number in range(40):
        add(board, f"more-{number}")
    got, failed = [], []

    def work():
        try:
            for _ in range(8):
                got.append(board.claim().row.task.id)
        except Exception as error:  # a thread's own is lost
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == [] and len(got) == len(set(got)) == 40
    assert site.parts == [] and site.same_without_an_index()


def test_a_seat_is_had_by_one_thread_of_one_process_at_a_time(tmp_path):
    path = str(tmp_path / "lock")
    with lock.seat(path, 1) as place, place.lock():
        refused = []

        def other():
            with pytest.raises(Locked) as told, lock.seat(path, 1, deadline=0.05):
                pass
            refused.append(str(os.getpid()) in told.value.message)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        assert refused == [True]
    with lock.seat(path, 1, deadline=0.05):
        pass


def locked(path):
    with lock.lock(path, deadline=10):
        return True


def test_seats_are_beside_each_other_and_only_their_lock_is_alone(tmp_path):
    path = str(tmp_path / "lock")
    with lock.seat(path, 1):  # whoever changes something else is kept waiting by no choice
        assert in_fork(lambda: locked(path)) == 0
