"""Which process this is and on which host, and whether another one is gone, where `/proc` says so (Linux).

A long-lived holder of a claim names its process with it; when that vanishes, nobody has to wait for the lease.
"""

from __future__ import annotations

import os


def this_process() -> str:
    """`pid:start:namespace` of this process; empty where that cannot be known."""
    start = _start_of(os.getpid())
    namespace = _namespace()
    return f"{os.getpid()}:{start}:{namespace}" if start and namespace else ""


def this_host() -> str:
    """What this machine calls itself; empty where that cannot be known, or shown."""
    # `socket` and `platform` know it too, but take milliseconds to import, in every command.
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return name if name.isprintable() else ""


def is_gone(process: str) -> bool:
    """Whether a process of this boot certainly runs no more. Of another container, nothing is certain."""
    pid, _, rest = process.partition(":")
    start, _, namespace = rest.partition(":")
    if not pid.isdecimal() or not start or namespace != _namespace():
        return False
    return _start_of(int(pid)) != start


def _start_of(pid: int) -> str:
    """When a process started, in ticks since boot: pids are used again, and this tells their users apart."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, spaces and parentheses too.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return fields[19].decode() if fields[0] not in (b"Z", b"X") else ""  # a zombie beats no more


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
