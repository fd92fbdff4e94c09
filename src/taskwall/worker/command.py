"""The command line of an agent: ours, or any with `{prompt}` and `{task}` in it. No shell ever sees a task's text."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence

from ..core.errors import Invalid

PROMPT, TASK = "{prompt}", "{task}"
OURS = (sys.executable, "-P", "-m", "taskwall", "agent", f"--task={TASK}", "--yes", PROMPT)
"""Our own agent. It reads its task by itself, its goal is where it works. -P: no module of that folder is imported."""
_ALONE = re.compile(r"(-[\w-]*=)?\{prompt\}")


def checked_command(given: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """The command of an agent, ours when none is given; it can be started from any folder. Raises Invalid."""
    program, *rest = given or OURS
    for argument in rest:
        if PROMPT in argument and not _ALONE.fullmatch(argument):
            told = f"{argument!r} has {PROMPT} inside a text, where a program might run what a task says"
            way = f"""make it an argument of its own: claude -p {PROMPT}, or sh -c 'claude -p "$1"' sh {PROMPT}"""
            raise Invalid(told, next=way)
    found = shutil.which(program, path=env.get("PATH"))
    if found is None:
        raise Invalid(f"there is no program {program!r}", next="name one that can be run after --")
    return os.path.abspath(found) if os.path.dirname(program) else program, *rest


def filled(command: Sequence[str], prompt: str, task_id: str) -> list[str]:
    """The command for one task, each argument still one."""
    # In this order and at once: a prompt may hold `{task}`, too.
    return [
        argument.replace(PROMPT, prompt) if PROMPT in argument else argument.replace(TASK, task_id)
        for argument in command
    ]


def reads_prompt(command: Sequence[str]) -> bool:
    """Whether the prompt comes on standard input, because no argument takes it."""
    return not any(PROMPT in argument for argument in command)


def environment(env: Mapping[str, str], board: str, actor: str, session: str, task_id: str) -> dict[str, str]:
    """The environment of an agent: who it is and what it works on; `taskwall` is found in it."""
    known = {"TASKWALL_BOARD": board, "TASKWALL_ACTOR": actor, "TASKWALL_SESSION": session, "TASKWALL_TASK": task_id}
    path = env.get("PATH", os.defpath)
    if shutil.which("taskwall", path=path) is None:
        path = os.pathsep.join([path, os.path.dirname(sys.executable)])
    return {**env, **known, "PATH": path}
