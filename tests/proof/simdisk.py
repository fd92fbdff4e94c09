"""A disk in memory with a log of operations, and every state it may be in when the power fails after any of them.

Assumed of the disk: an operation on a name is atomic, and may be lost, or kept though earlier ones are lost, until the
folder is synced; of data that was not synced all, half, zeros or nothing may be there. A rename moves the file (its
inode), not what the name stood for when the log is replayed.
"""

from __future__ import annotations

import os
from itertools import combinations, count, product

from taskwall.stores.files.disk import Disk, NotPlain

MOST_LOOSE = 7
"""Of more unsynced operations than this, only the latest are tried in every combination, the older ones all or none."""


class Killed(BaseException):
    """The process ends here; no later operation of it reaches the disk."""


class SimDisk(Disk):
    """Files in memory under real paths (the lock alone is real). `die_at`: the number of the change before which to die."""

    def __init__(self, board, world=None, die_at=None):
        self.board, self.die_at, self.dead = str(board), die_at, False
        self.inodes, self.synced, self.stamps, self.names_, self.folders, self.log = {}, set(), {}, {}, set(), []
        self._next = count(1)
        self.events = b""
        self.folders.add(self.board)
        os.makedirs(os.path.join(self.board, ".local"), exist_ok=True)  # the lock's
        for name, data in (world or {}).items():
            path = os.path.join(self.board, name.rstrip("/"))
            if name.endswith("/"):
                self.folders.add(path)
            elif name not in (".local/events.jsonl", ".local/lock", ".local/lock.next"):
                self.names_[path] = self._inode(data)
        self.synced |= self.inodes.keys()
        self.start = (dict(self.names_), set(self.folders), dict(self.inodes))

    def world(self):
        cut = len(self.board) + 1
        found = {folder[cut:] + "/": b"" for folder in self.folders if folder != self.board}
        return found | {path[cut:]: self.inodes[ino] for path, ino in self.names_.items()}

    def survive(self):
        """The next process on the same disk."""
        self.dead, self.die_at = False, None
        return self

    def _inode(self, data):
        ino = next(self._next)
        self.inodes[ino], self.stamps[ino] = data, ino
        return ino

    def _do(self, *operation):
        if self.dead or (self.die_at is not None and len(self.log) >= self.die_at):
            self.dead = True
            raise Killed
        self.log.append(operation)

    # Looking

    def names(self, folder):
        if folder not in self.folders:
            raise FileNotFoundError(folder)
        inside = [path for path in (*self.names_, *self.folders) if os.path.dirname(path) == folder]
        return sorted((os.path.basename(path), self.seen(path)) for path in inside)

    def read(self, path, most=0):
        if path in self.folders:
            raise NotPlain("not a regular file")
        if path not in self.names_:
            raise FileNotFoundError(path)
        return self.inodes[self.names_[path]], self.seen(path)

    def seen(self, path):
        if path in self.folders:
            return (1, 1, 1, 1)
        ino = self.names_.get(path)
        return None if ino is None else (self.stamps[ino], 0, len(self.inodes[ino]), ino)

    def is_folder(self, path):
        return path in self.folders

    # Changing

    def make_folder(self, path):
        if path not in self.folders:
            self._do("mkdir", path)
            self.folders.add(path)

    def write_new(self, path, data, *, like=None, durable):
        if path in self.names_:
            raise FileExistsError(path)
        self._do("create", path, next(self._next))
        ino = self.log[-1][2]
        self.names_[path], self.inodes[ino], self.stamps[ino] = ino, b"", ino
        self._do("data", ino, data)
        self.inodes[ino] = data
        if durable:
            self._do("fsync", ino)

    def append(self, path, data):
        self.events += data  # history alone; it is never synced and decides nothing

    def rename(self, old, new):
        self._do("rename", old, new, self.names_[old])
        self.names_[new] = self.names_.pop(old)

    def link(self, old, new):
        if new in self.names_:
            raise FileExistsError(new)
        self._do("link", new, self.names_[old])
        self.names_[new] = self.names_[old]

    def unlink(self, path):
        if path not in self.names_:
            raise FileNotFoundError(path)
        self._do("unlink", path, self.names_[path])
        del self.names_[path]

    def sync_folder(self, path):
        if path in self.folders:  # the one above the board is not ours
            self._do("sync", path)


def _folder_of(operation):
    kind = operation[0]
    return os.path.dirname(operation[2] if kind == "rename" else operation[1])


def _applied(operation, names, folders):
    kind, path = operation[:2]
    if kind == "mkdir":
        folders.add(path)
    elif kind in ("create", "link"):
        names[path] = operation[2]
    elif kind == "rename":
        names[operation[2]] = operation[3]
        if names.get(path) == operation[3]:
            del names[path]
    elif names.get(path) == operation[2]:
        del names[path]


def _combinations(loose):
    """Every subset of the latest of these positions, with all or none of the older ones."""
    old, new = loose[:-MOST_LOOSE], loose[-MOST_LOOSE:]
    for size in range(len(new) + 1):
        for chosen in combinations(new, size):
            yield set(chosen)
            if old:
                yield {*old, *chosen}


def after_power_loss(disk, since=0):
    """`(position in the log, world)` for every state that may be found; positions from `since` on."""
    for position in range(since, len(disk.log) + 1):
        log = _Log(disk, position)
        for kept in _combinations(log.loose):
            for world in log.worlds(kept):
                yield position, world


def some_power_loss(disk, chance, many):
    """`many` of these worlds, drawn by `chance`."""
    for _ in range(many):
        log = _Log(disk, chance.randint(0, len(disk.log)))
        yield next(log.worlds({n for n in log.loose if chance.random() < 0.5}, chance))


class _Log:
    """What was done up to a position, and which of it is not known to have reached the disk (`loose`)."""

    def __init__(self, disk, position):
        log = disk.log[:position]
        synced_at = {op[1]: n for n, op in enumerate(log) if op[0] == "sync"}
        self.disk = disk
        self.operations = [(n, op) for n, op in enumerate(log) if op[0] not in ("data", "fsync", "sync")]
        self.loose = [n for n, op in self.operations if synced_at.get(_folder_of(op), -1) < n]
        self.whole = {op[1] for op in log if op[0] == "fsync"} | disk.start[2].keys()
        self.data = disk.start[2] | {op[1]: op[2] for op in log if op[0] == "data"}

    def worlds(self, kept, chance=None):
        """Every world with these of the loose operations; by `chance` one of them first."""
        board, loose = self.disk.board, set(self.loose)
        names, folders = dict(self.disk.start[0]), set(self.disk.start[1])
        for n, operation in self.operations:
            if n in kept or n not in loose:
                _applied(operation, names, folders)
        # A folder that did not survive takes with it what is in it.
        folders = {f for f in folders if all(up in folders for up in _above(f, board))}
        names = {path: ino for path, ino in names.items() if os.path.dirname(path) in folders}
        unsure = sorted(set(names.values()) - self.whole)
        choices = [list(_states(self.data.get(ino, b""))) for ino in unsure]
        if chance:
            choices = [[chance.choice(choice)] for choice in choices]
        cut = len(board) + 1
        fixed = {f[cut:] + "/": b"" for f in folders if f != board}
        for contents in product(*choices):
            now = dict(zip(unsure, contents, strict=True))
            yield fixed | {path[cut:]: now[ino] if ino in now else self.data[ino] for path, ino in names.items()}


def _above(folder, board):
    while folder != board:
        folder = os.path.dirname(folder)
        yield folder


def _states(data):
    return dict.fromkeys((data, data[: len(data) // 2], bytes(len(data)), b""))
