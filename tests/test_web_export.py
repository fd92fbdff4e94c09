"""`taskwall export html` and `taskwall watch`: the board as a page to mail, and as lines as it changes."""

import json
import os
import select
import signal
import subprocess
import sys
from itertools import islice

import pytest
from mcp_process import PATIENCE, clean_env, run

from boardfiles import Files
from conftest import NOON, Clock, add, open_board
from taskwall.core.rules import Edit
from taskwall.faces.watch import events
from taskwall.faces.words import words_of
from taskwall.interop.page import html


@pytest.fixture
def files(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "a", subject="走水电")
    add(files.board(), "b", "a", subject="封墙", priority=0)
    return files


def test_a_page_tells_every_task_with_what_it_waits_for(files):
    board = files.board("ann")
    board.claim("a")
    board.complete("a", result="三路")
    board.hold("b", "later")
    page = html(board.store.read(), "site", words_of("en"))
    assert page.index("封墙") < page.index("走水电"), "what is open comes first"
    for told in ("三路", "later", "P0", "1 held, 1 completed"):
        assert told in page
    files.board("user").reopen("a")
    page = html(board.store.read(), "site", words_of("en"))
    assert '<a href="#a">' in page and '<a href="#b">' in page


def test_an_export_goes_to_standard_output_or_a_file_and_other_formats_are_refused(files):
    shown = run(files.folder, "--board", str(files.folder), "export", "html")
    assert shown.stdout.startswith("<!doctype html>") and shown.returncode == 0
    assert run(files.folder, "--board", str(files.folder), "export", "docx").returncode == 2
    lost = run(files.folder, "--board", str(files.folder), "export", "html", "-o", "no/such/folder.html")
    assert lost.returncode == 4 and "no/such/folder.html" in lost.stderr


def test_a_page_speaks_the_language_of_who_exports_it(files):
    files.board("ann").claim("a")
    shown = run(files.folder, "--board", str(files.folder), "export", "html", LC_ALL="zh_CN.UTF-8").stdout
    assert '<html lang="zh-CN">' in shown and "1 进行中, 1 被阻塞" in shown
    assert "持有者 <bdi>ann</bdi>" in shown and '<p>等待: <a href="#a">' in shown
    assert "Waits for: <a" in run(files.folder, "--board", str(files.folder), "export", "html", LC_ALL="C").stdout


class Watching:
    """A `taskwall watch` process; `line()` is its next."""

    def __init__(self, folder, *words):
        command = [sys.executable, "-m", "taskwall", "--board", str(folder), "watch", *words]
        self.process = subprocess.Popen(command, cwd=folder, env=clean_env(), stdout=subprocess.PIPE)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def says(self, within=PATIENCE):
        """Whether it has something to say."""
        while b"\n" not in self.rest and select.select([self.process.stdout], [], [], within)[0]:
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "it ended"
            self.rest += more
        return b"\n" in self.rest

    def line(self):
        assert self.says(), "nothing was said"
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()


@pytest.fixture
def watching(files):
    with Watching(files.folder, "--json") as watching:
        # It watches once it tells of a change.
        while not watching.says(within=0.2):
            files.board("early").claim("a")
            files.board("early").release("a")
        yield watching


def told(watching, wanted):
    """The first event that `wanted` accepts."""
    for _ in range(200):
        event = json.loads(watching.line())
        if wanted(event):
            return event
    raise AssertionError


def test_events_are_told_as_they_happen_with_what_becomes_of_others(files, watching):
    board = files.board("ann")
    board.claim("a")
    assert told(watching, lambda e: e["by"] == "ann")["verb"] == "claim"
    board.complete("a", result="done")
    assert told(watching, lambda e: e["verb"] == "complete")["result"] == "done"
    became = told(watching, lambda e: e["verb"] == "became")
    assert (became["task"], became["state"]) == ("b", "ready")


class Between:
    """A store that another changes while it is looked at, and whose look at the events is a moment too early once."""

    def __init__(self, store, *, before=(), between=()):
        self.store, self.before, self.between, self.early = store, iter(before), iter(between), False

    def watch(self):
        return self

    def wait(self, _):
        if change := next(self.before, None):
            change()
            self.early = True

    def read(self):
        view = self.store.read()
        if change := next(self.between, None):
            change()
        return view

    def events(self, **since):
        found = self.store.events(**since)
        early, self.early = self.early, False
        return found[:-1] if early else found


def test_what_an_event_tells_is_not_told_again_wherever_a_look_falls(files):
    board, other = files.board("ann"), files.board("user")
    board.store = Between(files.store, before=[lambda: other.claim("a"), lambda: other.complete("a")])
    heard = [(event["verb"], event["task"]) for event in islice(events(board), 3)]
    assert heard == [("claim", "a"), ("complete", "a"), ("became", "b")], "a file is written before its event"

    changes = [lambda: None, lambda: other.hold("b", "later"), lambda: other.resume("b")]
    board.store = Between(files.store, between=changes)
    heard = [event["verb"] for event in islice(events(board), 2)]
    assert heard == ["hold", "resume"], "an event is heard before the next look at files"


def test_what_an_editor_changes_is_told_though_nothing_records_it(files, watching):
    path = files.path / "b.json"
    path.write_text(path.read_text().replace('"pending"', '"cancelled"'))
    assert told(watching, lambda e: e["task"] == "b")["state"] == "cancelled"
    path.unlink()
    assert told(watching, lambda e: e["task"] == "b")["state"] == "gone"


def test_of_a_long_history_nothing_is_told_again_and_a_clock_that_is_late_is_heard(files):
    log = files.path / ".local" / "events.jsonl"
    days = (f"2026-09-{n // 1000 + 1:02}T00:00:00.{n:06}Z" for n in range(12_000))
    log.write_text("".join(f'{{"at": "{at}", "by": "past", "verb": "note", "task": "a"}}\n' for at in days))
    with Watching(files.folder, "--json") as watching:
        while not watching.says(within=0.2):
            files.board("early").update("a", Edit(note="x"))
        yesterday = Clock(NOON - 24 * 3_600_000_000_000)
        open_board(files.store, "late", clock=yesterday).update("b", Edit(note="y"))
        who = [json.loads(watching.line())["by"]]
        while who[-1] != "late":
            who.append(json.loads(watching.line())["by"])
        assert set(who) == {"early", "late"}


def test_lines_are_those_of_the_log_and_ctrl_c_is_no_error(files):
    with Watching(files.folder) as watching:
        while not watching.says(within=0.2):
            files.board("ann").update("a", Edit(note="\x1b[31mred"))
        line = watching.line()
        assert line.split()[1:4] == ["ann", "update", "a"] and "\\x1b[31mred" in line
        watching.process.send_signal(signal.SIGINT)
        assert watching.process.wait(PATIENCE) == 0
