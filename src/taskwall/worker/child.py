"""The process of an agent, on a leash: whatever becomes of the worker, nothing of the agent's group outlives it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

LEASH = os.path.join(os.path.dirname(__file__), "leash.py")
GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""


class Child:
    """A command in a process group of its own that writes into a log. Ended with all of its group by `stop`.

    A process that makes itself a session of its own leaves the group and is not ended.
    """

    def __init__(
        self, command: Sequence[str], *, folder: str, env: Mapping[str, str], log: int, said: str | None
    ) -> None:
        """said: what it finds on standard input. Raises OSError when no process can be started."""
        end, self._leash = os.pipe()
        leash = [sys.executable, "-I", "-S", LEASH, str(end), str(GRACE), *command]
        try:
            with tempfile.TemporaryFile() as prompt:
                prompt.write((said or "").encode())
                prompt.seek(0)
                self._process = subprocess.Popen(
                    leash,
                    stdin=prompt if said else subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=env,
                    pass_fds=(end,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            os.close(end)

    def stop(self) -> None:
        """Let it end: SIGTERM, and SIGKILL after a grace. Said twice: SIGKILL now."""
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            os.write(self._leash, b".")

    def exit(self) -> int | None:
        """Its exit status, 128 and the number of the signal that ended it; None while it runs."""
        code = self._process.poll()
        if code is not None and self._leash >= 0:
            os.close(self._leash)
            self._leash = -1
        return code
