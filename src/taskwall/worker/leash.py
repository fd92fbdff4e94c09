"""Runs a command in a process group of its own, and ends all of it when its keeper wants that or is no more.

`leash.py FD GRACE COMMAND…`: the keeper holds the writing end of the pipe FD. A byte in it, or its end (a keeper that
was killed with -9 writes nothing), is SIGTERM to the group, and GRACE seconds later SIGKILL to what is left of it;
another byte is SIGKILL now. Exits as a shell says that the command did. What the command leaves running in its group is
ended with it, in the same way. Imports nothing of ours, for one of these runs beside every agent.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time

OURS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that are not for us: we end when the command has."""
NOT_FOUND = 127
LAST, OFTEN = 2.0, 0.05
"""Seconds that what a command leaves running has to end by itself, and between two looks whether it has."""


def main(keeper: int, grace: float, command: list[str]) -> int:
    """Run the command to its end and return its exit status."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in OURS:
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(keeper, False)
    fresh = (*OURS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setpgroup=0, setsigdef=fresh)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND
    code, deadline = _kept(child, keeper, woken, grace)
    # What it left running; as long as there is any, nobody else gets the group's number.
    if _end(child, signal.SIGTERM):
        while time.monotonic() < deadline and _runs(child) and not _hurried(keeper):
            time.sleep(OFTEN)
        _end(child, signal.SIGKILL)
    return code if code >= 0 else 128 - code


def _kept(child: int, keeper: int, woken: int, grace: float) -> tuple[int, float]:
    """How the command ended, by itself or because the keeper said so; negative: the signal that ended it.

    And until when what it left has time to end.
    """
    deadline, listened = math.inf, [keeper, woken]
    asked = killed = False
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
        ready = select.select(listened, [], [], left)[0]
        if woken in ready:
            os.read(woken, 1024)
        if keeper in ready:
            said = os.read(keeper, 1)
            if not said:
                listened.remove(keeper)
            if not asked:
                _end(child, signal.SIGTERM)
                asked, deadline = True, time.monotonic() + grace
            elif said:
                deadline = 0
        if time.monotonic() >= deadline:
            _end(child, signal.SIGKILL)
            killed, deadline = True, math.inf
    left = 0.0 if killed else min(deadline, time.monotonic() + (grace if asked else LAST))
    return os.waitstatus_to_exitcode(ended[1]), left


def _hurried(keeper: int) -> bool:
    """Whether the keeper says once more that it is to end."""
    return bool(select.select([keeper], [], [], 0)[0]) and bool(os.read(keeper, 1))


def _runs(group: int) -> bool:
    """Whether anything of a group runs. What has ended counts as of it until it is reaped, if ever."""
    if not os.path.exists("/proc/self/stat"):
        return _end(group, 0)
    return _end(group, 0) and any(_is_of(pid, group) for pid in os.listdir("/proc") if pid.isdecimal())


def _is_of(pid: str, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            status, _, of = file.read().rpartition(b")")[2].split()[:3]
    except OSError:  # it has just gone
        return False
    return int(of) == group and status not in (b"Z", b"X")


def _end(group: int, number: int) -> bool:
    """Send a signal to a group. Returns whether there is one."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
