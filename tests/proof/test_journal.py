"""The redo journal by itself: what it believes, what it refuses, what it keeps, and who may look while it works."""

from __future__ import annotations

import json
import os
from hashlib import sha256

import pytest

from acts import BY_NAME, board_dir, draft, kept, open_board, open_store, prepared, restore, seen_by, world_of
from simdisk import SimDisk
from taskwall.core.errors import Refused, Unreadable, Unwritable
from taskwall.core.rules import Edit
from taskwall.stores.files.disk import DISK, Changed, Disk, Write
from taskwall.stores.files.journal import Entry, Journal

OLD, NEW, THEIRS = (
    '{"id": "t", "subject": "old"}\n',
    '{"id": "t", "subject": "new"}\n',
    '{"id": "t", "subject": "hand"}\n',
)
OTHER = NEW.replace('"t"', '"u"')


def digest(text):
    return sha256(text.encode()).hexdigest()


class Place:
    """A board with one task file and a journal of our making."""

    def __init__(self, folder):
        self.path = folder / ".tasks"
        (self.path / ".local" / "claims").mkdir(parents=True)
        self.journal_file = self.path / ".local" / "journal"
        self.task = self.path / "t.json"
        self.task.write_text(OLD)

    @property
    def journal(self):
        return Journal(DISK, str(self.path), durable=False)

    def write(self, entries=(("t.json", NEW, digest(OLD)),), serial=1, **header):
        body = json.dumps([list(entry) for entry in entries]).encode()
        head = {"v": 1, "serial": serial, "length": len(body), "sha256": sha256(body).hexdigest()} | header
        self.journal_file.write_bytes(json.dumps(head).encode() + b"\n" + body + b"\n")
        return self.journal_file.read_bytes()

    def recover(self):
        """What recovery told; the journal is gone."""
        told = self.journal.recover()
        assert not self.journal_file.exists()
        return told


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_committed_journal_is_applied_once_and_counted(place):
    place.write(serial=7)
    assert place.journal.pending() == {"t.json": NEW}
    assert place.recover() == []
    assert (place.task.read_text(), place.journal.serial, place.journal.pending()) == (NEW, 7, {})


@pytest.mark.parametrize(
    "broken",
    [
        {"length": 3},
        {"sha256": "0" * 64},
        {"sha256": None},
        {"v": 0},
        {"v": "1"},
        {"serial": 0},
        {"serial": "9"},
        {"serial": 1.5},
        {"serial": None},
        {"serial": True},
    ],
)
def test_a_journal_whose_header_is_wrong_never_happened(place, broken):
    place.write(**broken)
    assert place.journal.pending() == {}
    assert place.recover() == []
    assert place.task.read_text() == OLD


@pytest.mark.parametrize(
    "body",
    [b"", b"\n", b"{}", b"null\nnull\n", b"[]\n[]\n", b"\x00" * 400, b"\xff\xfe\n[]\n", b"[" * 100_000 + b"\n[]\n"],
)
def test_what_is_no_journal_is_removed(place, body):
    place.journal_file.write_bytes(body)
    assert place.recover() == []
    assert place.task.read_text() == OLD


def test_a_body_that_is_nested_without_end_is_removed(place):
    body = b"[" * 100_000
    head = {"v": 1, "serial": 1, "length": len(body), "sha256": sha256(body).hexdigest()}
    place.journal_file.write_bytes(json.dumps(head).encode() + b"\n" + body + b"\n")
    assert place.recover() == []


def damaged(whole):
    """Every shorter journal, and every one with one byte changed."""
    yield from (whole[:cut] for cut in range(len(whole) - 1))
    for at in range(len(whole) - 1):
        yield whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :]


def believed(place, *, until_found=False):
    """How many damaged journals there are, and which of them changed the board."""
    whole, wrong, tried = place.write(), [], 0
    for data in damaged(whole):
        if wrong and until_found:
            break
        tried += 1
        place.task.write_text(OLD)
        (place.path / ".local" / "serial").unlink(missing_ok=True)
        place.journal_file.write_bytes(data)
        try:
            place.journal.recover()
        except Unreadable:  # one changed byte makes it version 9
            place.journal_file.unlink()
        if place.task.read_text() != OLD and place.task.read_text() != NEW:
            wrong.append(data)
        elif place.task.read_text() == NEW and data.split(b"\n")[1] != whole.split(b"\n")[1]:
            wrong.append(data)
    return tried, wrong


def test_no_damaged_journal_is_believed(place, figure):
    tried, wrong = believed(place)
    figure("damaged journals", tried=tried, bad=wrong, at_least=400)


def test_a_journal_without_a_checksum_is_found(place, monkeypatch):
    import taskwall.stores.files.journal as module

    real = module._digest
    monkeypatch.setattr(module, "_digest", lambda data: real(data) if data in (None, OLD.encode()) else _Anything())
    assert believed(place, until_found=True)[1]


class _Anything(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    "name",
    [
        "../x.json",
        "/tmp/x.json",
        "a/../../x.json",
        "sub/x.json",
        ".local/x.json",
        ".local/claims/../../x.json",
        ".local/claims/a/x.json",
        ".local/journal",
        "board.toml",
        "x\\y.json",
        "x\0.json",
        ".json/../../x.json",
        "",
        7,
        None,
        ["t.json"],
    ],
)
def test_a_journal_that_names_a_file_elsewhere_is_refused_whole(place, name):
    place.write([("t.json", NEW, digest(OLD)), (name, "x", None)])
    before = world_of(place.path.parent)
    assert place.journal.pending() == {}
    assert place.recover() == []
    left = world_of(place.path.parent)
    assert {k: v for k, v in before.items() if k != ".tasks/.local/journal"} == left


@pytest.mark.parametrize(
    "entry", [("t.json", 7, None), ("t.json", None, None), ("t.json", NEW, 7), ("t.json", "\udcff", None), ("t.json",)]
)
def test_a_journal_with_something_else_than_texts_is_refused(place, entry):
    place.write([entry])
    assert place.recover() == []
    assert place.task.read_text() == OLD


def test_a_newer_programs_journal_is_neither_applied_nor_removed(place):
    whole = place.write(v=2)
    for attempt in (lambda: open_store(place.path).read(), lambda: open_board(place.path).claim("t")):
        with pytest.raises(Unreadable, match="newer taskwall"):
            attempt()
    assert (place.journal_file.read_bytes(), place.task.read_text()) == (whole, OLD)


# The serial


def resurrected(path):
    """A journal that was applied comes back with the content that it once replaced. Returns whether it was applied again."""
    board = open_board(path, durability="fast")
    board.create([draft("a"), draft("b", "a")])
    board.claim("a")
    before = {name: data for name, data in world_of(path).items() if name.endswith(".json") and "/" not in name}
    seen = []

    class Copying(Disk):
        def unlink(self, name):
            if name.endswith("journal"):
                seen.append(self.read(name)[0])
            super().unlink(name)

    open_board(path, Copying(), hour=2).cancel("a", drop_edges=True)
    (old_journal,) = seen
    restored = world_of(path) | before  # a backup, or `git checkout` of the commit before: ABA
    restore(path, restored | {".local/journal": old_journal})
    store = open_store(path)
    view = {task.id: task.status for task in store.read()}
    with store.write():
        pass
    return view["a"] == "cancelled" or store.read().get("a").status == "cancelled"


def test_an_old_journal_that_comes_back_is_not_applied_again(board_dir):
    (board_dir / ".tasks").mkdir()
    assert not resurrected(board_dir / ".tasks")


def test_a_journal_without_a_serial_is_found(board_dir, monkeypatch):
    monkeypatch.setattr(Journal, "serial", 0)
    (board_dir / ".tasks").mkdir()
    assert resurrected(board_dir / ".tasks")


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "\0\0", "⁵"])
def test_a_damaged_serial_counts_as_none(place, text):
    (place.path / ".local" / "serial").write_text(text)
    assert place.journal.serial == 0


def test_the_serial_goes_on_after_each_change(place):
    for number in (1, 2, 3):
        place.journal.commit(
            [Write(str(place.task), NEW), Write(str(place.path / f"{number}.json"), NEW, exclusive=True)]
        )
        assert place.journal.serial == number


# Edits of others


def test_an_edit_after_the_crash_is_kept_and_ours_is_parked(place):
    place.write([("t.json", NEW, digest(OLD)), ("u.json", OTHER, None)])
    place.task.write_text(THEIRS)
    store = open_store(place.path)
    assert store.read().get("t").subject == "hand"
    with store.write():
        pass
    (parked,) = (place.path / ".local" / "conflicts").iterdir()
    assert (place.task.read_text(), parked.read_text(), (place.path / "u.json").read_text()) == (THEIRS, NEW, OTHER)
    (notice,) = store.notices
    assert "t.json was edited" in notice and str(parked) in notice


def test_a_new_file_that_exists_meanwhile_is_kept(place):
    place.write([("u.json", NEW, None)])
    (place.path / "u.json").write_text(THEIRS)
    assert "u.json" in place.recover()[0]
    assert (place.path / "u.json").read_text() == THEIRS


def test_a_removed_file_is_not_brought_back(place):
    place.write()
    place.task.unlink()
    assert "t.json" in place.recover()[0]
    assert not place.task.exists()


@pytest.mark.parametrize("make", [lambda task, out: task.symlink_to(out), lambda task, out: task.mkdir()])
def test_what_is_no_file_any_more_is_left_as_it_is(place, make, tmp_path):
    (tmp_path / "outside").write_text(OLD)
    place.write()
    place.task.unlink()
    make(place.task, tmp_path / "outside")
    assert "t.json" in place.recover()[0]
    assert place.task.is_symlink() or place.task.is_dir()
    assert (tmp_path / "outside").read_text() == OLD


def test_parked_files_do_not_leave_the_board(place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (place.path / ".local" / "conflicts").symlink_to(tmp_path / "elsewhere")
    place.write()
    place.task.write_text(THEIRS)
    with pytest.raises(Refused, match="not a folder of its own"):
        open_board(place.path).claim("t")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_recovering_again_parks_nothing_twice(place):
    whole = place.write()
    place.task.write_text(THEIRS)
    for _ in range(3):
        place.journal_file.write_bytes(whole)
        (place.path / ".local" / "serial").unlink(missing_ok=True)
        place.journal.recover()
    assert len(list((place.path / ".local" / "conflicts").iterdir())) == 1


def test_a_file_that_changed_before_the_commit_point_stops_the_change(place):
    seen = DISK.seen(str(place.task))
    place.task.write_text(THEIRS)
    other = Write(str(place.path / "u.json"), NEW, exclusive=True)
    with pytest.raises(Changed):
        place.journal.commit([other, Write(str(place.task), NEW, seen=seen)])
    assert (place.task.read_text(), (place.path / "u.json").exists(), place.journal_file.exists()) == (
        THEIRS,
        False,
        False,
    )


def test_an_editor_that_saves_while_we_write_is_not_overwritten(place):
    class Edited(Disk):
        def _sync(self, fd):
            place.task.write_text(THEIRS + " " * 9)

    with pytest.raises(Unwritable, match="changed by another program"):
        open_board(place.path, Edited()).update("t", Edit(note="ours"))
    assert place.task.read_text().startswith(THEIRS)


def test_a_taken_id_stops_the_change_before_the_commit_point(place):
    with pytest.raises(FileExistsError):
        place.journal.commit([Write(str(place.path / "u.json"), NEW), Write(str(place.task), NEW, exclusive=True)])
    assert not place.journal_file.exists() and not (place.path / "u.json").exists()


def test_a_file_whose_name_is_no_text_goes_through_the_journal(place):
    name = os.fsdecode(b"caf\xe9.json")
    place.journal.commit([Write(str(place.path / name), NEW), Write(str(place.task), NEW)])
    assert (place.path / name).read_text() == place.task.read_text() == NEW


# Readers


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_readers_read_through_a_committed_journal_and_write_nothing(place, durability):
    place.write([("t.json", NEW, digest(OLD)), ("u.json", OTHER, None)])
    before = world_of(place.path)
    view = open_store(place.path, durability=durability).read()
    assert (view.get("t").subject, view.get("u").subject) == ("new", "new")
    assert world_of(place.path) == before


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_both_durabilities_write_the_same_and_only_full_waits_for_the_disk(board_dir, durability):
    synced = []

    class Counting(Disk):
        def _sync(self, fd):
            synced.append(fd)

    start = prepared(BY_NAME["ask"], str(board_dir / ".tasks"))
    BY_NAME["ask"].act(open_board(board_dir / ".tasks", Counting(), durability=durability))
    left = world_of(board_dir / ".tasks")
    assert bool(synced) == (durability == "full")
    assert kept(left) != kept(start) and ".local/journal" not in left


class Passing(SimDisk):
    """A disk that a writer changes under its reader: the first `looks` see one world, the rest a later one."""

    def __init__(self, board, first, then, looks):
        super().__init__(board, first)
        self.then, self.looks = then, looks

    def _look(self):
        if self.looks == 0:
            super().__init__(self.board, self.then)
        self.looks -= 1

    def names(self, folder):
        self._look()
        return super().names(folder)

    def read(self, path, most=0):
        self._look()
        return super().read(path, most)

    def exists(self, path):
        self._look()
        return super().exists(path)


class Filming(SimDisk):
    """Keeps the world before every change."""

    def __init__(self, board, world):
        self.film = []
        super().__init__(board, world)

    def _do(self, *operation):
        if not self.film or self.film[-1] != self.world():
            self.film.append(self.world())
        super()._do(*operation)


def torn_readers(case, board, every):
    """Readers that begin at one moment of a change and end at a later one. Returns how many, and which saw half."""
    start = prepared(case, board)
    disk = Filming(board, start)
    case.act(open_board(board, disk))
    film = [*disk.film, disk.world()]
    whole = [seen_by(open_store(board, SimDisk(board, film[n]))) for n in (0, -1)]
    tried, torn = 0, []
    for first in range(0, len(film), every):
        for then in range(first + 1, len(film), every):
            for looks in range(1, 20, every):
                tried += 1
                if seen_by(open_store(board, Passing(board, film[first], film[then], looks))) not in whole:
                    torn.append((first, then, looks))
    return tried, torn


def test_a_reader_never_sees_half_of_a_change_that_goes_on_while_it_reads(board_dir, figure):
    tried, torn = torn_readers(BY_NAME["ask"], str(board_dir / ".tasks"), every=3)
    figure("readers during a change", tried=tried, bad=torn, at_least=100)


@pytest.mark.slow
def test_readers_during_changes(board_dir, figure):
    tried, torn = 0, []
    for name in ("ask", "drop edges", "ask in a dialect", "release a session", "first plan"):
        more, bad = torn_readers(BY_NAME[name], str(board_dir / ".tasks"), every=1)
        tried, torn = tried + more, torn + [(name, *each) for each in bad]
    figure("readers during changes, everywhere", tried=tried, bad=torn, at_least=10_000)


BUGS = {
    "readers overlay only what is not applied yet": (
        Entry,
        "covers",
        lambda self, current: (None if current is None else sha256(current).hexdigest()) == self.old,
    ),
    "readers do not look twice": (Journal, "mark", ()),
    "readers do not read through the journal": (Journal, "pending", lambda self: {}),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_of_readers_are_found(bug, board_dir, monkeypatch):
    start = prepared(BY_NAME["ask"], str(board_dir / ".tasks"))
    assert start
    owner, name, broken = BUGS[bug]
    monkeypatch.setattr(owner, name, broken)
    assert torn_readers(BY_NAME["ask"], str(board_dir / ".tasks"), every=2)[1]
