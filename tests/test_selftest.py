"""`taskwall selftest`: says what holds on this file system, finds what does not, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from taskwall import selftest
from taskwall.faces.cli.main import main
from taskwall.stores.files import disk, lock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="its trials need processes of POSIX"),
]


@pytest.fixture
def brief(monkeypatch):
    """Readers look for a shorter time."""
    monkeypatch.setattr(selftest, "LOOKING", 0.3)


def tried(folder, capsys):
    """The exit status and the lines of the table, by what was tried."""
    status = main(["selftest", "--board", str(folder), "--json"])
    data = json.loads(capsys.readouterr().out)["data"]
    assert data["held"] == (status == 0)
    return status, {row["what"]: row for row in data["tried"]}


def test_what_holds_here_is_told_and_nothing_is_left_behind(tmp_path, capsys, brief):
    (tmp_path / ".tasks").mkdir()
    started = time.monotonic()
    assert main(["selftest", "--board", str(tmp_path)]) == 0
    assert time.monotonic() - started < 30
    text = capsys.readouterr().out
    for words in ("what was tried", "kill -9", "What was tried held.", "Not tried: a power cut", f"{tmp_path} is on "):
        assert words in text
    assert len([line for line in text.splitlines() if line.endswith(" yes")]) == len(selftest.TRIALS)
    assert [path.name for path in tmp_path.rglob("*")] == [".tasks"]


def test_a_board_that_is_not_there_yet_is_tried_where_it_would_be(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(selftest, "TRIALS", {"lock": selftest._exclude})
    status, rows = tried(tmp_path, capsys)
    assert status == 0 and rows["lock"]["times"] == 100 * selftest.RACERS
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_keeps_nobody_out_is_found(tmp_path, capsys, monkeypatch, brief):
    monkeypatch.setattr(lock, "_try", lambda fd: True)
    status, rows = tried(tmp_path, capsys)
    assert status == 1
    assert rows["the lock lets one process in"]["bad"] and rows["the lock dies with its holder (kill -9)"]["bad"]
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_replaced_whole_are_found(tmp_path, capsys, monkeypatch, brief):
    def rename(self, old, new):
        with open(old, "rb") as source, open(new, "wb", buffering=0) as target:
            for part in iter(lambda: source.read(4096), b""):
                target.write(part)

    monkeypatch.setattr(disk.Disk, "rename", rename)
    monkeypatch.setattr(selftest, "TRIALS", {"names": selftest._names})
    status, rows = tried(tmp_path, capsys)
    assert status == 1 and rows["names"]["bad"]


def test_half_a_plan_after_a_kill_is_found(tmp_path, capsys, monkeypatch):
    def commit(self, writes, applied=bool):
        for write in writes:
            disk.write_all(self.disk, [write], self.local, durable=False)
        return []

    monkeypatch.setattr("taskwall.stores.files.journal.Journal.commit", commit)
    monkeypatch.setattr(selftest, "TRIALS", {"kills": selftest._kills})
    status, rows = tried(tmp_path, capsys)
    assert status == 1 and any("of 3 tasks" in flaw for flaw in rows["kills"]["bad"])


def test_a_failure_of_the_file_system_is_a_line_of_the_table(tmp_path, capsys, monkeypatch, brief):
    def sync(self, fd):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(disk.Disk, "_sync", sync)
    status, rows = tried(tmp_path, capsys)
    assert status == 1 and "Invalid argument" in rows["files and names: replaced whole, given once"]["bad"][0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_leaves_no_file_and_no_process(tmp_path, number):
    command = [sys.executable, "-m", "taskwall", "selftest", "--board", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while not list(tmp_path.glob(".taskwall-selftest-*/*/*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=20)  # ends only when no child has its output open any more
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, capsys, monkeypatch):
    def mkdtemp(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(selftest.tempfile, "mkdtemp", mkdtemp)
    assert main(["selftest", "--board", str(tmp_path)]) == 4
    assert "Permission denied" in capsys.readouterr().err


def test_the_file_system_is_named_by_the_mount_that_holds_the_board():
    assert selftest._file_system("/proc/self") == "proc"
    assert selftest._file_system(os.path.realpath("."))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        *((kind, "NOT SAFE") for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs", "ceph")),
        *((kind, "Unknown") for kind in ("fuseblk", "fuse.portal", "")),
        *((kind, "Not tried: a power cut") for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay")),
    ],
)
def test_what_is_not_safe_there_is_said(kind, words):
    found = selftest._warnings(kind)
    assert words in found[0] and "power cut" in found[-1]
