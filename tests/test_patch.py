"""Strict reading and patching: random objects in random layouts, and what no layout may hide."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskwall.core.model import KEYS
from taskwall.stores.files.patch import patch, spans
from taskwall.stores.files.strict import MAX_DEPTH, NotStrict, encode, parse

ORDER = list(KEYS)

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["表结构", "a\u2028b", "\u202e", '"\\', "é\n"]
)
scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
keys = st.sampled_from([*ORDER, "note", "state", "worktree"]) | texts
objects = st.dictionaries(keys, values, max_size=7)

NUMBERS_AS_WRITTEN = ["1.77E9", "1.776309421719E9", "0.10", "-0", "1e2", "1775551377.7026005"]


class Layout:
    """One random way to write an object; `segments` are literal texts, and (value, text) where a value stands."""

    def __init__(self, draw, wanted):
        self.newline = draw(st.sampled_from(["\n", "\r\n"]))
        self.indent = draw(st.sampled_from([None, "", " ", "  ", "    ", "\t"]))
        self.colon = draw(st.sampled_from([":", ": ", " : ", "  :\t"]))
        space = "" if self.indent is None else self.newline + self.indent
        start = draw(st.sampled_from(["", " ", "  "])) if self.indent is None else space
        comma = draw(st.sampled_from([",", ", ", " , "])) if self.indent is None else "," + space
        self.segments, self.value = ["{" + start], {}
        for number, (key, value) in enumerate(wanted.items()):
            written, value = self.written(draw, value)
            self.value[key] = value
            name = json.dumps(key, ensure_ascii=draw(st.booleans()))
            self.segments += [(comma if number else "") + name + self.colon, (key, written)]
        end = draw(st.sampled_from(["", " "])) if self.indent is None else self.newline
        self.segments.append(end + "}" + draw(st.sampled_from(["", self.newline, "  \n\n"])))

    def written(self, draw, value):
        if isinstance(value, float) and draw(st.booleans()):
            number = draw(st.sampled_from(NUMBERS_AS_WRITTEN))
            return number, json.loads(number)
        if value in ([], {}) and not isinstance(value, (bool, int, float)):
            return draw(st.sampled_from(["[]", "[ ]"] if value == [] else ["{}", "{ }"])), value
        inner = draw(st.sampled_from([None, self.indent or "  "]))
        text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=inner)
        return text.replace("\n", self.newline + (self.indent or "")), value

    @property
    def text(self):
        return "".join(part if isinstance(part, str) else part[1] for part in self.segments)


@st.composite
def layouts(draw, of=objects):
    return Layout(draw, draw(of))


def same(left, right):
    """Equal as JSON: 1, 1.0 and true are three values."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@pytest.mark.slow
@given(layouts(), st.data())
def test_only_the_values_of_the_named_keys_change(layout, data):
    assert same(parse(layout.text), layout.value)
    present = list(layout.value)
    named = data.draw(st.lists(st.sampled_from(present), unique=True)) if present else []
    changes = {key: data.draw(values) for key in named}
    result = patch(layout.text, changes, [], ORDER)
    assert same(parse(result), layout.value | changes)
    at = 0
    for part in layout.segments:
        key, literal = part if isinstance(part, tuple) else (None, part)
        if key in changes and not same(changes[key], layout.value[key]):
            value, at = json.JSONDecoder().raw_decode(result, at)
            assert same(value, changes[key])
        else:
            assert result.startswith(literal, at), (literal, result[at:])
            at += len(literal)
    assert at == len(result)


@given(layouts(), keys, values)
def test_an_added_key_comes_after_its_predecessor_and_its_removal_gives_the_file_back(layout, key, value):
    if key in layout.value:
        return
    added = patch(layout.text, {key: value}, [], ORDER)
    assert same(parse(added), layout.value | {key: value})
    before = [name for name in (ORDER[: ORDER.index(key)] if key in ORDER else layout.value) if name in layout.value]
    names = list(parse(added))
    if before:
        predecessor = before[-1]
        assert names.index(key) == names.index(predecessor) + 1
    else:
        assert names[0] == key
    assert patch(added, {}, [key], ORDER) == layout.text


@pytest.mark.slow
@given(layouts(st.dictionaries(keys, values, min_size=2)), st.sampled_from(ORDER), scalars)
def test_an_added_key_is_one_added_line(layout, key, value):
    if key in layout.value or layout.indent is None:
        return
    added = patch(layout.text, {key: value}, [], ORDER)
    if list(parse(added))[-1] == key:
        return  # the line before it gains a comma
    lines, old = added.split(layout.newline), layout.text.split(layout.newline)
    where = next(i for i, line in enumerate(lines) if i == len(old) or line != old[i])
    assert lines[:where] + lines[where + 1 :] == old
    assert lines[where].startswith(f'{layout.indent}"{key}"')


@pytest.mark.slow
@given(layouts(), st.data())
def test_removing_keys_leaves_the_others_as_they_are_written(layout, data):
    present = list(layout.value)
    gone = data.draw(st.lists(st.sampled_from(present), unique=True)) if present else []
    result = patch(layout.text, {}, gone, ORDER)
    assert same(parse(result), {key: value for key, value in layout.value.items() if key not in gone})
    for part in layout.segments:
        if isinstance(part, tuple) and part[0] not in gone:
            assert part[1] in result


@pytest.mark.slow
@given(layouts())
def test_a_value_that_is_there_already_is_not_touched(layout):
    assert patch(layout.text, layout.value, ["no such key"], ORDER) == layout.text


def test_the_layout_of_a_file_is_kept():
    jackson = '{\r\n  "id" : 1,\r\n  "status" : "pending",\r\n  "blockedBy" : [ ],\r\n  "updated_at" : 1.77E9\r\n}'
    patched = patch(jackson, {"status": "in_progress", "blockedBy": [2, 3], "hold": "wait"}, [], ORDER)
    assert patched == (
        '{\r\n  "id" : 1,\r\n  "status" : "in_progress",\r\n  "blockedBy" : [\r\n    2,\r\n    3\r\n  ],\r\n'
        '  "hold" : "wait",\r\n  "updated_at" : 1.77E9\r\n}'
    )


def test_a_list_that_somebody_wrote_on_one_line_stays_on_one():
    text = '{\n    "id": "a",\n    "blockedBy": ["b", "c"],\n    "owner": null\n}\n'
    assert patch(text, {"blockedBy": ["b", "c", "d"]}, [], ORDER) == text.replace('"c"]', '"c", "d"]')


def test_an_object_on_one_line_stays_on_one():
    text = '{"id": "a", "status": "pending"}'
    assert patch(text, {"hold": "x", "owner": None}, [], ORDER) == (
        '{"id": "a", "status": "pending", "owner": null, "hold": "x"}'
    )


def test_a_key_written_with_escapes_is_the_same_key():
    assert patch('{"st\\u0061tus": "a"}', {"status": "b"}, [], ORDER) == '{"st\\u0061tus": "b"}'


def test_lone_surrogates_are_written_as_escapes():
    assert encode({"\ud800": ["\udfff", "表"]}) == '{"\\ud800": ["\\udfff", "表"]}'
    patched = patch('{"subject": "\\ud83d", "id": "a"}', {"id": "\ud83d"}, [], ORDER)
    assert patched == '{"subject": "\\ud83d", "id": "\\ud83d"}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": 1, "\\u0061": 2}', "'a' stands twice"),
        ('{"a": {"b": 1, "b": 1}}', "'b' stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": Infinity}', "Infinity is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1e999}', "too large"),
        ('{"a": -1e999}', "too large"),
        ('{"a": ' + "1" * 5000 + "}", "4300 digits"),
        ('{"a": 1.' + "1" * 5000 + "e9999}", "too large"),
        ("[]", "not a JSON object but a list"),
        ('"text"', "not a JSON object but a str"),
        ("1", "not a JSON object but a int"),
        ("null", "not a JSON object but a NoneType"),
        ("", "empty"),
        (" \r\n\t", "empty"),
        ("\0" * 512, "zero bytes"),
        ('{"a": 1} {"b": 2}', "Extra data"),
        ('{"a": 1,}', ""),
        ("{'a': 1}", ""),
        ('{"a": "\t"}', "control character"),
        ('{"a": "\0"}', "control character"),
        ('{"a": 01}', ""),
        ('{"a": .5}', ""),
        ('// c\n{"a": 1}', ""),
        ('{"a": "\\x41"}', ""),
        ("[" * 100_000, "nested"),
        ('{"a":' * 100_000, "nested"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested"),
        ('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested deeper than 32"),
        ('{\n "a": 1,\n<<<<<<< HEAD\n "b": 2\n=======\n "b": 3\n>>>>>>> x\n}', "git conflict markers"),
    ],
)
def test_what_is_more_than_one_json_object_is_refused(text, why):
    with pytest.raises(NotStrict) as refusal:
        parse(text)
    assert why in str(refusal.value)


def test_nesting_is_allowed_to_its_limit():
    assert parse('{"a": ' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}")


def test_a_conflict_is_found_in_its_line():
    with pytest.raises(NotStrict) as refusal:
        parse('{\n  "id": "a",\n<<<<<<< ours\n  "status": "pending"\n=======\n  "status": "x"\n>>>>>>> theirs\n}\n')
    assert refusal.value.line == 3


@given(st.text(max_size=40) | st.text('{}[]":,\\\n 0123456789eE+-.truefalsnN', max_size=60))
@settings(max_examples=200)
def test_any_text_is_an_object_or_refused_and_nothing_else(text):
    try:
        value = parse(text)
    except NotStrict:
        return
    assert isinstance(value, dict)
    assert set(spans(text)) == set(value)


@pytest.mark.slow
@given(layouts(), st.data())
def test_a_damaged_text_is_an_object_or_refused_and_nothing_else(layout, data):
    text = layout.text
    at = data.draw(st.integers(0, len(text)))
    damage = data.draw(st.sampled_from(["", "{", '"', "\0", "NaN", "\\u12", "<<<<<<< HEAD\n", "1e400", "\ud800"]))
    try:
        parse(text[:at] + damage + text[at + data.draw(st.integers(0, 3)) :])
    except NotStrict:
        pass
