"""The tables of the index (see `index`), and how files are taken into them. A row a file, an edge a wait.

Finished tasks, which are most and which few ask for, have no text here: their files are read. A file that holds no
task, and files that claim one id together, have rows that nothing is derived from: what they are the view tells, for
there are few.
"""

from __future__ import annotations

from ...core.claims import is_held
from ...core.graph import longest_chains, runs
from ...core.model import CLOSED, COMPLETED, IN_PROGRESS
from .archive import Archive
from .folder import task_of
from .sqlite import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from sqlite3 import Connection
    from typing import Any

    from ...core.model import Task
    from .disk import Disk
    from .folder import Found
    from .ledger import Ledger

    Pair = tuple[bytes, Found]
    Standing = tuple[str | None, bool]
    """The text of a task's ledger entry, None without one, and whether the task is in progress, given that."""
    Rows = tuple[list[tuple[Any, ...]], list[tuple[str, str, int]]]  # of the files, and of the edges that they tell


TABLES = """
CREATE TABLE about (
  version, boot, tasks, claims, settled, looked, cost, archive, files, open, changes, unranked, rings
);
CREATE TABLE files (
  name BLOB PRIMARY KEY, settled, mtime, ctime, size, ino, id, flaw, open, done, held, waits, priority, rank, created,
  natural, subject, key, parent, text
);
CREATE TABLE entries (id PRIMARY KEY, entry) WITHOUT ROWID;
CREATE TABLE edges (task, blocker, wild);
CREATE TABLE archived (id PRIMARY KEY);
CREATE TABLE twins (id PRIMARY KEY);
"""
TO_DERIVE_BY = """
CREATE INDEX by_id ON files (id, open, done, flaw);
CREATE INDEX by_parent ON files (parent) WHERE parent IS NOT NULL;
CREATE INDEX by_blocker ON edges (blocker);
CREATE INDEX by_task ON edges (task);
"""
TO_ANSWER_BY = """
CREATE INDEX by_age ON files (created, natural, id) WHERE open;
CREATE INDEX offered ON files (priority, rank DESC, created, natural, id) WHERE open AND NOT waits AND NOT held;
CREATE INDEX by_key ON files (key) WHERE key IS NOT NULL;
CREATE INDEX in_progress ON files (held) WHERE held;
CREATE INDEX flawed ON files (flaw) WHERE flaw IS NOT NULL;
CREATE INDEX one_sided ON edges (task) WHERE wild;
"""
INSERT = """
INSERT INTO files VALUES (
  ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, 0, ?, 0, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?
)
"""
UPDATE = """
UPDATE files SET settled = ?, mtime = ?, ctime = ?, size = ?, ino = ?, priority = ?, subject = ?, text = ?, held = ?
WHERE name = ? AND (id, open, done, created) = (?, ?, ?, ?) AND key IS nullif(?, '') AND parent IS nullif(?, '')
AND flaw IS NULL
AND NOT EXISTS (SELECT 1 FROM twins t WHERE t.id = files.id)
AND NOT EXISTS (SELECT 1 FROM edges WHERE blocker = files.id AND wild)
"""
"""Where all is as it was that other rows and edges follow from, and nothing is odd about the task."""
OPEN = "SELECT name, text, entry, held FROM files LEFT JOIN entries USING (id) WHERE open AND files.id = ?"
STAND = "UPDATE files SET held = ? WHERE open AND id = ?"
KEEP = "REPLACE INTO entries SELECT id, ? FROM files WHERE open AND id = ?"
DOUBLED = "SELECT id FROM files WHERE flaw IS NULL GROUP BY id HAVING count(*) > 1"
UNKNOWN = """
SELECT DISTINCT blocker FROM edges
WHERE NOT EXISTS (SELECT 1 FROM files WHERE id = blocker) AND NOT EXISTS (SELECT 1 FROM archived WHERE id = blocker)
"""
SET_WAITS = """
UPDATE files SET waits = EXISTS (
  SELECT 1 FROM edges e WHERE e.task = files.id
  AND NOT EXISTS (SELECT 1 FROM files b WHERE b.id = e.blocker AND b.done)
  AND NOT EXISTS (SELECT 1 FROM archived a WHERE a.id = e.blocker)
) OR EXISTS (SELECT 1 FROM files c WHERE c.parent = files.id AND c.open)
WHERE open
"""
"""Tells only where to look first: what a task waits for, `core.state` decides when it is asked about."""

UPSTREAM = "SELECT blocker FROM edges WHERE task = ? UNION SELECT id FROM files WHERE parent = ?"
RANKS = """
SELECT rank, (
  SELECT coalesce(max(w.rank) + 1, 0) FROM files w
  WHERE w.open AND w.id IN (SELECT task FROM edges WHERE blocker = f.id UNION ALL SELECT f.parent)
) FROM files f WHERE open AND id = ?
"""
"""What the rank of a task is said to be, and what it is if those of the tasks behind it are right."""
LINKS = """
SELECT b.rowid, t.rowid FROM files t CROSS JOIN edges e ON e.task = t.id CROSS JOIN files b ON b.id = e.blocker
WHERE t.open AND b.open
UNION ALL SELECT c.rowid, p.rowid FROM files c JOIN files p ON p.id = c.parent WHERE c.open AND p.open
"""
ROOMY, USUAL = -64_000, -2_000
"""Kilobytes of an index that SQLite keeps in memory: while it is made, and after."""
MOST_MENDED = 500
"""How many ranks are looked at one by one before all are counted anew."""


class Beside:
    """What must be known of tasks beside their files: the ledger's entries, and what lies in the archive."""

    def __init__(self, ledger: Callable[[], Ledger], disk: Disk, board: str) -> None:
        self._ledger, self._disk, self._board = ledger, disk, board

    def claimed(self) -> set[str]:
        """The ids of all tasks that have an entry in the ledger."""
        return self._ledger().known()

    def entry(self, task_id: str) -> str | None:
        """The text of the ledger's entry for a task."""
        return self._ledger().text(task_id)

    def is_held(self, task: Task, entry: str | None) -> bool:
        """Whether a task with this entry is in progress."""
        ledger = self._ledger()
        ledger.prime(task.id, entry)
        return is_held(task, ledger.get(task.id), ledger.ended(task.id))

    def archived(self, ids: Iterable[str]) -> list[str]:
        """Which of these tasks lie in the archive."""
        archive = Archive(self._disk, self._board)
        return [task_id for task_id in ids if archive.get(task_id)]


class Written:
    """What was written under the board's lock: files, the names of those that are gone, and how some tasks stand now.

    before: the stamps until then.
    """

    def __init__(
        self,
        before: tuple[int, int],
        found: Collection[Found] = (),
        gone: Sequence[str] = (),
        known: Mapping[str, Standing] | None = None,
    ) -> None:
        self.before, self.found, self.gone, self.known = before, found, gone, known or {}


def run(connection: Connection, script: str) -> None:
    """Execute statements within the transaction that is open, which `executescript` would end."""
    for statement in filter(str.strip, script.split(";")):
        connection.execute(statement)


def fill(connection: Connection, every: Iterable[Rows], beside: Beside) -> None:
    """Take the rows of all files of a folder into empty tables."""
    count = 0
    connection.execute(f"PRAGMA cache_size = {ROOMY}")
    for rows in every:
        count += len(rows[0])
        _insert(connection, rows)
    run(connection, TO_DERIVE_BY)
    take_in_claims(connection, None, beside)
    _set_twins_apart(connection, connection.execute(DOUBLED).fetchall())
    _look_into_archive(connection, (i for (i,) in connection.execute(UNKNOWN).fetchall()), beside)
    connection.execute(SET_WAITS)
    connection.execute("UPDATE about SET unranked = 1, files = ?", (count,))
    count_ranks(connection)
    run(connection, TO_ANSWER_BY)  # only now: else each of them would be set right again with what it is made of
    connection.execute("UPDATE about SET open = (SELECT count(*) FROM files WHERE open)")
    connection.execute(f"PRAGMA cache_size = {USUAL}")


def _insert(connection: Connection, rows: Rows) -> None:
    connection.executemany(INSERT, rows[0])
    connection.executemany("INSERT INTO edges VALUES (?, ?, ?)", rows[1])


def rows_of(found: Sequence[Pair]) -> Rows:
    """The rows of some files."""
    return [_row(*pair) for pair in found], [edge for _, each in found for edge in _edges(each.task)]


def take_in(
    connection: Connection, found: Sequence[Pair], gone: Sequence[bytes], beside: Beside, known: Mapping[str, Standing]
) -> None:
    """Bring the tables up to these files, which are new or changed, or gone. known: how some tasks stand now."""
    moved = [pair for pair in found if not _update(connection, *pair, known.get(pair[1].task.id))]
    if moved or gone:
        _move(connection, moved, gone, beside)
    done = {each.task.id for _, each in found} - {each.task.id for _, each in moved}
    connection.executemany(STAND, ((int(held), i) for i, (_, held) in known.items() if i not in done))
    connection.executemany(KEEP, ((entry, task_id) for task_id, (entry, _) in known.items()))
    take_in_claims(connection, {each.task.id for _, each in found} - known.keys(), beside)


def _update(connection: Connection, name: bytes, found: Found, known: Standing | None) -> bool:
    """Take in a file whose task is where it was: nothing but its own row changes. False when it is not."""
    task = found.task
    if task.flaw or task.blocks:
        return False
    edges = connection.execute("SELECT blocker FROM edges WHERE task = ? AND NOT wild", (task.id,))
    if {i for (i,) in edges} != set(map(storable, task.blocked_by)):
        return False
    is_open, done, held, *rest = _state(task)
    priority, created, subject, key, parent = rest
    held = int(known[1]) if known else held
    new = (int(found.settled), *found.seen, priority, subject, found.text if is_open else "", held)
    return connection.execute(UPDATE, (*new, name, task.id, is_open, done, created, key, parent)).rowcount == 1


def _move(connection: Connection, found: Sequence[Pair], gone: Sequence[bytes], beside: Beside) -> None:
    """Take in tasks that come or go, that wait for something else, or that end or begin to keep others waiting."""
    names = [*gone, *(name for name, _ in found)]
    query = "SELECT id, rank, flaw FROM files WHERE name = ?"
    old = {name: row for name in names if (row := connection.execute(query, (name,)).fetchone())}
    touched = {row[0] for row in old.values()} | {each.task.id for _, each in found}
    near, upstream = _around(connection, touched), _upstream(connection, touched)
    were_open = _count_open(connection, touched)
    connection.executemany("DELETE FROM files WHERE name = ?", ((name,) for name in old))
    told = [(row[0],) for row in old.values() if row[2] is None]  # one that could not be read may name another's task
    connection.executemany("DELETE FROM edges WHERE task = ? AND NOT wild", told)
    connection.executemany("DELETE FROM edges WHERE blocker = ? AND wild", told)
    _insert(connection, rows_of(found))
    connection.executemany("UPDATE files SET rank = ? WHERE name = ?", ((row[1], name) for name, row in old.items()))
    connection.executemany("DELETE FROM twins WHERE id = ?", ((i,) for i in touched))
    connection.executemany("DELETE FROM entries WHERE id = ?", ((i,) for i in touched))
    doubled = DOUBLED.replace("GROUP", "AND id = ? GROUP")
    _set_twins_apart(connection, [row for i in touched for row in connection.execute(doubled, (i,)).fetchall()])
    more = (len(found) - len(old), _count_open(connection, touched) - were_open)
    connection.execute("UPDATE about SET files = files + ?, open = open + ?", more)
    named = touched | {storable(blocker) for _, each in found for blocker in each.task.blocked_by}
    connection.executemany("DELETE FROM archived WHERE id = ?", ((i,) for i in named))
    _look_into_archive(connection, (i for i in named if not _has(connection, i)), beside)
    near |= _around(connection, touched)
    connection.executemany(f"{SET_WAITS} AND id = ?", ((i,) for i in near))
    last_first = dict.fromkeys(each.task.id for _, each in reversed(found))  # those behind before those ahead
    doubtful = [*last_first, *(upstream | _upstream(connection, touched) | touched) - last_first.keys()]
    if connection.execute("SELECT rings FROM about").fetchone()[0] or not _mend_ranks(connection, doubtful):
        connection.execute("UPDATE about SET unranked = 1")


def _count_open(connection: Connection, ids: Iterable[str]) -> int:
    return sum(connection.execute("SELECT count(*) FROM files WHERE open AND id = ?", (i,)).fetchone()[0] for i in ids)


def take_in_claims(connection: Connection, ids: Iterable[str] | None, beside: Beside) -> None:
    """Bring what is known of claims on open tasks up to the ledger; of all of them when no ids are given."""
    if ids is None:
        claimed = beside.claimed()
        query = "SELECT files.id, entry IS NOT NULL FROM files LEFT JOIN entries USING (id) WHERE open"
        listed = connection.execute(query).fetchall()
        ids = [task_id for task_id, known in listed if known or task_id in claimed]
    for task_id in ids:
        for name, text, *before in connection.execute(OPEN, (task_id,)).fetchall():
            entry = beside.entry(task_id)
            held = beside.is_held(task_of(str(name), text), entry)
            if [entry, held] != before:
                connection.execute(STAND, (int(held), task_id))
                connection.execute(KEEP, (entry, task_id))


def _row(name: bytes, found: Found) -> tuple[Any, ...]:
    """What `INSERT` takes: text and whole numbers alone, for anything else takes SQLite's module as long as ten."""
    task = found.task
    is_open, done, held, priority, created, subject, key, parent = _state(task)
    place = (created, sortable(task.id), subject, key, parent)
    seen = (name, int(found.settled), *found.seen, task.id, task.flaw or "")
    return (*seen, is_open, done, held, priority, *place, found.text if is_open else "")


def _state(task: Task) -> tuple[int, int, int, int, str, str, str, str]:
    healthy, closed = not task.flaw, task.status in CLOSED
    is_open, done, held = healthy and not closed, task.status == COMPLETED, healthy and task.status == IN_PROGRESS
    texts = (task.created_at or "", task.subject, task.key or "", task.parent or "")
    created, subject, key, parent = map(storable, texts)
    return int(is_open), int(done), int(held), task.priority, created, subject, key, parent


def _edges(task: Task) -> list[tuple[str, str, int]]:
    if task.flaw or not (task.blocked_by or task.blocks):
        return []
    edges = [(task.id, storable(blocker), 0) for blocker in dict.fromkeys(task.blocked_by) if blocker]
    return edges + [(storable(blocked), task.id, 1) for blocked in dict.fromkeys(task.blocks) if blocked]


def sortable(task_id: str) -> str:
    """Text that sorts like `natural` does."""
    parts = runs(task_id)
    for n in range(1, len(parts), 2):
        number = str(int(parts[n]))
        parts[n] = f"\0{len(number):02d}{number}"
    return "".join(parts) + "\0"


def _around(connection: Connection, touched: Iterable[str]) -> set[str]:
    """These tasks and all that may wait for them."""
    near = set(touched)
    for task_id in touched:
        near |= {i for (i,) in connection.execute("SELECT task FROM edges WHERE blocker = ?", (task_id,))}
        near |= {i for (i,) in connection.execute("SELECT parent FROM files WHERE id = ?", (task_id,)) if i}
    return near


def _set_twins_apart(connection: Connection, doubled: Sequence[tuple[str]]) -> None:
    """Let nothing follow from files that claim one id together; they are read again at every look until one is gone."""
    connection.executemany("INSERT INTO twins VALUES (?)", doubled)
    connection.executemany("UPDATE files SET settled = 0, open = 0, done = 0, parent = NULL WHERE id = ?", doubled)
    connection.executemany("DELETE FROM edges WHERE task = ? AND NOT wild", doubled)
    connection.executemany("DELETE FROM edges WHERE blocker = ? AND wild", doubled)


def _has(connection: Connection, task_id: str) -> bool:
    return connection.execute("SELECT 1 FROM files WHERE id = ?", (task_id,)).fetchone() is not None


def look_into_archive(connection: Connection, beside: Beside) -> None:
    """Ask anew for the blockers that lay nowhere: somebody may have put one into the archive."""
    unknown = [task_id for (task_id,) in connection.execute(UNKNOWN).fetchall()]
    _look_into_archive(connection, unknown, beside)
    connection.executemany(f"{SET_WAITS} AND id = ?", ((i,) for i in _around(connection, unknown)))


def _look_into_archive(connection: Connection, names: Iterable[str], beside: Beside) -> None:
    """Remember which of these tasks lie in the archive: as blockers nearly all are completed, `state` knows."""
    connection.executemany("INSERT OR IGNORE INTO archived VALUES (?)", ((i,) for i in beside.archived(names)))


# Ranks


def _upstream(connection: Connection, ids: Iterable[str]) -> set[str]:
    """What these tasks wait for: the tasks whose ranks follow from theirs."""
    return {i for task_id in ids for (i,) in connection.execute(UPSTREAM, (task_id, task_id))}


def _mend_ranks(connection: Connection, doubtful: Iterable[str]) -> bool:
    """Set these ranks right, and those that follow from them. False when that is too much, or when it has no end."""
    todo = list(doubtful)
    for task_id in todo:
        if len(todo) > MOST_MENDED:
            return False
        row = connection.execute(RANKS, (task_id,)).fetchone()
        if row and row[0] != row[1]:
            connection.execute("UPDATE files SET rank = ? WHERE open AND id = ?", (row[1], task_id))
            todo += _upstream(connection, [task_id])
    return True


def count_ranks(connection: Connection) -> None:
    """Count all ranks of open tasks anew when some may be wrong."""
    if not connection.execute("SELECT unranked FROM about").fetchone()[0]:
        return
    ranks = dict(connection.execute("SELECT rowid, rank FROM files WHERE open").fetchall())
    behind: dict[int, list[int]] = {task: [] for task in ranks}
    for earlier, later in connection.execute(LINKS):
        behind[earlier].append(later)
    counted = longest_chains(behind)
    changed = [(rank, task) for task, rank in counted.items() if ranks[task] != rank]
    connection.executemany("UPDATE files SET rank = ? WHERE rowid = ?", changed)
    # Around a ring, and nowhere else, a rank does not follow from those behind it.
    rings = any(counted[task] <= counted[after] for task, afters in behind.items() for after in afters)
    connection.execute("UPDATE about SET unranked = 0, rings = ?", (rings,))
