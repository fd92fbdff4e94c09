"""JSON without the package `json` is what `json` makes of it."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskwall.core import jsontext

HERE = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.dirname(jsontext.__file__)))}

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None))),
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner)),
    max_leaves=10,
)


@pytest.fixture(params=["the half in C", "json itself"])
def half(request, monkeypatch):
    if request.param == "json itself":
        monkeypatch.setattr(jsontext, "_json", None)


@pytest.mark.usefixtures("half")
@pytest.mark.filterwarnings("error")
def test_both_write_alike():
    @given(VALUES)
    def same(value):
        assert jsontext.dumps(value) == json.dumps(value, ensure_ascii=False)
        assert jsontext.dumps(value, "  ") == json.dumps(value, ensure_ascii=False, indent="  ")

    same()
    with pytest.raises(TypeError):
        jsontext.dumps(object())


@pytest.mark.usefixtures("half")
def test_both_read_alike():
    @given(
        st.one_of(VALUES.map(json.dumps), st.text('[]{}:," \n1.eE+-tNa\\u')),
        st.sampled_from(["", " ", "\n\t", "x", ","]),
    )
    def same(text, more):
        for whole in (text, more + text, text + more):
            assert told(jsontext.reader(**HOOKS), whole) == told(partial(json.loads, **HOOKS), whole)

    same()


HOOKS = {"object_pairs_hook": tuple, "parse_float": str, "parse_constant": ascii}


def told(read, text):
    try:
        return repr(read(text))
    except ValueError as error:
        return str(error)


BROKEN = [
    '{"a" 1}',
    "[1,",
    '{"a":1,}',
    '"abc',
    '"\\x"',
    "[1 2]",
    "{1:2}",
    '"a\nb"',
    "nul",
    "",
    '"\\ud8',
    '{"a":tru}',
    "{} x",
]


def test_what_is_wrong_is_said_before_json_is_loaded():
    code = "import sys; from taskwall.core.jsontext import loads\ntry: loads(sys.argv[1])\nexcept ValueError as flaw: print(flaw)"
    for text in BROKEN:
        done = subprocess.run([sys.executable, "-S", "-c", code, text], capture_output=True, text=True, env=HERE)
        with pytest.raises(json.JSONDecodeError) as flaw:
            json.loads(text)
        assert done.stdout == f"{flaw.value}\n", (text, done.stderr)
