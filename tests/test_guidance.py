"""What agents are told costs tokens in every session: the texts and schemas are measured and have a ceiling.

`python tests/test_guidance.py` prints the table (`make bench`).
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from taskwall import __version__, registry, verbs  # noqa: F401
from taskwall.faces.cli.commands import COMMANDS
from taskwall.interop import blocks, clients

ROOT = Path(__file__).parent.parent
SKILL, AGENTS = clients.text_of("SKILL.md"), clients.text_of("agents.md")
FRONT, _, BODY = SKILL.removeprefix("---\n").partition("\n---\n")
BLOCK = blocks.block(AGENTS, blocks.MARKDOWN)
SCHEMAS = json.dumps(registry.tools(), ensure_ascii=False, separators=(",", ":"))


def tokens(text):
    """About as many as tokenizers make of it: 3.5 bytes of ASCII a token, one a character of Chinese."""
    wide = sum(not char.isascii() for char in text)
    return round((len(text) - wide) / 3.5 + wide)


CEILINGS = {
    "in every session: block of AGENTS.md": (BLOCK, 260),
    "in every session: front matter of the skill": (FRONT, 160),
    "in every session: schemas of the ten tools": (SCHEMAS, 1400),
    "on request: body of the skill": (BODY, 1600),
}


@pytest.mark.parametrize("name", CEILINGS)
def test_guidance_stays_under_its_ceiling(name):
    text, most = CEILINGS[name]
    assert tokens(text) <= most


def test_the_skill_is_one_that_clients_load():
    fields = dict(line.split(": ", 1) for line in FRONT.splitlines())
    assert list(fields) == ["name", "description"] and fields["name"] == "taskwall"
    assert len(fields["description"]) <= 1024 and ": " not in fields["description"]
    assert len(SKILL.splitlines()) < 500


def test_the_block_is_twelve_lines_at_most_and_points_to_prime():
    assert len(BLOCK.splitlines()) <= 12
    assert "`taskwall prime`" in BLOCK


def test_what_is_said_otherwise_in_a_home_folder_is_said_by_our_texts():
    assert [ours for ours, _ in clients.AT_HOME if ours not in SKILL + AGENTS] == []
    for client in clients.clients().values():
        for part in client.user:
            if isinstance(part, clients.Skill):
                front = part.text.split("\n---\n")[0]
                assert ": " not in front.partition("description: ")[2] and "folder is present" not in front


@pytest.mark.parametrize("text", [SKILL, BLOCK])
def test_every_command_it_names_is_there_and_plain(text):
    named = re.findall(r"`taskwall ([^`]+)`", text)
    assert len(named) > 5
    assert [words for words in named if words.split()[0] not in COMMANDS] == []
    assert not re.search(r"\$\(|<\(|```", text)


def test_every_tool_is_in_the_skill():
    assert [tool["name"] for tool in registry.tools() if tool["name"] not in BODY] == []


def test_the_plugin_says_what_the_package_says():
    read = lambda name: json.loads((ROOT / name).read_text())  # noqa: E731
    assert (ROOT / "plugin/skills/taskwall/SKILL.md").read_text() == SKILL
    assert read("plugin/.mcp.json") == {"mcpServers": {"taskwall": clients.SHORT}}
    assert read("plugin/hooks/hooks.json")["hooks"] == {event: [clients.hook(event)] for event in clients.HOOKS}
    assert read("plugin/.claude-plugin/plugin.json")["version"] == __version__
    [plugin] = read(".claude-plugin/marketplace.json")["plugins"]
    assert (ROOT / plugin["source"] / ".claude-plugin/plugin.json").is_file()


def test_the_commands_of_the_skill_take_what_it_shows(tmp_path):
    """The plan of the skill is made, and its loop is run."""
    plan = "\n".join(line[4:] for line in re.findall(r"(?m)^    .*$", BODY))
    run = lambda *words, text="": subprocess.run(  # noqa: E731
        [sys.executable, "-m", "taskwall", "--board", str(tmp_path), "--as", "agent", *words],
        input=text, capture_output=True, text=True,
    )  # fmt: skip
    assert run("plan", "-", text=plan).stdout.count("Created") == 4
    assert "design the tables" in run("claim").stdout
    assert run("note", "design the tables", "two").returncode == 0
    assert run("done", "design the tables", "-m", "made").returncode == 0
    asked = run("ask", "write the endpoints", "which?", "--option", "a", "--option", "b")
    assert asked.returncode == 0
    assert run("next").returncode == 7


if __name__ == "__main__":
    for name, (text, most) in CEILINGS.items():
        print(f"{tokens(text):6,} of {most:6,} tokens  {name}")
