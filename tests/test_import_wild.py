"""Whatever lies in a source, an import reads it or says why not: it never fails in between."""

import pytest
import json

from conftest import Clock, open_board
from hypothesis import given
from hypothesis import strategies as st

from taskwall.core.model import stored
from taskwall.core.state import find_cycle, state
from taskwall.interop.importers import FORMATS
from taskwall.interop.importers.source import Text
from taskwall.stores.files.dialects import read
from taskwall.stores.files.strict import encode, parse
from taskwall.stores.memory import MemoryStore

KEYS = """id uuid task_id title subject name description status state priority issue_type created_at updated_at closed_at labels
tags dependencies depends comments annotations notes subtasks details blockedBy blocked_by blocks parent owner assignee metadata
TaskPayload rev tasks master _rawTaggedData project depends_on_id issue_id type text entry hold question options epoch""".split()
WORDS = [
    "1",
    "2",
    "1.2",
    "a",
    "bd-1",
    "open",
    "done",
    "in_progress",
    "blocks",
    "parent-child",
    "2026-01-06",
    "-",
    "\x1b[0m",
    "任务",
    "",
]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
records = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)
named = st.builds(
    lambda base, more: base | more,
    records,
    st.fixed_dictionaries(
        {key: st.sampled_from(WORDS) for key in ("id", "uuid", "title", "subject", "status", "description")}
    ),
)
jsons = st.one_of(
    st.lists(named, max_size=5).map(lambda found: "\n".join(map(json.dumps, found))),
    st.lists(named, max_size=5).map(json.dumps),
    st.lists(named, max_size=5).map(lambda tasks: json.dumps({"master": {"tasks": tasks}})),
    st.lists(named, max_size=5).map(lambda tasks: json.dumps({"tasks": tasks})),
    values.map(json.dumps),
    st.text(max_size=40),
)
fields = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from([*WORDS, "[a, b]", "@x", "- y", "&a", "{", ": :"])), max_size=8
)
markdowns = st.builds(
    lambda told, body: "---\n" + "".join(f"{key}: {value}\n" for key, value in told) + f"---\n{body}",
    fields,
    st.text(st.sampled_from("#- []xX\n`*><!ab标"), max_size=60),
) | st.text(st.sampled_from("#- []xX\n`~ 1.ab标"), max_size=80)


def bring(form, texts):
    batch = form.read([Text(f"tasks/f{number}", text) for number, text in enumerate(texts)])
    board = open_board(MemoryStore(), clock=Clock())
    board.bring_in(batch.items, format=form.name, board="b")
    view = board.store.read()
    for task in view:
        state(view, task)
        known = stored(task)
        # What is written can be read again, and is the same.
        assert stored(read(parse(encode(known)))) == known
    assert find_cycle(view, [task.id for task in view]) is None
    assert not board.bring_in(batch.items, format=form.name, board="b").put
    assert len(batch.items) <= batch.records or form.name in ("tasks",)


@pytest.mark.slow
@given(
    st.sampled_from(["beads", "taskmaster", "taskwarrior", "tasks", "jsonl"]), st.lists(jsons, min_size=1, max_size=3)
)
def test_any_json(format, texts):
    bring(FORMATS[format], texts)


@given(st.sampled_from(["backlog", "ticket", "checklist"]), st.lists(markdowns, min_size=1, max_size=3))
def test_any_markdown(format, texts):
    bring(FORMATS[format], texts)
