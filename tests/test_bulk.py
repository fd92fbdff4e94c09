"""A very large folder is read by two processes: the rows are those that one reads, whatever becomes of the second."""

import json
import os
import select
import signal
import sys

import pytest

from taskwall.stores.files import bulk
from taskwall.stores.files.disk import DISK, Disk


@pytest.fixture
def folder(tmp_path):
    """Files of every kind: more than are handed over at once."""
    path = tmp_path / ".tasks"
    path.mkdir()
    for n in range(3 * bulk.SOME):
        task = {"id": f"t{n}", "subject": f"work {n}", "status": "pending", "blockedBy": [f"t{n + 1}"], "rev": 1}
        (path / f"t{n}.json").write_text(json.dumps(task | ({"status": "done"} if n % 3 else {})))
    (path / "t7.json").write_text('{"id": "t7", "id": "t8"}')
    (path / "t20.json").write_bytes(b"\xff")
    (path / "twin of t9.json").write_text((path / "t9.json").read_text())
    (path / "t110.json").write_text('{"id": "t110", "subject": "of another program", "blocks": ["t5"]}')
    (path / os.fsdecode(b"t\xff.json")).write_text("no task")
    (path / "linked.json").symlink_to(path / "t1.json")
    return str(path)


class Watched(bulk._Second):
    """Whoever reads beside it first waits until it has handed something over, or is gone."""

    here = None

    def __init__(self, board):
        super().__init__(board)
        Watched.here, self.handed = self, 0

    def handed_over(self):
        if self._pipe >= 0:
            select.select([self._pipe], [], [], 60)
        found = super().handed_over()
        self.handed += found is not None
        return found


class Killed(Watched):
    def handed_over(self):
        if self.handed == 1 and self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        return super().handed_over()


def rows(folder, second, monkeypatch):
    """All rows, sorted; those of an ordinary reading when there is no second."""
    monkeypatch.setattr(bulk, "TWO_FROM", 1 if second else 10_000)
    monkeypatch.setattr(bulk, "_Second", second)
    monkeypatch.setattr(bulk, "_processors", lambda: 2)
    found = list(bulk.every_row(DISK, folder))
    files, edges = (sorted(row for each in found for row in each[n]) for n in (0, 1))
    assert len(files) == len({row[0] for row in files}) == 3 * bulk.SOME + 3
    return files, edges


def test_two_processes_read_what_one_reads(folder, monkeypatch):
    alone = rows(folder, None, monkeypatch)
    assert rows(folder, Watched, monkeypatch) == alone
    assert Watched.here.handed == 4


def test_what_a_second_process_did_not_hand_over_before_it_was_killed_is_read_all_the_same(folder, monkeypatch):
    alone = rows(folder, None, monkeypatch)
    assert rows(folder, Killed, monkeypatch) == alone
    assert Killed.here.handed < 4


@pytest.mark.parametrize(
    "program", ["", "/does/not/exist", "exit 1", "printf nonsense", "printf '\\11\\0\\0\\0\\0\\0\\0\\0cut'"]
)
def test_a_second_process_that_does_not_start_or_hands_over_no_whole_rows_is_not_missed(
    folder, monkeypatch, tmp_path, program
):
    alone = rows(folder, None, monkeypatch)
    if " " in program:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{program}\n")
        script.chmod(0o755)
        program = str(script)
    monkeypatch.setattr(sys, "executable", program)
    assert rows(folder, Watched, monkeypatch) == alone
    assert Watched.here.handed == 0


def test_a_second_process_is_ended_with_the_reading(folder, monkeypatch):
    monkeypatch.setattr(bulk, "TWO_FROM", 1)
    monkeypatch.setattr(bulk, "_Second", Watched)
    monkeypatch.setattr(bulk, "_processors", lambda: 2)
    reading = bulk.every_row(DISK, folder)
    next(reading)
    pid = Watched.here._pid
    reading.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_disk_that_somebody_watches_is_read_by_ourselves(folder, monkeypatch):
    class Other(Disk):
        pass

    monkeypatch.setattr(bulk, "TWO_FROM", 1)
    monkeypatch.setattr(bulk, "_Second", None)  # would fail if it were asked for
    assert sum(len(files) for files, _ in bulk.every_row(Other(), folder)) == 3 * bulk.SOME + 3
