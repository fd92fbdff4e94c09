"""A command ends without taking its interpreter down piece by piece, and nothing that it said or wrote is lost by that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import CLEAN

from taskwall.stores.files.ledger import boot_id
from taskwall.stores.files.sqlite import LOG, LONG_LOG, path_in
from taskwall.stores.files.store import INDEX_FROM

TASKWALL = [sys.executable, "-m", "taskwall"]


@pytest.fixture
def tw(tmp_path):
    def run(*words, **more):
        more = {"stdout": subprocess.PIPE} | more
        return subprocess.run([*TASKWALL, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=CLEAN, **more)

    return run


def test_what_was_said_arrives_and_so_does_the_status(tw):
    assert tw("add", "one", "--id", "one-1", "-d", "x" * 60_000).stdout == "Created one-1: one\n"
    assert len(tw("show", "one-1", "--json").stdout) > 60_000
    refused = tw("claim", "no-such-task")
    assert (refused.returncode, refused.stdout) == (3, "") and refused.stderr.startswith("no task 'no-such-task'")
    with open("/dev/full", "w") as full:
        lost = tw("show", "one-1", stdout=full)
    assert lost.returncode == 1 and "No space left" in lost.stderr


def test_what_has_last_words_may_say_them(tw, tmp_path):
    code = "import atexit; atexit.register(print, 'bye'); from taskwall.faces.cli.main import run; run()"
    done = subprocess.run([sys.executable, "-c", code, "list"], cwd=tmp_path, capture_output=True, text=True, env=CLEAN)
    assert done.stdout.endswith("bye\n"), done.stderr


@pytest.mark.slow
def test_commands_that_do_not_close_the_index_leave_a_short_log(tw, tmp_path):
    tw("add", "one", "--id", "one-1")
    for n in range(2 * INDEX_FROM):
        text = f'{{"id": "t-{n}", "subject": "s{n}", "description": "{"x" * 9_000}", "status": "pending", "owner": null, "blockedBy": [], "rev": 1}}'
        (tmp_path / ".tasks" / f"t-{n}.json").write_text(text)
    index = path_in(str(tmp_path / ".tasks/.local"), boot_id())
    log = Path(index + LOG)
    lengths = []
    for words in (["next"], *[["note", "t-3", f"note {n}"] for n in range(20)], ["next"]):
        assert tw(*words).returncode == 0
        lengths.append(log.stat().st_size if log.exists() else 0)
    assert max(lengths) <= LONG_LOG, lengths
    assert os.path.getsize(index) > LONG_LOG
    assert tw("show", "t-3").stdout.count("note ") == 20


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_caller_who_closed_what_would_be_written_to_gets_the_status(tw, tmp_path, closed):
    assert tw("add", "one", "--id", "one-1").returncode == 0
    for words, status in (("list", 0), ("show one-1", 0), ("show two", 3), ("note one-1 x", 0), ("plan -", 2)):
        line = f'"{sys.executable}" -m taskwall {words} {closed}'
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), (words, done.stderr)
