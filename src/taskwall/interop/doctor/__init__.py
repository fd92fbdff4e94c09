"""`taskwall doctor`: what is wrong with a board, what it means, what helps; repairs what is safe when asked to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from ...config import Location, require_files
from ...core.errors import Invalid, Refused
from . import files, local, repository, texts, work
from .findings import Diagnosis, Finding, Found, found
from .repairs import carry_out
from .sight import Sight

CHECKS: tuple[Callable[[Sight], Iterator[Found]], ...] = (
    *local.CHECKS,
    *files.CHECKS,
    *work.CHECKS,
    *texts.CHECKS,
    *repository.CHECKS,
)


def doctor(
    location: Location,
    *,
    fix: bool = False,
    yes: bool = False,
    ask: Callable[[Sequence[str]], bool] | None = None,
    now: Callable[[], float] = time.time,
) -> Diagnosis:
    """Examine the board; with `fix`, repair what is safe. Raises Invalid where there is none, Locked.

    ask: shows the plan to a person and returns whether they agree; without it only `yes` repairs.
    """
    require_files(location)
    if not location.exists:
        way = "`taskwall init` makes one; `taskwall where` tells where it was looked for"
        raise Invalid(f"there is no board: {location.path} does not exist ({location.why})", next=way)
    first = examine(location, now())
    plan = [each.repair for each in first if each.repair] if fix else []
    told = [repair.words for repair in plan]
    agreed = bool(plan) and (yes or (ask is not None and ask(told)))
    if not agreed:
        return Diagnosis(_findings(first), plan=tuple(told))
    done, copies = carry_out(location.path, plan, now())
    return Diagnosis(_findings(examine(location, now())), repaired=done, copies=copies)


def _findings(every: Sequence[Found]) -> tuple[Finding, ...]:
    return tuple(each.finding for each in every)


def examine(location: Location, now: float) -> list[Found]:
    """Everything that is found, the worst first. A check that cannot look says so and stops no other."""
    sight = Sight(location, now)
    every: list[Found] = []
    for check in CHECKS:
        try:
            every += check(sight)
        except (OSError, ValueError, Refused) as error:
            every.append(found("not_examined", f"{check.__name__}: {error}", "mend that, and run doctor again"))
    return sorted(every, key=lambda each: each.finding.order)
