"""`import` and `export` as commands: words, exit statuses, and which stream says what."""

import json
import os
import re
import subprocess
import sys

import pytest

from importing import lines
from taskwall.faces.cli import main as cli
from taskwall.faces.cli.commands import COMMANDS
from taskwall.interop.exporters import EXPORTERS
from taskwall.interop.importers import FORMATS

ISSUES = [
    {"id": "bd-1", "title": "schema", "status": "open", "priority": 1, "issue_type": "task"},
    {"id": "bd-2", "title": "接口 \x1b[31m", "status": "open", "priority": 2, "issue_type": "task",
     "dependencies": [{"depends_on_id": "bd-1", "type": "blocks"}, {"depends_on_id": "bd-1", "type": "child-of"}]},
]  # fmt: skip


@pytest.fixture
def tw(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASKWALL_ACTOR", "mover")
    (tmp_path / ".beads").mkdir()
    (tmp_path / ".beads" / "issues.jsonl").write_text(lines(*ISSUES))

    def run(*words):
        status = cli.main([str(word) for word in words])
        return (status, *capsys.readouterr())

    return run


def test_an_import_from_where_one_stands(tw):
    status, out, err = tw("import", ".")
    assert (status, err) == (0, "")
    assert re.fullmatch(
        r"beads: 2 read from .*/\.beads/issues\.jsonl: 2 created, 0 updated, 0 left as is\n"
        r"guessed: 1 not certain\n"
        r"- issues\.jsonl:2: bd-2: the dependency 'child-of' on 'bd-1' does not gate; kept in metadata\n"
        r"metadata: 1 had no field here, kept in metadata\n"
        r"- issues\.jsonl:2: dependencies of 1 task\n",
        out,
    )
    assert tw("claim", "bd-2")[0] == 4
    assert tw("import", "beads", ".beads/issues.jsonl", "--dry-run")[1].endswith("Nothing was written.\n")


def test_the_report_as_json_has_every_finding(tw, tmp_path):
    (tmp_path / ".beads" / "issues.jsonl").write_text("{\n" * 30 + lines(*ISSUES))
    status, out, _ = tw("--json", "import", ".beads")
    told = json.loads(out)
    assert (status, told["ok"], told["data"]["created"]) == (8, True, ["bd-1", "bd-2"])
    assert sum(finding["kind"] == "unreadable" for finding in told["data"]["findings"]) == 30
    text = tw("import", ".beads")[1]
    assert "unreadable: 30 could not be read, not imported" in text
    assert "… 22 more (--json lists all)" in text


def test_a_long_report_stays_short(tw, tmp_path):
    (tmp_path / ".beads" / "issues.jsonl").write_text(
        lines(*(ISSUES[0] | {"id": f"bd-{n}", "status": "?" * 999} for n in range(300)))
    )
    assert len(tw("import", ".beads", "--dry-run")[1]) < 3000


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["import"], 2),
        (["import", "nothing-here"], 2),
        (["import", "jira", ".beads"], 2),
        (["import", "taskmaster", "."], 2),
        (["export", "docx"], 2),
        (["export", "-o", ".beads/issues.jsonl"], 2),
    ],
)
def test_wrong_usage_exits_2_and_says_the_way_out(tw, words, expected):
    tw("init")
    status, out, err = tw(*words)
    assert (status, out) == (expected, "")
    assert "\nNext: " in err


@pytest.mark.parametrize("words", [["-"], ["checklist", "-"], ["/dev/stdin"], ["checklist", "/dev/fd/{}"]])
def test_a_pipe_is_refused_for_nothing_could_be_known_again(words, tmp_path):
    reading, writing = os.pipe()
    os.write(writing, b"- [ ] a\n")
    os.close(writing)
    command = [sys.executable, "-m", "taskwall", "--board", tmp_path, "import", *(w.format(reading) for w in words)]
    done = subprocess.run(command, stdin=reading, pass_fds=[reading], capture_output=True, text=True)
    os.close(reading)
    form = "checklist" if len(words) > 1 else "FORMAT"
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert "is a pipe or device" in done.stderr
    assert f"Next: save it first: `… > FILE; taskwall import {form} FILE`" in done.stderr


def test_a_refused_import_makes_no_board(tw, tmp_path):
    (tmp_path / ".beads" / "issues.jsonl").write_text("")
    assert tw("import", "beads", ".")[0] == 8
    assert not (tmp_path / ".tasks").exists()


def test_export_prints_data_alone(tw, tmp_path):
    tw("import", ".")
    status, out, err = tw("export")
    assert (status, err, [json.loads(line)["id"] for line in out.splitlines()]) == (0, "", ["bd-1", "bd-2"])
    assert "\x1b" not in out
    assert tw("export", "-o", "board.jsonl") == (0, "Exported 2 tasks to board.jsonl\n", "")
    assert (tmp_path / "board.jsonl").read_text() == out
    assert tw("export", "markdown", "-o", "board.jsonl")[0] == 2
    assert tw("export", "markdown", "-o", "board.jsonl", "--force")[0] == 0
    (tmp_path / ".tasks" / "bad.json").write_text("{")
    status, out, err = tw("export", "csv")
    assert (status, out.count("\n")) == (8, 3)
    assert err.startswith("left out, for it cannot be read: bad.json")


def test_the_help_names_every_format():
    docs = {name: " ".join(a.doc for a in COMMANDS[name].arguments) for name in ("import", "export")}
    assert [name for name in FORMATS if name not in docs["import"]] == []
    assert [name for name in EXPORTERS if name not in docs["export"]] == []
