"""A plain command line is read without argparse, and means the same as with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskwall import verbs  # noqa: F401 - importing verbs registers them
from taskwall.core.errors import Refused
from taskwall.faces.cli.command import GLOBALS
from taskwall.faces.cli.commands import COMMANDS
from taskwall.faces.cli.parsing import parser_of

WORDS = st.sampled_from(
    ["task-1", "two words", "a,b", "", "-", "3", "high", "1.5", "nan", "ready", "水电", "-1", "--", "-x", "--n=1"]
)


@st.composite
def lines(draw):
    """A command and words for it: its options, those of others now and then, and values that may or may not fit."""
    name = draw(st.sampled_from(sorted(COMMANDS)))
    own = [flag for a in (*GLOBALS, *COMMANDS[name].arguments) if a.is_option for flag in a.flags.split()]
    word = st.one_of(WORDS, WORDS, st.sampled_from(own), st.sampled_from([f"{own[-1]}=3", own[-1][:3], "--limit"]))
    return name, draw(st.lists(word, max_size=7))


@given(lines())
def test_what_is_read_without_argparse_is_what_argparse_reads(line):
    name, words = line
    read = COMMANDS[name].read(words)
    if read is not None:
        assert told(read) == told(parser_of(name).parse_intermixed_args(words))


def told(args):
    return repr(sorted(vars(args).items()))  # not compared as values: nan is no nan


PLAIN = [
    "next", "next -n 5 --json", "list", "list ready blocked --owner ada", "show task-1", "claim", "claim task-1 --ttl 5",
    "--board b claim --as ada", "done task-1 -m text", "add two words -b a b -p high -l x", "add -l x -l y -- -d",
    "note task-1 - --json", "release task-1 --failed",
]  # fmt: skip
"""As agents type them all day."""


@pytest.mark.parametrize("line", PLAIN)
def test_plain_lines_do_not_need_argparse(line):
    words = line.split()
    name = next(word for word in words if word in COMMANDS)
    words.remove(name)
    assert (COMMANDS[name].read(words) is None) == ("--" in words)


@pytest.mark.parametrize(
    "line", ["show", "show a b", "next -n x", "next -n", "next --limi 3", "add -b x", "claim --x", "add x -p"]
)
def test_what_is_wrong_is_left_to_argparse_to_explain(line):
    name, *words = line.split()
    assert COMMANDS[name].read(words) is None
    with pytest.raises(Refused, match=f"taskwall {name}: "):
        parser_of(name).parse_intermixed_args(words)
