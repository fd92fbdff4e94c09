"""The table of the proof: every proof reports what it tried and how much of it was bad; `make prove` prints all of it."""

import time
from typing import NamedTuple

import pytest


class Figure(NamedTuple):
    name: str
    tried: int
    bad: int
    seconds: float


FIGURES = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[FIGURES] = []


@pytest.fixture
def figure(request):
    """`figure(name, tried=…, bad=…, at_least=…)`: into the table, and fail unless enough was tried and none was bad."""
    started = time.monotonic()

    def report(name, *, tried, bad, at_least=1):
        found = bad if isinstance(bad, int) else len(bad)
        request.config.stash[FIGURES].append(Figure(name, tried, found, time.monotonic() - started))
        assert not found, bad
        assert tried >= at_least, f"{name}: only {tried} tried"

    return report


def pytest_terminal_summary(terminalreporter, config):
    figures = config.stash.get(FIGURES, [])
    if figures:
        terminalreporter.section("proof")
        width = max(len(f.name) for f in figures)
        terminalreporter.line(f"{'figure':{width}}  {'tried':>9}  {'bad':>5}  {'seconds':>7}")
        for f in figures:
            terminalreporter.line(f"{f.name:{width}}  {f.tried:>9,}  {f.bad:>5}  {f.seconds:>7.1f}")
