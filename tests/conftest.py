"""What all tests share: a clock that they turn, both stores, and boards of several actors on one store.

Plain functions here are for tests that make their own stores (`from conftest import Clock, open_board, add`).
"""

from __future__ import annotations

import signal
import time
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from taskwall.board import Board, fresh_id
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Draft
from taskwall.stores.files.store import INDEX_FROM, FileStore
from taskwall.stores.memory import MemoryStore

NOON = 1_790_000_000_000_000_000
"""Nanoseconds since 1970 at which every test's clock starts."""

settings.register_profile("taskwall", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("taskwall")

# A shell has what it runs in the background ignore these, and so would every process that a test interrupts.
for number, usual in (("SIGINT", signal.default_int_handler), ("SIGQUIT", signal.SIG_DFL), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, number) and signal.getsignal(getattr(signal, number)) is signal.SIG_IGN:
        signal.signal(getattr(signal, number), usual)


class Clock:
    """The time of a test. Called, it is the wall clock in nanoseconds; each look is a millisecond later."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now
        self.uptime = 1000.0

    def __call__(self) -> int:
        self.now += 1_000_000
        return self.now

    def monotonic(self) -> float:
        """Seconds, by which leases lapse; moves only by `sleep`."""
        return self.uptime

    def sleep(self, *, minutes: float = 0, seconds: float = 0) -> None:
        passed = 60 * minutes + seconds
        self.uptime += passed
        self.now += int(passed * 1_000_000_000)


def open_store(kind, folder, clock, settings=None):
    """An empty store: "memory", or "files" in `folder/.tasks`; "indexed": those through an index, however few.

    "postgres": a new board in PostgreSQL.
    """
    if kind == "memory":
        return MemoryStore(settings=settings, monotonic=clock.monotonic)
    if kind == "postgres":
        from postgres import open_postgres

        return open_postgres(clock, settings)
    path = folder / ".tasks"
    path.mkdir(exist_ok=True)
    index_from = 0 if kind == "indexed" else INDEX_FROM
    return FileStore(
        str(path), settings or Settings(durability="fast"), monotonic=clock.monotonic, index_from=index_from
    )


def open_board(store, name="agent", session=None, *, clock=None, named=True, root=".", new_id=fresh_id):
    """The board as an actor sees it; the session is called like the actor unless given."""
    return Board(store, Actor(name, session or name, named), root=str(root), clock=clock or Clock(), new_id=new_id)


def add(board, id, *blocked_by, **fields):
    """Create the task `id` that waits for these, and return its id."""
    draft = Draft(**{"subject": f"task {id}", "id": id, "blocked_by": tuple(blocked_by), **fields})
    return board.create([draft]).rows[0].task.id


def ids(rows):
    """The ids of rows or tasks, in order."""
    return [getattr(row, "task", row).id for row in rows]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "files", "indexed", "postgres"])
def store(request, tmp_path, clock):
    """An empty board in memory, then one of files in `tmp_path/.tasks`, then that through an index."""
    return open_store(request.param, tmp_path, clock)


@pytest.fixture
def board_for(store, clock, tmp_path):
    """`board_for(name, session=None, named=True)`: this test's store as an actor sees it."""

    def board_for(name="agent", session=None, **more):
        return open_board(store, name, session, clock=clock, root=tmp_path, **more)

    return board_for


# The table of the proof: every proof reports what it tried and how much of it was bad; `make prove` prints all of it


class Figure(NamedTuple):
    name: str
    tried: int
    bad: int
    seconds: float


FIGURES = pytest.StashKey[list]()


def pytest_collection_modifyitems(items):
    """What every store is asked, PostgreSQL is asked in the whole suite; in the quick one, the contract is enough."""
    for item in items:
        store = getattr(item, "callspec", None) and item.callspec.params.get("store")
        if store == "postgres" and item.path.name != "test_store_contract.py":
            item.add_marker(pytest.mark.slow)


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
