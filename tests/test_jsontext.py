"""JSON without the package `json` is what `json` makes of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskwall.core import jsontext

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
            assert told(jsontext.loads, whole) == told(json.loads, whole)

    same()


def told(loads, text):
    try:
        return repr(loads(text, object_pairs_hook=tuple, parse_float=str, parse_constant=ascii))
    except ValueError as error:
        return str(error)
