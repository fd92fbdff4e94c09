"""A board of files: `.tasks/`, one JSON file a task, and `.tasks/.local/` for what belongs to this machine alone."""

from __future__ import annotations

import errno
import os
import time

from ...core.errors import Invalid, Locked, Unreadable, Unwritable
from ...core.light import cached_property, contextmanager, suppress
from ...core.model import Settings
from ...core.view import Overlay
from ..base import Overtaken, Txn, Watch, require_here
from .disk import DISK, Changed, Prepared, Unsettled, Write, part_at, write_all
from .folder import Folder, promised
from .index import Index
from .indexed import IndexView
from .journal import Journal
from .ledger import Ledger
from .strict import encode
from .view import FileView, Scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from ...core.view import View
    from .ahead import Choosing
    from .disk import Disk
    from .index import About, Reading
    from .lock import Seat
    from .moved import Moved
    from .writing import Writing

LOCAL = ".local"
INDEX_FROM = 100
BATCH = 500
"""How many tasks are archived while others wait."""
HOUR_NS = 3_600_000_000_000
JUST_NOW = 0.5
"""Seconds for which a writer need not look at the folder before it waits for the lock: it has just done so."""
READ_RETRIES = 20
"""How often a reader starts again when changes of several files keep coming in between."""


class FileStore:
    """The board in `path`, a `.tasks` folder. `monotonic`: seconds, by which leases lapse. `disk`: for proofs.

    notices: what recovery found, for a person. index_from: from how many files on there is an index; None for never.
    """

    def __init__(
        self,
        path: str,
        settings: Settings | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        disk: Disk = DISK,
        index_from: int | None = INDEX_FROM,
    ) -> None:
        self.path = self.address = path
        self.settings = settings or Settings()
        self.notices: list[str] = []
        self._monotonic, self._disk = monotonic, disk
        self._folder = Folder(path, disk)
        self._local = os.path.join(path, LOCAL)
        self._durable = self.settings.durability == "full"
        self._journal = Journal(disk, path, durable=self._durable)
        self._index_from = index_from
        self._looked = float("-inf")
        self.bound_for = ""  # a move there that was broken off may be made again
        self._index = Index(disk, path, lambda: self._ledger(disk, {}))

    def read(self, *, anew: bool = False) -> View:
        """The board as its files say now, whole transactions only. Writes nothing. Raises Unreadable, Locked."""
        try:
            for _ in range(READ_RETRIES):
                before = self._journal.mark
                view = self._view(self._disk, self._reading(whole=anew))
                # What was committed or applied while we looked, we may have seen half of.
                if self._journal.mark == before:
                    return view
            with self._lock():  # so busy a board that there is no moment between two changes
                return self._view(self._disk, None)
        except OSError as error:
            way = "see that this process may read it"
            raise Unreadable(f"the board {self.path} cannot be read: {_told(error)}", next=way) from None

    @contextmanager
    def write(self, *, alone: bool = True, choosing: bool = False) -> Iterator[Txn]:  # noqa: ARG002 - see `_locked`
        """A transaction. Raises Locked, Unwritable, ReadOnly, Invalid, and Overtaken when it is choosing."""
        txn = None
        ahead = choosing and self._index_from is not None and os.name == "posix" and self._index.exists
        try:
            with self._ahead() if ahead else self._locked() as txn:
                yield txn
        except OSError as error:
            if txn is not None:  # it comes from the block
                raise
            raise self._unwritable(error) from None

    @contextmanager
    def _locked(self) -> Iterator[Txn]:
        """All of it under the board's lock: whoever has that is alone."""
        from .sure import Sure  # imported late, as below: most commands only read

        self._settle_in()
        self._look_anew()  # what others changed is looked at before anybody has to wait for us
        with self._lock() as still_locked:
            moved = self._moved()  # perhaps just now
            require_here(moved if moved != self.bound_for else "")
            self.notices += self._journal.recover()
            view = self._view(Sure(self._disk), self._reading(self._index.is_behind), sure=True)
            assert isinstance(view, FileView)  # what was committed before us is applied
            txn = Txn(view)
            yield txn
            if not still_locked():
                told = "the board's lock file was removed while this command ran; nothing was written"
                raise Locked(told, next="repeat the command; leave .local alone while others work")
            self._keep(view, lambda: self._commit(self._writing(view, txn), txn))

    @contextmanager
    def _ahead(self) -> Iterator[Txn]:
        """Only its commit under the board's lock. Raises Overtaken whatever is in the way."""
        from .ahead import PATIENCE, SEATS, SEATS_AT_A_DISK, Choosing
        from .lock import seat
        from .sure import Sure

        self._look_anew()
        seats = SEATS_AT_A_DISK if self._durable else SEATS
        try:
            with seat(self._in_local("lock"), seats, PATIENCE) as place:
                for n in (0, 1) if place.last else ():
                    with suppress(FileNotFoundError):  # there is one only when that process was killed
                        self._disk.unlink(part_at(self._local, place.last, n))
                reading = self._index.read(lambda _: False)  # whether it speaks for the folder is asked under the lock
                if reading is None:
                    raise Overtaken("the index cannot be read; nothing was written")
                disk = Sure(self._disk)
                view = Choosing(reading, disk, self.path, self._ledger(disk, {}), self.settings, sure=True)
                try:
                    txn = Txn(view, alone=False)
                    yield txn
                    if txn.changed:
                        self._keep(view, lambda: self._commit_ahead(view, txn, place))
                finally:
                    view.end()
                    view.let_go()
        except Locked as held:
            raise Overtaken(held.message) from None

    def _look_anew(self) -> None:
        if time.monotonic() - self._looked > JUST_NOW:
            self._reading()

    def _commit_ahead(self, view: Choosing, txn: Txn, seat: Seat) -> None:
        """As `_commit` does it, with the parts written before the lock is taken, and the last folder settled after."""
        stands = False
        try:
            writing = self._writing(view, txn)
            journal = self._takes_journal(writing, txn)
            tasks, entries = (
                Prepared(
                    self._disk, [] if journal else each, self._local, durable=self._durable, mark=seat.mark, first=n
                )
                for n, each in enumerate((writing.tasks, writing.entries))
            )
            with tasks, entries, seat.lock():
                self._require_standing(view, txn)
                stands, before = True, self._index.stamps
                if journal:
                    self._commit(writing, txn)
                    return
                tasks.appear()
                tasks.settle()
                with self._after_task(writing):
                    entries.appear()
                self._carry(writing, before)
        except (OSError, Unreadable, Unwritable) as error:
            if stands and not isinstance(error, Changed):
                raise
            raise Overtaken("the task was changed while it was about to be claimed; nothing was written") from None
        self._record(txn)
        with self._after_task(writing):
            entries.settle()

    def _require_standing(self, view: Choosing, txn: Txn) -> None:
        if self._moved() or self._journal.is_there or not view.stands(txn.changed):
            raise Changed

    def _writing(self, view: FileView, txn: Txn) -> Writing:
        from .writing import Writing

        return Writing(self._disk, self.path, view, txn)

    def _keep(self, view: FileView, commit: Callable[[], None]) -> None:
        """Write what a transaction changed. Raises Unwritable, ReadOnly, Invalid."""
        try:
            commit()
            view.end()
        except FileExistsError as error:
            taken = error.filename2 or error.filename or error.args[0]
            raise Invalid(f"{taken} exists already", next="choose another id") from None
        except Changed as error:
            raise Unwritable(f"{_told(error)}; nothing was written", next="repeat the command") from None
        except Unsettled as error:
            told = f"the change is written, but not confirmed by the disk ({error.strerror}): a power cut may undo it"
            way = "look at the disk; `taskwall show` tells how the task stands"
            raise Unwritable(told, next=way) from None
        except OSError as error:
            raise self._unwritable(error) from None

    @cached_property
    def _moved(self) -> Moved:
        from .moved import Moved  # imported late: most commands only read

        return Moved(self.path, self._disk)

    def events(self, task_id: str | None = None, since: str | None = None) -> list[dict[str, Any]]:
        """What happened, oldest first; at or after `since`, an RFC 3339 time as in `at`, when it is given."""
        from .history import read_events  # imported late: no hot command asks

        found = read_events(self._disk, self._in_local("events.jsonl"), since)
        return [event for event in found if task_id in (None, event.get("task"))]

    def archive(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """Move finished tasks to the archive, in batches between which others may write. Raises Unwritable, Locked."""
        gone: list[str] = []
        for start in range(0, max(len(ids), 1), BATCH):
            gone += self._archive(ids[start : start + BATCH])
        return gone, [task_id for task_id in ids if task_id not in {*gone}]

    def _archive(self, ids: Sequence[str]) -> list[str]:
        from .archive import Archive
        from .tables import Written

        archive = Archive(self._disk, self.path)
        with self.write() as txn:
            view = txn.below
            assert isinstance(view, FileView)
            before = self._index.stamps
            try:
                names = {i: view.in_file(i)[0] for i in ids if i in view}
                gone = [i for i, name in names.items() if archive.take(name, view.in_file(i)[1])]
                if gone and self._durable:
                    archive.settle()
                view.carry(Written(before, gone=[names[i] for i in gone]))
                write_all(self._disk, [Write(self._in_local("archived"), "\n")], self._local, durable=False)
            except OSError as error:
                raise self._unwritable(error) from None
        return gone

    def is_tidy(self) -> bool:
        """Whether tasks were archived within the last hour."""
        seen = self._disk.seen(self._in_local("archived"))
        return seen is not None and 0 <= time.time_ns() - seen[0] < HOUR_NS

    def watch(self) -> Watch:
        """Notices changes of task files, claims and history from now on, those of editors and git too."""
        return Watch(self._look)

    def _look(self) -> list[object]:
        found: list[object] = []
        with suppress(OSError):
            found += self._disk.names(self.path)
            found += [self._disk.seen(self._in_local(name)) for name in ("events.jsonl", "claims")]
        return found

    def _view(self, disk: Disk, reading: Reading | None, *, sure: bool = False) -> FileView | Overlay:
        """disk: by which the claim ledger and, when sure, the files asked for are read."""
        if reading is None:
            self._folder.look()
        pending = {} if sure else self._journal.pending()  # whoever has the lock has finished what was
        ledger = self._ledger(disk, pending, None if sure else reading)
        if reading is None:
            return Scan(self._folder, disk, ledger, self.settings, pending)
        view = IndexView(reading, disk, self.path, ledger, self.settings, sure=sure)
        promises = [promised(name, text).task for name, text in pending.items() if "/" not in name]
        return Overlay(view, map(view.settled, promises)) if promises else view

    def _reading(self, doubt: Callable[[About], bool] | None = None, *, whole: bool = False) -> Reading | None:
        """The index, where there is one or the folder is large enough for it to pay.

        doubt: what calls for a look at the folder, when it has been looked at just before. whole: look in any case.
        """
        if self._index_from is None or not (self._index.exists or self._is_large(self._index_from)):
            return None
        if doubt is None:
            self._looked = time.monotonic()
            doubt = lambda about: whole or self._index.in_doubt(about, self._is_locked)  # noqa: E731
        return self._index.read(doubt)

    def _is_large(self, files: int) -> bool:
        # Only where a verb has written before: until then, nothing keeps an index out of git.
        return self._is_settled(self._in_local(".gitignore")) and self._disk.count(self.path) >= files

    def _ledger(self, disk: Disk, pending: Mapping[str, str], reading: Reading | None = None) -> Ledger:
        known = reading.entry if reading else None
        return Ledger(disk, self._in_local("claims"), self._monotonic, pending, known)

    def _lock(self) -> AbstractContextManager[Callable[[], bool]]:
        from .lock import lock  # imported late: who reads needs none

        return lock(self._in_local("lock"))

    def _is_locked(self) -> bool:
        from .lock import is_locked

        return is_locked(self._in_local("lock"))

    def _in_local(self, name: str) -> str:
        return f"{self._local}{os.sep}{name}"

    def _settle_in(self) -> None:
        """Once a board: its folders reach the disk, then `.gitignore` says that they have."""
        for folder in (self._local, self._in_local("claims")):
            if not self._disk.is_folder(folder):
                self._disk.make_folder(folder)
                if not self._disk.is_folder(folder):
                    raise OSError(errno.ENOTDIR, f"{folder} is not a folder of its own")
        ignore = self._in_local(".gitignore")
        if self._is_settled(ignore):
            return
        with self._lock():
            if self._is_settled(ignore):
                return
            if self._durable:
                self._disk.sync_folder(self._local)
                self._disk.sync_folder(self.path)
                with suppress(OSError):  # the folder above may not be ours to open
                    self._disk.sync_folder(os.path.dirname(os.path.abspath(self.path)))
            write_all(self._disk, [Write(ignore, "*\n")], self._local, durable=self._durable)

    def _is_settled(self, ignore: str) -> bool:
        seen = self._disk.seen(ignore)
        # An empty one is the trace of a power cut, and would let git take what is machine-local.
        return seen is not None and seen[2] > 0

    def _commit(self, writing: Writing, txn: Txn) -> None:
        """Several task files go through the journal, with their claims: all or none.

        One task file is its own commit point. Its claim follows, and is read together with the file if it does not; but
        a lease must not be lost with its entry, for the claim would then never lapse.
        """
        before = self._index.stamps
        if self._takes_journal(writing, txn):
            # Readers go by the index as soon as there is no journal to read through.
            carry = lambda: self._carry(writing, before)  # noqa: E731
            self.notices += self._journal.commit([*writing.tasks, *writing.entries], carry)
        else:
            write_all(self._disk, writing.tasks, self._local, durable=self._durable)
            if self._durable and not writing.tasks:
                # What we answer with may be the work of a process that was killed before it reached the disk.
                for folder in (self.path, self._in_local("claims")):
                    self._disk.sync_folder(folder)
            with self._after_task(writing):
                write_all(self._disk, writing.entries, self._local, durable=self._durable)
            self._carry(writing, before)
        for path in writing.left:
            with suppress(OSError):  # the task is back; what stays behind is passed over
                self._disk.unlink(path)
        self._record(txn)

    def _takes_journal(self, writing: Writing, txn: Txn) -> bool:
        leased = any(claim.open and claim.ttl is not None for claim in txn.claimed.values())
        return len(writing.tasks) > 1 or bool(writing.tasks and leased)

    def _carry(self, writing: Writing, before: tuple[int, int]) -> None:
        from .tables import Written

        writing.view.carry(Written(before, writing.found.values(), known=writing.standing))

    def _record(self, txn: Txn) -> None:
        if txn.log:
            with suppress(OSError):  # history alone is no reason to call a change that is kept a failure
                lines = "".join(encode(event) + "\n" for event in txn.log)
                self._disk.append(self._in_local("events.jsonl"), lines.encode())

    @contextmanager
    def _after_task(self, writing: Writing) -> Iterator[None]:
        """While its claim is written. Raises Unwritable, which says what is there by then."""
        try:
            yield
        except OSError as error:
            if not writing.tasks:
                raise
            way = "make room and see that the folder may be written; `taskwall show` tells how the task stands"
            raise Unwritable(f"the task is written, but its claim may not be: {_told(error)}", next=way) from None

    def _unwritable(self, error: OSError) -> Unwritable:
        way = f"allow this process to write in {self.path}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            way = "make room on the disk and repeat the command"
        return Unwritable(f"the board {self.path} cannot be written: {_told(error)}; nothing was changed", next=way)


def _told(error: OSError) -> str:
    """What is wrong, and with which file."""
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
