"""What the task files of a large folder hold, in `.local/index-BOOT`, so that no command need read all of them.

Derived, never needed, never trusted over a file: whoever grants or completes something reads the files themselves. It
may be removed at any time; one of another boot, of another version or one that SQLite cannot read is made anew. What
vouches for it:

- up to LOOK_AT_ALL files, the signatures of all of them, each time;
- above, the folder's time stamp, which every file that appears, goes or is replaced changes. A write of ours looks at
  it under the board's lock, and carries index and stamp on only if nobody else's change lies before it. The stamp that
  it then sets is none that the kernel gives, so that any later change shows, be it in the same tick of the clock;
- and a complete look now and then, for editors that write into a file in place, or just while a write of ours goes on.
"""

from __future__ import annotations

import os
import time

from ...core.light import cached_property, suppress
from ..base import Outdated
from .folder import ARCHIVE, RACY_NS, SUFFIX, read_each
from .ledger import boot_id
from .sqlite import Connections, Error, connect, is_busy, path_in, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from sqlite3 import Connection, Cursor
    from typing import Any

    from .disk import Disk, Signature
    from .ledger import Ledger
    from .tables import Beside, Pair, Written

VERSION = 6
LOOK_AT_ALL = 1000
"""Up to so many files, each is compared with its signature at every read: some milliseconds."""
LATE, SPARING, LATEST = 15.0, 30, 60.0
"""Everything is looked at again after so many seconds, or so many times as long as that took, within a minute."""
PAUSE = 0.005
PATIENCE, A_FILE = 1.0, 0.0001
"""Seconds to wait for a process that takes in a whole board, at least and a file: to read all would take no longer."""
TICKS_NS = 50_000_000
"""Longer than what lies between two time stamps that the kernel gives one after the other."""
ENTRY = "SELECT entry FROM files LEFT JOIN entries USING (id) WHERE open AND files.id = ?"


class Busy(Exception):
    """The folder changes faster than it can be looked at."""


class About:
    """What the index says of itself.

    stamps: those of the folder and of the ledger. settled: they are old enough, or odd enough, to vouch for that.
    archive: what changes when a task comes to the archive, or goes.
    looked, cost: when everything was looked at, and how long that took. unranked: some ranks may be wrong.
    rings: tasks wait for each other, so that no rank follows from others.
    """

    def __init__(self, *row: Any) -> None:
        self.stamps: tuple[int, int] = row[:2]
        self.settled, self.looked, self.cost, self.archive, self.files, self.open = row[2:8]
        self.changes, self.unranked, self.rings = row[8:]

    @classmethod
    def of(cls, connection: Connection) -> About | None:
        """None when there is nothing to go by: no tables yet, those of another version, or of another boot."""
        try:
            row = connection.execute("SELECT * FROM about").fetchone()
        except Error as error:
            if "no such table" in str(error):
                return None
            raise
        return cls(*row[2:]) if row and row[:2] == (VERSION, boot_id()) else None

    def write(self, connection: Connection) -> None:
        """Keep stamps and times."""
        connection.execute(
            "UPDATE about SET changes = changes + 1, "
            "tasks = ?, claims = ?, archive = ?, settled = ?, looked = ?, cost = ?",
            (*self.stamps, self.archive, int(self.settled), self.looked, self.cost),
        )


class Reading:
    """One state of the index, for as long as this lives. looked: every file was just now compared with it."""

    def __init__(self, index: Index, connection: Connection, *, looked: bool) -> None:
        self._index, self.looked = index, looked
        self._connection: Connection | None = connection
        self._asking: list[Cursor] = []
        self._about: About | None = None
        self._carried = False

    def rows(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """What SQLite answers. Raises Outdated when the index is damaged."""
        assert self._connection, "this state is no longer kept"
        try:
            self._asking.append(cursor := self._connection.execute(query, [*map(storable, values)]))
            yield from cursor
        except Error as error:
            raise self._damaged(error) from None

    def row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """The first row that SQLite answers. Raises Outdated when the index is damaged."""
        assert self._connection, "this state is no longer kept"
        try:
            found: tuple[Any, ...] | None = self._connection.execute(query, [*map(storable, values)]).fetchone()
        except Error as error:
            raise self._damaged(error) from None
        return found

    def _damaged(self, error: Exception) -> Outdated:
        self._index.connections.discard(error)
        return Outdated(f"the index of the board was damaged ({error}) and is made anew")

    def entry(self, task_id: str) -> str | None:
        """The text of an open task's ledger entry, None when there is none; "" when the file knows."""
        row = self.row(ENTRY, task_id)
        return row[0] if row else ""

    def carry(self, written: Written) -> None:
        """Take what we have just written under the board's lock into the index. Nothing is asked after that."""
        if self._connection and (written.found or written.gone or written.known):
            self._stop_asking()
            self._index.carry(self._connection, written, self._about)
            self._carried = True

    def renew(self) -> bool:
        """Go on with the state of now, for one who holds the board's lock. Returns whether it speaks for what is there.

        Raises Outdated when another process keeps the index.
        """
        assert self._connection, "this state is no longer kept"
        self._stop_asking()
        try:
            self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN IMMEDIATE")
            self._about = About.of(self._connection)
        except Error as error:
            raise self._damaged(error) from None
        about = self._about
        return about is not None and all(about.stamps) and not self._index.is_behind(about)

    def end(self) -> None:
        """Answer no more: a state that is kept keeps SQLite from tidying up, and the connection from its next use."""
        if self._connection:
            self._stop_asking()
            if self._carried:
                self._index.connections.fold(self._connection)
            self._index.connections.close(self._connection)
            self._connection = None

    def _stop_asking(self) -> None:
        # A question that was not asked to its end would keep the connection at this state.
        for cursor in self._asking:
            cursor.close()
        self._asking = []

    def __del__(self) -> None:
        self.end()


class Index:
    """The index of one board."""

    def __init__(self, disk: Disk, board: str, ledger: Callable[[], Ledger]) -> None:
        self._disk, self._board, self._ledger = disk, board, ledger
        self._local, self._claims = os.path.join(board, ".local"), os.path.join(board, ".local", "claims")
        self.path = path_in(self._local, boot_id())
        self.connections = Connections(self.path)
        self._waits_until = float("-inf")

    @cached_property
    def _beside(self) -> Beside:
        from . import tables  # imported late, as below: most reads find nothing that is to be taken in

        return tables.Beside(self._ledger, self._disk, self._board)

    @property
    def exists(self) -> bool:
        """Whether there is one, as far as that is known without opening it."""
        return self.may_be and self._disk.exists(self.path)

    @property
    def may_be(self) -> bool:
        """Whether there can be one: in a folder of the board's own, whatever links came with a repository."""
        return connect is not None and self.path != "" and self._disk.is_folder(self._local)

    @property
    def stamps(self) -> tuple[int, int]:
        """What changes when a task file, or an entry of the ledger, appears, goes or is replaced."""
        tasks, claims = self._disk.seen(self._board), self._disk.seen(self._claims)
        return tasks[0] if tasks else 0, claims[0] if claims else 0

    @property
    def archive(self) -> int:
        """What changes when a file appears in the archive, or goes, by whomever; another one while that is too new."""
        folder = os.path.join(self._board, ARCHIVE)
        if not self._disk.is_folder(folder):
            return 0
        now = time.time_ns()
        stamps = [
            seen[0] for seen in (self._disk.seen(folder), *(seen for _, seen in self._disk.names(folder))) if seen
        ]
        return sum(stamps) % (1 << 62) if all(_is_past(stamp, now) for stamp in stamps) else -now

    def read(self, doubt: Callable[[About], bool]) -> Reading | None:
        """A state of the index of which there is no doubt that it speaks for the folder; None when there can be none.

        doubt: what calls for a look at everything.
        """
        if not self.may_be:
            return None
        discarded = False
        while True:
            try:
                return self._read(doubt)
            except (Busy, OSError):
                return None
            except Error as error:
                if is_busy(error):
                    if self._has_patience():
                        time.sleep(PAUSE)  # not every kind of lock is waited for by SQLite
                        continue
                    return None
                if discarded or not self.connections.discard(error):
                    return None
                discarded = True

    def _has_patience(self) -> bool:
        """Whether to try again what another process keeps from us; it may be stopped, and then nobody waits for it."""
        now = time.monotonic()
        if now > self._waits_until + PATIENCE:  # for this one we have not waited yet
            self._waits_until = now + max(PATIENCE, A_FILE * self._disk.count(self._board))
        return now < self._waits_until

    def _read(self, doubt: Callable[[About], bool]) -> Reading:
        connection, looked = self.connections.open(), False
        try:
            connection.execute("BEGIN")
            about = About.of(connection)  # the state is that of the first look at it
            if about is None or about.unranked or doubt(about):
                connection.execute("ROLLBACK")
                # Asked once more: a write may have come between that state and the look at the folder.
                looked = self._refresh(connection, doubt)
                if not looked:
                    _rank(connection)
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM about").fetchone()
        except BaseException:
            self.connections.close(connection)
            raise
        return Reading(self, connection, looked=looked)

    def carry(self, connection: Connection, written: Written, about: About | None) -> None:
        """See `Reading.carry`. connection: a state of the index from before we wrote. about: what that says of itself.

        Leaves the index as it is, and so in doubt, when anybody else may have changed something.
        """
        with suppress(Error, OSError):
            try:
                self._carry(connection, written, about or About.of(connection))
            except Error:  # somebody looked at the folder meanwhile
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                self._carry(connection, written, About.of(connection))

    def _carry(self, connection: Connection, written: Written, about: About | None) -> None:
        if about and about.settled and about.stamps == written.before:
            from . import tables

            # Not settled, they are read again before anybody goes by them alone: we need not look at what lies there.
            pairs = [(os.fsencode(each.name), each) for each in written.found]
            tables.take_in(connection, pairs, [*map(os.fsencode, written.gone)], self._beside, written.known)
            self._carry_stamps(connection, about)
            connection.execute("COMMIT")

    def _carry_stamps(self, connection: Connection, about: About) -> None:
        # Those that nothing was written to are as they were.
        tasks, ledger = (
            self._disk.stamp(folder, now, known) if now != known else known
            for folder, known, now in zip((self._board, self._claims), about.stamps, self.stamps, strict=True)
        )
        about.stamps, about.settled = (tasks or 0, ledger or 0), bool(tasks and ledger)
        about.write(connection)

    # Looking

    def _refresh(self, connection: Connection, doubt: Callable[[About], bool]) -> bool:
        """Bring the index up to the folder where that is in doubt. Returns whether everything was looked at."""
        for attempt in range(3):
            about = About.of(connection)
            if about and not doubt(about):
                return False
            if about is None or attempt:
                connection.execute("BEGIN IMMEDIATE")
                now = About.of(connection)
                if about is None and now is not None:  # somebody made it while we waited
                    connection.execute("ROLLBACK")
                    continue
                about = now
            if self._look(connection, about):
                return True
        raise Busy

    def is_behind(self, about: About) -> bool:
        """Whether the folder is another one than the index was carried on with."""
        return not about.settled or about.stamps != self.stamps

    def in_doubt(self, about: About, locked: Callable[[], bool]) -> bool:
        """Whether the folder may be another one. locked: whether a writer is at work, who will carry the index on."""
        # A process may have been stopped while it looked, and a clock that went back is none to go by.
        late = not 0 <= time.monotonic() - about.looked <= min(max(LATE, SPARING * about.cost), LATEST)
        if about.files <= LOOK_AT_ALL or late:
            return True
        return (self.is_behind(about) or about.archive != self.archive) and not locked()

    def _look(self, connection: Connection, about: About | None) -> bool:
        """Compare every file with what is known of it and take in what differs. False: somebody else did meanwhile."""
        began, stamps, archive, now = time.monotonic(), self.stamps, self.archive, time.time_ns()
        if about is None:
            from .bulk import make

            make(connection, self._disk, self._board, self._beside, (VERSION, boot_id()))
        elif (taken := self._catch_up(connection, about, stamps, archive)) is not None:
            return taken
        from . import tables

        if about and about.archive != archive:
            tables.look_into_archive(connection, self._beside)
        tables.count_ranks(connection)
        settled = all(map(_is_past, stamps, (now, now))) or bool(about and about.settled and about.stamps == stamps)
        ended = time.monotonic()
        About(*stamps, settled, ended, ended - began, archive, 0, 0, 0, 0, 0).write(connection)
        connection.execute("COMMIT")
        self.connections.fold(connection)
        return True

    def _catch_up(self, connection: Connection, about: About, stamps: tuple[int, int], archive: int) -> bool | None:
        """Take in what differs. True when there was nothing, False when somebody else did so meanwhile."""
        found, gone = self._read_files(self._changed(connection))
        if not connection.in_transaction:
            same = about.stamps == stamps and about.settled and not (found or gone or about.unranked)
            same = same and about.archive == archive
            if same and about.files <= LOOK_AT_ALL:
                return True
            connection.execute("BEGIN IMMEDIATE")
            again = About.of(connection)
            if again is None or again.changes != about.changes:
                connection.execute("ROLLBACK")
                return False
        from . import tables

        tables.take_in(connection, found, gone, self._beside, {})
        if stamps != about.stamps:
            tables.take_in_claims(connection, None, self._beside)
        return None

    def _changed(self, connection: Connection) -> Iterator[tuple[bytes, Signature | None]]:
        """The names that are new or of another signature than the index knows; those that are gone have none."""
        known = connection.execute("SELECT name, settled, mtime, ctime, size, ino FROM files ORDER BY name")
        row = known.fetchone()
        for name, seen in self._disk.listed(self._board, SUFFIX):
            while row and row[0] < name:
                yield row[0], None
                row = known.fetchone()
            if not row or row[0] != name:
                yield name, seen
                continue
            if row[1:] != (1, *seen):
                yield name, seen
            row = known.fetchone()
        while row:
            yield row[0], None
            row = known.fetchone()

    def _read_files(self, names: Iterable[tuple[bytes, Signature | None]]) -> tuple[list[Pair], list[bytes]]:
        """What these files hold, and the names of those that are gone."""
        listed = list(names)
        found = list(read_each(self._disk, self._board, listed))
        there = {name for name, _ in found}
        return found, [name for name, _ in listed if name not in there]


def _is_past(stamp: int, now: int) -> bool:
    """Whether what changes from now on gets a later stamp: whole seconds are those of a coarse clock."""
    return stamp < now - (RACY_NS if stamp % 1_000_000_000 == 0 else TICKS_NS)


def _rank(connection: Connection) -> None:
    """Count the ranks anew that a verb of ours may have changed: for that, no file need be looked at."""
    about = About.of(connection)
    if about and about.unranked:
        from . import tables

        connection.execute("BEGIN IMMEDIATE")
        tables.count_ranks(connection)
        connection.execute("COMMIT")
