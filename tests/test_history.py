"""The log of a file board is read from its end, whatever lies in it, and no further back than is asked for."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boardfiles import Files
from conftest import add
from taskwall.stores.files.disk import Disk, NotPlain
from taskwall.stores.files.history import BLOCK, MAX_LINE, _lines, read_events


def at(n):
    return f"2026-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}.000000Z"


def line(n, **more):
    return json.dumps({"at": at(n), "by": "a", "session": "s", "verb": "note", "task": f"t{n}"} | more).encode()


def blocks(data, size):
    return [data[start : start + size] for start in range((len(data) - 1) // size * size, -1, -size)]


class Counted(Disk):
    """Counts the bytes of the log that were read."""

    bytes = 0

    def read_back(self, path, block, most):
        for data in super().read_back(path, block, most):
            self.bytes += len(data)
            yield data


@given(st.binary(max_size=200).map(lambda data: data.replace(b"\0", b"\n")), st.integers(1, 40))
def test_whatever_the_size_of_a_block_the_lines_are_those_of_the_whole(data, size):
    found = [line for lines in reversed(list(_lines(blocks(data, size)))) for line in lines]
    assert found == data.split(b"\n")


@pytest.fixture
def log(tmp_path):
    """A log of some blocks, an event a second."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line(n) + b"\n" for n in range(20_000)))
    assert path.stat().st_size > 6 * BLOCK
    return path


def test_what_happened_lately_is_read_without_what_was_before(log):
    for since in (at(19_990), at(17_000), at(20_001)):
        disk = Counted()
        found = read_events(disk, str(log), since)
        assert [e["at"] for e in found] == [at(n) for n in range(20_000) if at(n) >= since]
        assert disk.bytes <= (3 if since == at(17_000) else 2) * BLOCK
    assert len(read_events(Disk(), str(log))) == 20_000


def test_lines_that_are_a_little_out_of_order_are_all_found(log):
    with log.open("ab") as file:  # two who waited for the lock with the time that they took before
        file.write(line(19_000, verb="late") + b"\n" + line(30_000) + b"\n" + line(19_500, verb="late") + b"\n")
    found = read_events(Disk(), str(log), at(19_400))
    assert [e["at"] for e in found] == [*(at(n) for n in range(19_400, 20_000)), at(30_000), at(19_500)]


def test_what_is_no_event_is_left_out_and_hides_none(tmp_path):
    path = tmp_path / "events.jsonl"
    odd = [b"", b"{", b"[1]", b'"at"', b'{"at": 5, "verb": "x"}', b'{"at": "2027"}', b"\xff\xfe", b"[" * 100_000,
           b'{"at": "9", "verb": "' + b"x" * (MAX_LINE + 3 * BLOCK), line(2, text="x" * BLOCK)]  # fmt: skip
    path.write_bytes(b"\n".join([line(1), *odd, line(3), b'{"at": "2026-01-01T00:00:04.000000Z", "ver']))
    assert [e["at"] for e in read_events(Disk(), str(path))] == [at(1), at(2), at(3)]
    assert [e["at"] for e in read_events(Disk(), str(path), at(2))] == [at(2), at(3)]


def test_of_a_huge_log_the_latest_part_is_read(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    assert list(Disk().read_back(str(path), 4, 100)) == [b"89", b"4567", b"0123"]
    assert list(Disk().read_back(str(path), 4, 6)) == [b"89", b"4567"]
    path.write_bytes(b"")
    assert list(Disk().read_back(str(path), 4, 6)) == []


def test_a_link_or_a_pipe_in_place_of_the_log_is_not_followed(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "t")
    path = files.path / ".local" / "events.jsonl"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert files.store.events() == []
    path.unlink()
    os.mkfifo(path)
    assert files.store.events(since=at(0)) == []
    with pytest.raises(NotPlain):
        list(Disk().read_back(str(path), 4, 6))
