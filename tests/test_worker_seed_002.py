"""A night on the research board of seed 002: a runner takes what is reserved for it and nothing else."""

from __future__ import annotations

import shutil

import pytest

from boardfiles import SAMPLES, needs_samples
from test_seed_002 import DECISION, DO7, DO8, DO9, DO10
from worker_process import DONE, Site

pytestmark = needs_samples


@pytest.fixture
def research(tmp_path):
    made = Site(tmp_path / "site")
    for path in (SAMPLES / "research").iterdir():
        shutil.copy(path, made.board_path)
    yield made
    made.close()


def files(site):
    return {path.name: path.read_bytes() for path in site.board_path.glob("*.json")}


def test_while_the_decision_waits_nothing_is_touched_and_the_report_names_the_user(research):
    before = files(research)
    said = research.work("--as", "robust-runner-1", status=7)
    assert f"waiting on user: {DECISION}" in said and files(research) == before


@pytest.mark.slow
def test_do10_alone_is_taken_and_what_is_left_is_named(research):
    research.run("answer", DECISION, "切到 A1 经典")
    research.run("claim", DO7, "--as", "main")
    research.run("done", DO7, "--as", "main")
    before = files(research)
    said = research.work("--as", "robust-runner-1", "--agents", 4, agent=f"cat\n{DONE}", status=6)
    after = files(research)
    assert {name for name in after if before.get(name) != after[name]} == {f"{DO10}.json"}
    assert research.task(DO10)["state"] == "done" and "1 completed, 0 failed" in said
    assert f"reserved for main: {DO8}" in said and f"reserved for main: {DO9}" in said
    assert research.task(DO10)["title"] in research.log()


@pytest.mark.slow
def test_what_the_runner_asks_in_the_night_waits_on_the_user_in_the_morning(research):
    research.run("answer", DECISION, "切到 A1 经典")
    research.run("claim", DO7, "--as", "main")
    research.run("done", DO7, "--as", "main")
    said = research.work(
        "--as", "robust-runner-1", agent='taskwall ask "$TASKWALL_TASK" 用哪种稳健性检验？\n', status=6
    )
    assert "0 completed, 0 failed, 1 released" in said and "waiting on user: task_" in said
    assert research.task(DO10)["state"] == "pending"
