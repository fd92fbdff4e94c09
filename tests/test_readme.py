"""What the README shows is run, and what it prints is compared. `…` in the README stands for any text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]


def sessions(text):
    """Every `console` block as (command, its input lines, what it prints)."""
    steps = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *rest = part.splitlines()
            typed = [line[2:] for line in rest if line.startswith("> ")]
            steps.append(("\n".join([command, *typed]), [line for line in rest if not line.startswith("> ")]))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("name", READMES)
def test_the_commands_of_the_readme_print_what_it_shows(name, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    here = str(Path(sys.executable).parent)
    env = {k: v for k, v in os.environ.items() if not re.match("TASKWALL|CLAUDE|CODEX|GEMINI", k)}
    env |= {"PATH": f"{here}:{env['PATH']}"}
    steps = sessions((ROOT / name).read_text())
    assert len(steps) > 8
    for command, shown in steps:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=env)
        assert done.returncode in (0, 4, 7), done.stderr
        pattern = "\n".join(re.escape(line).replace("…", ".*") for line in shown)
        printed = re.sub(r"\n`taskwall setup` makes coding agents use it .*", "", (done.stdout + done.stderr).strip())
        assert re.fullmatch(pattern, printed), f"$ {command}\n{printed}"


@pytest.mark.parametrize("name", READMES)
def test_the_readme_is_short(name):
    assert len((ROOT / name).read_text().splitlines()) <= 150


def test_every_command_is_in_the_readme():
    from taskwall.faces.cli.commands import COMMANDS

    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if not re.search(rf"\b{name}\b", text)] == []


def test_agents_md_is_a_short_map_of_what_is_there():
    text = (ROOT / "AGENTS.md").read_text()
    assert len(text.splitlines()) <= 60
    named = re.findall(r"`((?:src|tests|scripts)/[\w./-]+)`", text)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []
