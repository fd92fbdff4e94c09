"""The commands that tend a board rather than work on it: set-up, doctor, and what git knows of it."""

from __future__ import annotations

import os

from ...config import require_files
from ...core.errors import Invalid
from ...interop import setup as clients
from ...results import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ...config import Location
    from ...outcomes import Place, SetUp
    from ...results import Answer

    Ask = Callable[[Sequence[str], str], bool]
    Locate = Callable[[], Location]
    Values = dict[str, Any]


def set_up(values: Values, locate: Locate, ask: Ask | None) -> SetUp:
    """Clients, or git, which is named alone."""
    names = values.pop("names", [])
    if "git" not in names:
        return clients.set_up(names, os.environ, os.getcwd(), ask=_about_plan(ask), **values)
    if len(names) > 1 or {"user", "stop_hook"} & set(values):
        raise Invalid("git is set up by itself, for one repository", next="run `taskwall setup git`")
    from ...interop.gitconf import set_up_git

    return set_up_git(require_files(locate()), ask=_about_plan(ask), **values)


def with_git(place: Place, ask: Ask | None, *, yes: bool) -> Place:
    """What `init --git` answers: git is set up for the board as well."""
    from ...interop.gitconf import set_up_git

    return place.replace(git=set_up_git(place.path, yes=yes, ask=_about_plan(ask)))


def uninstall(values: Values, locate: Locate, ask: Ask | None) -> SetUp:
    """All that set-up wrote in this project."""
    from ...interop.gitconf import uninstall

    return uninstall(locate().path, os.environ, os.getcwd(), ask=_about_plan(ask), **values)


def _about_plan(ask: Ask | None) -> clients.Ask | None:
    """How a person is asked about a plan of set-up."""

    def agreed(plan: SetUp) -> bool:
        question = f"{plan.action.capitalize()} for {', '.join(plan.clients)}?"
        return ask is not None and ask([plan.diff.rstrip("\n"), *plan.notes], question)

    return agreed if ask else None


def diff(values: Values, locate: Locate, _: Ask | None) -> Answer:
    """What changed between two commits."""
    from ...interop.githistory import diff

    return diff(require_files(locate()), values.get("revisions", ""))


def history(values: Values, locate: Locate, _: Ask | None) -> Answer:
    """The commits of one task."""
    from ...interop.githistory import history

    if "task_id" not in values:
        raise Invalid("log --git tells of one task", next="name it, or see `taskwall diff A..B`")
    return history(require_files(locate()), values["task_id"], values.get("limit", PAGE))


def examined(values: Values, locate: Locate, ask: Ask | None) -> Answer:
    """What doctor finds, and repairs when it is asked to."""
    from ...interop.doctor import doctor

    def agreed(lines: Sequence[str]) -> bool:
        return ask is not None and ask(lines, "Repair this?")

    return doctor(locate(), ask=agreed if ask else None, **values)


ANSWERS: dict[str, Callable[[Values, Locate, Ask | None], Answer]] = {
    "setup": set_up,
    "uninstall": uninstall,
    "doctor": examined,
    "log": history,
    "diff": diff,
}
