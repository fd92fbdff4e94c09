"""Boards that other people's programs wrote, as they lie beside this checkout: all of them imported, twice."""

from __future__ import annotations

import hashlib
import json

import pytest

from boardfiles import SAMPLES, needs_samples
from importing import Project, told
from taskwall.core.errors import Refused

pytestmark = needs_samples

HOME = SAMPLES.parent

EXPECTED = {
    # source: format, tasks, and how many findings of a kind
    "beads/organice.jsonl": ("beads", 23, {"early": 3, "metadata": 4}),
    "beads/sonpoGPT-ja.jsonl": ("beads", 33, {"in progress": 1}),
    "beads/tbd.jsonl": ("beads", 265, {"in progress": 1, "metadata": 4}),
    "beads/vixens-2025-11-26.jsonl": ("beads", 767, {"in progress": 1, "metadata": 3}),
    "beads/remixed-dungeon.jsonl": ("beads", 5, {"metadata": 5}),
    "beads/sicm-ko.jsonl": ("beads", 2, {"metadata": 1}),
    "taskmaster/Astro3.json": ("taskmaster", 19, {"skipped": 1, "in progress": 1}),
    "taskmaster/GatherGo.json": ("taskmaster", 25, {}),
    "taskmaster/edu-parser.json": ("taskmaster", 71, {"skipped": 1}),
    "taskmaster/offer-hunter.json": ("taskmaster", 35, {"skipped": 1}),
    "taskmaster/qt-mt5.json": ("taskmaster", 5, {"skipped": 1}),
    "taskmaster/saju-hancom-ko.json": ("taskmaster", 15, {"skipped": 1, "early": 1}),
    "taskwarrior/dstask-fixture-export.json": ("taskwarrior", 147, {}),
    "taskwarrior/generated-tw2.6.2-small.json": ("taskwarrior", 5, {"early": 1, "metadata": 7}),
    "backlogmd/backlog-hub-ja": ("backlog", 7, {"metadata": 2}),
    "backlogmd/surreal-mind": ("backlog", 31, {"skipped": 23, "metadata": 3}),
    "tickets/ticket-self-latest": ("ticket", 37, {"metadata": 2}),
    "dialects/Qcode": ("tasks", 44, {"in progress": 6, "metadata": 1}),
    "dialects/haystack": ("tasks", 11, {"early": 2, "metadata": 1}),
    "dialects/URrobot-agent": ("tasks", 10, {"dangling": 1, "metadata": 3}),
    "dialects/float-epoch": ("tasks", 1, {}),
    "dialects/go-pilot": ("tasks", 5, {"in progress": 2, "metadata": 2}),
    "dialects/hx": ("tasks", 1, {}),
    "dialects/lesson-s07": ("tasks", 2, {}),
    "dialects/lesson-s12": ("tasks", 2, {}),
    "dialects/lesson-s13_2026-08": ("tasks", 2, {"in progress": 1}),
    "dialects/nested": ("tasks", 1, {"in progress": 1}),
    "dialects/research": ("tasks", 6, {"metadata": 2}),
}
REFUSED = [
    "beads/mctrl-EMPTY.jsonl",
    "taskmaster/coursewebsite-EMPTY.json",
    "taskmaster/habbit-dashboard.json",
    "dialects/foreign",
]


def digest(path):
    """Of all that lies there."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(str(p).encode() + p.read_bytes() for p in files)).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_each_sample_is_imported_whole_and_once(name, tmp_path):
    format, count, findings = EXPECTED[name]
    project, before = Project(tmp_path), digest(HOME / name)
    answer = project.bring(HOME / name)
    kinds = {kind: len(told(answer, kind)) for kind in {finding.kind for finding in answer.findings}}
    assert (answer.format, len(answer.created), kinds) == (format, count, findings)
    assert len(project.tasks) == count
    written = project.texts
    again = project.bring(HOME / name)
    assert (again.created, again.updated, again.unchanged) == ((), (), count)
    assert project.texts == written
    assert digest(HOME / name) == before


def test_nothing_lies_there_that_is_not_tried():
    there = {f"{folder.name}/{path.name}" for folder in HOME.iterdir() if folder.is_dir() for path in folder.iterdir()}
    assert there == {*EXPECTED, *REFUSED}


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_task_is_refused_by_name(name, tmp_path):
    project = Project(tmp_path)
    with pytest.raises(Refused, match=name.split("/")[1]):
        project.bring(HOME / name)
    assert not (project.here / ".tasks").exists()


@pytest.mark.slow
def test_boards_that_count_from_one_find_room_on_one_board(tmp_path):
    project = Project(tmp_path)
    names = [name for name in EXPECTED if name.startswith(("taskmaster/", "dialects/"))]
    for name in names:
        project.bring(HOME / name)
    assert len(project.tasks) == sum(EXPECTED[name][1] for name in names)
    assert all(project.bring(HOME / name).unchanged == EXPECTED[name][1] for name in names)


def test_texts_survive(tmp_path):
    project = Project(tmp_path)
    project.bring(HOME / "beads" / "sonpoGPT-ja.jsonl")
    tasks = project.tasks
    for record in map(json.loads, (HOME / "beads" / "sonpoGPT-ja.jsonl").read_text().splitlines()):
        task = tasks[record["id"]]
        assert (task["subject"], task["description"]) == (record["title"], record.get("description", "").strip())
        assert [note["text"] for note in task.get("notes", [])[:2]] == [
            c["text"] for c in record.get("comments", [])
        ] or (record["status"] == "in_progress")
