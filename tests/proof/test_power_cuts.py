"""Real power cuts: an ext4 file system in a file, copied as the disk holds it after every operation, mounted and recovered."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

import pytest

from acts import BY_NAME, kept, open_board, open_store, outcome, prepared, restore, seen_by, world_of
from taskwall.stores.files.disk import Disk
from worker_process import until

SIZE = 4 * 1024 * 1024


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def obstacle(folder):
    """Why no loop device can be mounted here, None when one can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "mounting a loop device needs root"
    for tool in ("mkfs.ext4", "mount", "umount"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    made = make_image(folder / "probe")
    if made.returncode:
        return f"mkfs.ext4: {made.stderr.strip()}"
    (folder / "probe.d").mkdir()
    tried = run("mount", "-o", "loop", str(folder / "probe"), str(folder / "probe.d"))
    run("umount", str(folder / "probe.d"))
    return f"no loop mount: {tried.stderr.strip()}" if tried.returncode else None


def make_image(path):
    with open(path, "wb") as file:
        file.truncate(SIZE)
    return run("mkfs.ext4", "-q", "-F", "-b", "1024", "-J", "size=1", "-O", "^huge_file", str(path))


@contextlib.contextmanager
def mounted(image, place):
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True, capture_output=True)
    try:
        yield place
    finally:
        until(lambda: run("umount", str(place)).returncode == 0)  # a turn at the board's lock is kept for a moment


class CutDisk(Disk):
    """After every operation, keeps what the disk under the file system holds: all that a power cut would leave.

    synced: False for the control, which brings nothing to the disk.
    """

    def __init__(self, image, cuts, *, synced=True):
        self.image, self.cuts, self.synced, self.done = image, cuts, synced, []

    def cut(self, kind):
        self.done.append(kind)
        shutil.copyfile(self.image, self.cuts / f"{len(self.done):03}")

    def make_folder(self, path):
        super().make_folder(path)
        self.cut("make_folder")

    def append(self, path, data):
        super().append(path, data)
        self.cut("append")

    def rename(self, old, new):
        super().rename(old, new)
        self.cut("rename")

    def link(self, old, new):
        super().link(old, new)
        self.cut("link")

    def unlink(self, path):
        super().unlink(path)
        self.cut("unlink")

    def _write(self, fd, data):
        done = super()._write(fd, data)
        self.cut("write")
        return done

    def _sync(self, fd):
        if self.synced:
            super()._sync(fd)
        self.cut("sync")


def cuts_of(case, folder, *, synced=True):
    """Cut the power after every operation of a transaction. Returns how often, and what was wrong after recovery."""
    plain = str(folder / "plain")
    start = prepared(case, plain)
    expected = outcome(case, plain, start)
    views = []
    for world in expected.worlds(acknowledged=False):
        restore(plain, world)
        views.append(seen_by(open_store(plain)))
    image, cuts, place = folder / "image", folder / "cuts", folder / "mounted"
    shutil.rmtree(cuts, ignore_errors=True)
    cuts.mkdir()
    assert make_image(image).returncode == 0
    with mounted(image, place):
        restore(str(place / ".tasks"), start)
    with mounted(image, place):
        disk = CutDisk(image, cuts, synced=synced)
        case.act(open_board(place / ".tasks", disk))
        disk.cut("acknowledged")
    flaws = []
    for number, kind in enumerate(disk.done, 1):
        allowed = expected.worlds(acknowledged=kind == "acknowledged")
        with mounted(cuts / f"{number:03}", place):
            flaws += [
                f"{case}, cut {number} after {kind}: {flaw}" for flaw in flaws_in(place / ".tasks", allowed, views)
            ]
    return len(disk.done), flaws


def flaws_in(path, allowed, views):
    if seen_by(open_store(path)) not in views:
        yield "a reader sees half"
    with open_store(path).write():
        pass
    if kept(world_of(path)) not in [kept(world) for world in allowed]:
        yield "half is left, or an acknowledged change is gone"
    if seen_by(open_store(path)) not in views:
        yield "a reader sees half after recovery"


@pytest.fixture
def cut_dir(tmp_path):
    if reason := obstacle(tmp_path):
        pytest.skip(reason)
    return tmp_path


@pytest.mark.slow
def test_no_power_cut_on_ext4_tears_a_change_or_takes_back_an_acknowledged_one(cut_dir, figure):
    tried, flaws = 0, []
    for name in ("ask", "complete", "first plan"):
        more, bad = cuts_of(BY_NAME[name], cut_dir)
        tried, flaws = tried + more, flaws + bad
    figure("real power cuts on ext4", tried=tried, bad=flaws, at_least=40)


@pytest.mark.slow
def test_a_board_that_brings_nothing_to_the_disk_is_found(cut_dir):
    assert cuts_of(BY_NAME["complete"], cut_dir, synced=False)[1]
