"""What a run may use up: turns, tokens, seconds, money. A part of it for a helper counts for the whole."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from ..core.errors import Invalid
from ..core.record import Record

MAX_TURNS = 100
"""How often a model is asked in one run, unless told otherwise."""


class Limits(Record):
    """None: no limit. prices: of a million tokens read and of a million written, in any currency."""

    turns: int = MAX_TURNS
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    prices: tuple[float, float] | None = None


def limits(turns: int, tokens: int | None, seconds: float | None, cost: float | None, prices: str | None) -> Limits:
    """The limits that options name. prices: "IN/OUT". Raises Invalid."""
    if cost is not None and not prices:
        way = "add --prices IN/OUT (TASKWALL_PRICES), per million tokens, such as 0.28/0.42"
        raise Invalid("--max-cost needs to know what the model costs", next=way)
    for given in (turns, tokens, seconds, cost):
        if given is not None and not given > 0:
            raise Invalid(f"a budget is {given}, must be more than 0", next="give a larger number")
    return Limits(turns, tokens, seconds, cost, _prices(prices) if prices else None)


def _prices(text: str) -> tuple[float, float]:
    if (found := re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)) is None:
        told = f"prices are {text!r}, must be two numbers: of a million tokens read and of a million written"
        raise Invalid(told, next="write them as IN/OUT, such as 0.28/0.42")
    return float(found[1]), float(found[2])


class Budget:
    """What is left of the limits."""

    def __init__(
        self, limits: Limits, whole: Budget | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """whole: the budget that this one is a part of."""
        self.limits, self._whole, self._clock = limits, whole, clock
        self.began = clock()
        self.turns = self.tokens_in = self.tokens_out = 0
        self.estimated = False

    def part(self, turns: int) -> Budget:
        """A budget of so many turns whose use is use of this one too."""
        return Budget(Limits(turns=turns), self, self._clock)

    @property
    def deadline(self) -> float:
        """When the time is over, on the monotonic clock."""
        own = self.began + (self.limits.seconds if self.limits.seconds is not None else float("inf"))
        return min(own, self._whole.deadline) if self._whole else own

    @property
    def cost(self) -> float | None:
        """What it cost so far, None where prices are not known. Cheaper rates for cached tokens are not counted."""
        if not self.limits.prices:
            return None
        read, written = self.limits.prices
        return (read * self.tokens_in + written * self.tokens_out) / 1_000_000

    def spend(self, read: int, written: int, *, estimated: bool = False) -> None:
        """Count an answer by its tokens. estimated: the endpoint does not count them."""
        self.turns += 1
        self.tokens_in += read
        self.tokens_out += written
        self.estimated |= estimated
        if self._whole:
            self._whole.spend(read, written, estimated=estimated)

    def spent(self) -> str:
        """Which limit is reached, in words; empty when there is something left of each."""
        most, cost = self.limits, self.cost
        if self.turns >= most.turns:
            return "all its turns are used (--max-turns)"
        if most.tokens is not None and self.tokens_in + self.tokens_out >= most.tokens:
            return "all its tokens are used (--max-tokens)"
        if self._clock() >= self.deadline:
            return "its time is over (--max-seconds)"
        if most.cost is not None and cost is not None and cost >= most.cost:
            return "it cost all that it may (--max-cost)"
        return self._whole.spent() if self._whole else ""

    def told(self) -> str:
        """What was used, on one line."""
        seconds = self._clock() - self.began
        time = f"{seconds / 60:.0f} min" if seconds >= 600 else f"{seconds:.0f} s"
        about = "about " if self.estimated else ""
        cost = f", cost {self.cost:.4f}" if self.cost is not None else ""
        turns = f"{self.turns} turn{'s' if self.turns != 1 else ''}"
        return f"{turns}, {about}{self.tokens_in:,} tokens read and {self.tokens_out:,} written, {time}{cost}"
