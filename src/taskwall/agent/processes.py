"""Commands of a run as process groups that end with it, however it ends: by kill -9 too."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import IO

MAX_OUTPUT = 32 * 1024 * 1024
"""Bytes of output at which a command is ended."""
GLANCE = 0.2
"""Seconds between looks at a running command's output."""

REAPER = """
trap '' HUP INT TERM
while :; do
  read -r -t 5 new; code=$?
  for group in "${!groups[@]}"; do kill -0 -- "-$group" || unset "groups[$group]"; done
  if [ $code = 0 ]; then groups[$new]=1; elif [ $code -le 128 ]; then break; fi
done
for group in "${!groups[@]}"; do kill -KILL -- "-$group"; done
"""
"""Reads the groups from a pipe whose other end is ours alone: it closes when we are gone, and then they are ended.

Those that are over are forgotten soon, for their numbers are used again.
"""
REGISTERED = 'echo $$ >&"$1"; eval "exec $1>&-"; exec bash -c "$0"'
"""Runs a command after its group was named to the reaper, so that no kill of ours can come in between."""


class Groups:
    """The process groups of a run. The reaper is started with the first of them."""

    def __init__(self) -> None:
        self._reaper: subprocess.Popen[bytes] | None = None

    def start(self, command: str, folder: str, env: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        """Run a shell command in a group of its own; what it writes goes to a file."""
        if self._reaper is None or self._reaper.poll() is not None:  # a command may have killed it
            nowhere = subprocess.DEVNULL
            self._reaper = subprocess.Popen(
                ["bash", "-c", REAPER], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
        assert self._reaper.stdin is not None
        pipe = self._reaper.stdin.fileno()
        return subprocess.Popen(
            ["bash", "-c", REGISTERED, command, str(pipe)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(pipe,),
        )

    def close(self) -> None:
        """End what still runs in any of them."""
        if self._reaper is not None:
            assert self._reaper.stdin is not None
            self._reaper.stdin.close()
            self._reaper.wait()
            self._reaper = None


def watch(process: subprocess.Popen[bytes], output: IO[bytes], limit: float) -> str:
    """Wait for the end of a command, in words; it is ended when it takes or writes too much."""
    deadline = time.monotonic() + limit
    while (left := deadline - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(min(left, GLANCE))
            return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        if os.fstat(output.fileno()).st_size > MAX_OUTPUT:
            end_group(process)
            return f"ended, with all that it started: it wrote more than {MAX_OUTPUT} bytes"
    end_group(process)
    return f"timed out after {limit:g} seconds and was ended, with all that it started"


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command that was started in a session of its own, and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
