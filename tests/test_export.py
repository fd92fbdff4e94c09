"""The board in other formats, and back."""

import csv
import io
import json
import os
import re

import pytest
from conftest import Clock, open_board
from hypothesis import given
from hypothesis import strategies as st

from importing import Project, told
from taskwall.config import find_board, open_board as open_found
from taskwall.core.errors import Invalid, Unwritable
from taskwall.core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, Actor, Settings, Task, stored
from taskwall.core.rules import Draft, Edit
from taskwall.core.view import View
from taskwall.interop.exporters import EXPORTERS
from taskwall.interop.exporting import export_board
from taskwall.interop.importers import FORMATS, beads, ours
from taskwall.interop.importers.source import Text
from taskwall.wording import UNSAFE
from taskwall.stores.memory import MemoryStore

NAMES = [f"t{n}" for n in range(6)]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = texts.map(lambda text: " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", "", text).split()) or "x")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
times = st.sampled_from([None, "2026-01-06T18:00:00.000001Z", "2026-02-06T18:00:00.000000Z"])


@st.composite
def boards(draw):
    """Tasks of ours with any stored value, without rings."""
    tasks = []
    for number, name in enumerate(NAMES[: draw(st.integers(1, 6))]):
        status = draw(st.sampled_from([PENDING, IN_PROGRESS, COMPLETED, CANCELLED]))
        tasks.append(
            Task(
                name,
                draw(words),
                description=draw(texts),
                status=status,
                owner=draw(words if status == IN_PROGRESS else st.none() | words),
                blocked_by=tuple(draw(st.lists(st.sampled_from([*NAMES[:number], "gone"]), unique=True))),
                priority=draw(st.integers(0, 4)),
                labels=tuple(draw(st.lists(words, unique=True, max_size=2))),
                parent=draw(st.sampled_from([None, *NAMES[number + 1 :]])),
                products=tuple(draw(st.sampled_from([[], ["a/*.txt", "b"]]))),
                checks=tuple(draw(st.sampled_from([[], ["make test"]]))),
                hold=draw(st.none() | texts),
                question=draw(st.none() | words),
                options=tuple(draw(st.lists(words, unique=True, max_size=2))),
                answer=draw(st.none() | texts),
                result=draw(st.none() | texts),
                evidence=draw(st.dictionaries(texts, values, max_size=2)),
                notes=tuple(
                    {"at": "2026-01-06", "by": draw(words), "text": t} for t in draw(st.lists(texts, max_size=2))
                ),
                metadata=draw(st.dictionaries(texts, values, max_size=3)),
                created_at=draw(times),
                created_by=draw(st.none() | words),
                updated_at=draw(times),
                started_at=draw(times),
                completed_at=draw(times),
                key=draw(st.none() | words),
                attempts=draw(st.integers(0, 3)),
                epoch=draw(st.integers(0, 3)),
                rev=draw(st.integers(1, 9)),
            )
        )
    return tasks


@pytest.mark.slow
@given(boards())
def test_json_lines_bring_back_the_same_board(tasks):
    batch = ours.read([Text("b.jsonl", EXPORTERS["jsonl"](View(tasks, {}, Settings())))])
    board = open_board(MemoryStore(), clock=Clock())
    brought = board.bring_in(batch.items, format="jsonl", board="")
    assert not batch.findings
    assert {task.id: stored(task) for task in board.store.read()} == {task.id: stored(task) for task in tasks}
    assert not board.bring_in(batch.items, format="jsonl", board="").put
    assert {finding.kind for finding in brought.findings} <= {"dangling", "early"}


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def board_of(project):
    location = find_board(str(project.here), {}, str(project.here))
    return open_found(location, Actor("user", "user"), make=True)


@pytest.fixture
def board(project):
    """A board with something of everything."""
    board = board_of(project)
    board.create(
        [
            Draft("走水电 <b>&", id="wires", description="# not a heading\n- [ ] no task", labels=("电",), priority=0),
            Draft("=cmd|' /C calc'!A0", id="wall", blocked_by=("wires",), parent="", description='say "hi",\nthen go'),
            Draft("which colour?", id="colour", owner="user"),
            Draft("paint \u202e", id="paint", blocked_by=("wall", "colour"), checks=("make",)),
        ]
    )
    board.claim("wires")
    board.complete("wires", result="copper")
    board.answer("colour", "white")
    board.update("wall", Edit(note="twice\nas thick"))
    board.hold("paint", "dry first")
    return board


def test_a_board_of_files_comes_back_byte_for_byte(project, board, tmp_path):
    export_board(board, path=str(tmp_path / "board.jsonl"))
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other")
    answer = other.bring(tmp_path / "board.jsonl")
    assert (answer.format, answer.exit) == ("jsonl", 0)
    assert other.texts == project.texts


@pytest.mark.parametrize("format", [*EXPORTERS, "html"])
def test_archived_tasks_are_exported_too(board, format):
    board.create([Draft("first", id="first-1"), Draft("second", id="second-2", blocked_by=("first-1",))])
    board.claim("first-1")
    board.complete("first-1")
    before = export_board(board, format=format)
    assert board.archive().ids
    after = export_board(board, format=format)
    assert after.tasks == before.tasks and after.text.count("first-1") == before.text.count("first-1")


def test_a_task_that_differs_on_the_board_is_left_as_it_is(project, board, tmp_path):
    export_board(board, path=str(tmp_path / "board.jsonl"))
    board.update("wall", Edit(subject="wall, changed"))
    before = project.texts
    answer = project.bring(tmp_path / "board.jsonl")
    assert project.texts == before
    assert told(answer, "changed here") == ["board.jsonl:2: wall is on this board already, and differs"]


def test_files_of_other_programs_are_exported_in_our_keys_with_theirs_beside(project):
    project.write(
        "here/.tasks/1.json", '{"id": 1, "subject": "s", "status": "deleted", "requiredRole": "ops", "owner": ""}'
    )
    project.write("here/.tasks/r.json", '{"id": "r", "title": "t", "state": "blocked", "blocked_by": [1]}')
    one, two = map(json.loads, export_board(board_of(project)).text.splitlines())
    assert one == {
        "id": "1",
        "subject": "s",
        "description": "",
        "status": "cancelled",
        "owner": None,
        "blockedBy": [],
        "rev": 1,
        "requiredRole": "ops",
    }
    assert (two["subject"], two["hold"], two["blockedBy"]) == ("t", "state is blocked", ["1"])
    batch = ours.read([Text("b", json.dumps(one))])
    assert batch.items[0].task.metadata == {"kept": {"requiredRole": "ops"}}


def test_what_cannot_be_read_is_left_out_and_said(project, board):
    (project.here / ".tasks" / "bad.json").write_text("{")
    answer = export_board(board)
    assert (answer.tasks, answer.exit) == (4, 8)
    assert "bad.json" in answer.left_out[0]


def test_beads_reads_what_is_exported_for_it(board):
    records = [json.loads(line) for line in export_board(board, format="beads").text.splitlines()]
    by_id = {record["id"]: record for record in records}
    assert {i: r["status"] for i, r in by_id.items()} == {
        "wires": "closed", "wall": "open", "colour": "closed", "paint": "blocked",
    }  # fmt: skip
    needed = {"id", "title", "status", "priority", "issue_type", "created_at", "updated_at"}
    assert all(needed <= record.keys() and None not in record.values() for record in records)
    assert [e["depends_on_id"] for e in by_id["paint"]["dependencies"]] == ["wall", "colour"]
    assert (by_id["colour"]["close_reason"], by_id["wires"]["close_reason"]) == ("white", "copper")
    assert by_id["wall"]["comments"][0]["text"] == "twice\nas thick"
    back = {item.source: item.task for item in beads.read([Text("b", "\n".join(map(json.dumps, records)))]).items}
    assert back["paint"].blocked_by == ("wall", "colour")
    assert (back["wires"].status, back["wires"].owner) == (COMPLETED, "user")


def test_markdown_shows_text_as_text(board):
    text = export_board(board, format="markdown").text
    assert "- [x] 走水电 \\<b\\>\\& (`wires`)" in text
    assert "> # not a heading\n> - [ ] no task" in text
    assert len(re.findall("^## ", text, re.MULTILINE)) == 4
    assert "- Waits for: wall, colour" in text
    assert not re.search(UNSAFE, text)


def test_csv_is_rfc_4180_and_no_cell_is_a_formula(board):
    mark, text = (whole := export_board(board, format="csv").text)[:1], whole[1:]
    assert mark == "\ufeff", "spreadsheets take it for another encoding"
    assert text.count("\r\n") == len(list(csv.reader(io.StringIO(text, newline=""), strict=True))) == 5
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert rows["wall"]["subject"] == "'=cmd|' /C calc'!A0"
    assert rows["wall"]["description"] == 'say "hi",\nthen go'
    assert (rows["wires"]["labels"], rows["paint"]["blockedBy"]) == ("电", "wall colour")
    assert not [cell for row in rows.values() for cell in row.values() if cell[:1] in "=+-@" and cell]


def test_a_file_appears_whole_and_never_over_another(board, tmp_path):
    path = tmp_path / "out.csv"
    assert export_board(board, format="csv", path=str(path)).tasks == 4
    before = path.read_bytes()
    with pytest.raises(Invalid, match="exists already"):
        export_board(board, format="markdown", path=str(path))
    assert path.read_bytes() == before
    export_board(board, format="markdown", path=str(path), force=True)
    assert path.read_text().startswith("# Tasks")
    assert sorted(os.listdir(tmp_path)) == ["here", "out.csv"]
    with pytest.raises(Unwritable):
        export_board(board, path=str(tmp_path / "no" / "folder.jsonl"))
    with pytest.raises(Unwritable):
        export_board(board, path=str(tmp_path), force=True)


def test_an_unknown_format_is_refused_with_a_near_one(board):
    with pytest.raises(Invalid) as refused:
        export_board(board, format="markdwn")
    assert "did you mean markdown?" in refused.value.next


def test_what_is_exported_is_recognised_when_it_is_imported(project, board, tmp_path):
    for format, name in (("jsonl", "a.jsonl"), ("beads", "b.jsonl"), ("markdown", "c.md")):
        export_board(board, format=format, path=str(tmp_path / name))
        answer = project.bring(tmp_path / name, dry_run=True)
        assert answer.format == {"markdown": "checklist"}.get(format, format)
        assert answer.records == 4
    assert {"jsonl", "beads"} <= FORMATS.keys() & EXPORTERS.keys()
