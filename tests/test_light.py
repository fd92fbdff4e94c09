"""What hot commands take instead of `contextlib` and `functools` does as those do: each law is asked of both."""

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from taskwall.core import light

BLOCKS = pytest.mark.parametrize("room", [light, contextlib], ids=["ours", "theirs"])
MEMORIES = pytest.mark.parametrize("room", [light, functools], ids=["ours", "theirs"])


def block(room, steps):
    @room.contextmanager
    def managed(name):
        """What it is for."""
        steps.append(f"enter {name}")
        try:
            yield name
        except KeyError:
            steps.append("kept quiet")
        finally:
            steps.append("leave")

    return managed


@BLOCKS
def test_a_block_is_entered_and_left(room):
    steps = []
    with block(room, steps)("a") as given:
        steps.append(given)
    assert steps == ["enter a", "a", "leave"]
    assert block(room, steps).__doc__ == "What it is for."


@BLOCKS
def test_what_is_raised_in_a_block_is_raised_by_it_and_names_the_line(room):
    steps, error = [], ValueError("wrong")
    with pytest.raises(ValueError, match="wrong") as raised, block(room, steps)("a"):
        raise error
    assert raised.value is error
    assert [entry.name for entry in raised.traceback][-1] == raised.traceback[0].name
    assert steps == ["enter a", "leave"]


@BLOCKS
def test_a_block_may_keep_an_exception_quiet_or_raise_another(room):
    steps = []
    with block(room, steps)("a"):
        raise KeyError
    assert steps == ["enter a", "kept quiet", "leave"]

    @room.contextmanager
    def translating():
        try:
            yield
        except KeyError:
            raise LookupError("told otherwise") from None

    with pytest.raises(LookupError, match="told otherwise"), translating():
        raise KeyError


@BLOCKS
def test_a_block_yields_once(room):
    @room.contextmanager
    def twice():
        yield 1
        yield 2

    with pytest.raises(RuntimeError), twice():
        pass

    @room.contextmanager
    def stubborn():
        with contextlib.suppress(ValueError):
            yield 1
        yield 2

    with pytest.raises(RuntimeError), stubborn():
        raise ValueError


@BLOCKS
def test_some_exceptions_are_suppressed(room):
    with room.suppress(KeyError, OSError):
        raise FileNotFoundError
    with pytest.raises(ValueError), room.suppress(KeyError):
        raise ValueError


@MEMORIES
def test_answers_are_remembered(room):
    asked = []

    @room.lru_cache(maxsize=2)
    def double(number):
        asked.append(number)
        return 2 * number

    assert [double(n) for n in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert asked == [1, 2, 3, 2]
    asked.clear()
    assert [room.cache(asked.append)(1), asked] == [None, [1]]


@MEMORIES
def test_a_property_is_computed_once_and_again_when_it_was_deleted(room):
    class Thing:
        asked = 0

        @room.cached_property
        def size(self):
            """How large."""
            self.asked += 1
            return self.asked

    thing = Thing()
    assert (thing.size, thing.size, Thing().size) == (1, 1, 1)
    del thing.size
    assert thing.size == 2
    assert Thing.size.__doc__ == "How large."


def test_sqlite_is_loaded_without_functools_and_leaves_no_other_in_its_place():
    code = """
import sys
from taskwall.stores.files import sqlite
assert "_sqlite3" in sys.modules and "functools" not in sys.modules, "loaded"
connection = sqlite.connect(":memory:", isolation_level=None)
assert [connection.execute("SELECT ?", (n % 200,)).fetchone() for n in range(300)] == [(n % 200,) for n in range(300)]
assert [connection.execute(f"SELECT {n % 200}").fetchone() for n in range(300)] == [(n % 200,) for n in range(300)]
import functools, sqlite3
assert functools.partial(int, "7")() == 7
assert sqlite3.connect(":memory:").execute("SELECT 1").fetchone() == (1,)
"""
    assert in_a_bare_python(code) == (0, "")


def test_sqlite_that_takes_more_from_functools_than_is_here_is_loaded_with_all_of_that():
    code = """
from taskwall.core import light
del light.lru_cache
from taskwall.stores.files import sqlite
assert sqlite.connect(":memory:").execute("SELECT 1").fetchone() == (1,)
"""
    assert in_a_bare_python(code) == (0, "")


def in_a_bare_python(code):
    env = {**os.environ, "PYTHONPATH": str(Path(light.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=env)
    return done.returncode, done.stderr
