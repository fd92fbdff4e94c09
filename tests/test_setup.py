"""`taskwall setup`: what it writes for each client, what it leaves alone, and that taking it back leaves no trace."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskwall.core.errors import Invalid, Unwritable
from taskwall.interop import clients as known
from taskwall.interop import tree as trees
from taskwall.interop.setup import set_up

CLIENTS = ["claude", "codex", "gemini", "opencode", "cursor"]
NOWHERE = {"PATH": "/nowhere", "HOME": "/nowhere"}


def tree(root):
    """Every file with its bytes and every folder, without git's own and the board."""
    found = {}
    for at, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".tasks")]
        found |= {os.path.relpath(os.path.join(at, name), root): None for name in folders}
        for name in files:
            path = os.path.join(at, name)
            found[os.path.relpath(path, root)] = os.readlink(path) if os.path.islink(path) else Path(path).read_bytes()
    return found


def fill(root, files):
    for name, text in files.items():
        path = root / name
        if text is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    return root


def run(root, *names, env=NOWHERE, yes=True, **more):
    return set_up(list(names), env, str(root), yes=yes, **more)


def in_and_out(root, *names, **more):
    """Set up twice, check, take back: nothing is left. Returns the tree between."""
    before = tree(root)
    assert run(root, *names, **more).done
    between = tree(root)
    again = run(root, *names, **more)
    assert (again.files, again.exit) == ((), 0)
    check = run(root, *names, check=True, **more)
    assert (check.files, check.exit) == ((), 0)
    assert tree(root) == between
    run(root, remove=True, **{k: v for k, v in more.items() if k == "user"})
    assert tree(root) == before
    return between


# What each client gets


@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_is_set_up_and_leaves_no_trace(project, name):
    between = in_and_out(project, name)
    assert f"{'.claude' if name == 'claude' else '.agents'}/skills/taskwall/SKILL.md" in between
    assert b"taskwall prime" in between["AGENTS.md"]


def test_what_is_written_is_what_the_clients_read(project):
    run(project, *CLIENTS)
    read = lambda name: json.loads((project / name).read_text())  # noqa: E731
    server = {"type": "stdio", "command": "taskwall", "args": ["mcp"], "env": {}}
    assert read(".mcp.json") == {"mcpServers": {"taskwall": server}}
    assert "@AGENTS.md" in (project / "CLAUDE.md").read_text().splitlines()
    assert list(read(".claude/settings.json")["hooks"]) == [*known.HOOKS]
    assert read(".gemini/settings.json")["context"]["fileName"] == ["AGENTS.md", "GEMINI.md"]
    [group] = read(".gemini/settings.json")["hooks"]["SessionStart"]
    assert group["hooks"][0]["timeout"] == 1000 * known.SECONDS
    assert read("opencode.json") == {
        "$schema": "https://opencode.ai/config.json",
        "mcp": {"taskwall": {"type": "local", "command": ["taskwall", "mcp"], "enabled": True}},
    }
    assert read(".cursor/hooks.json")["version"] == 1
    codex = tomllib.loads((project / ".codex/config.toml").read_text())
    assert codex == {"mcp_servers": {"taskwall": {"command": "taskwall", "args": ["mcp"], "required": True}}}
    assert not [p for p in project.rglob("*") if p.is_symlink()]


def test_the_stop_hook_is_opt_in_and_taken_back_with_the_rest(project):
    before = tree(project)
    run(project, "claude")
    assert "Stop" not in json.loads((project / ".claude/settings.json").read_text())["hooks"]
    run(project, "claude", stop_hook=True)
    assert "Stop" in json.loads((project / ".claude/settings.json").read_text())["hooks"]
    assert run(project, "claude", check=True).files == ()
    run(project, remove=True)
    assert tree(project) == before


# What was there survives


def json_texts():
    leaf = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    values = st.recursive(leaf, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3))
    group = {"matcher": "x", "hooks": [{"type": "command", "command": "mine"}]}
    known_keys = st.fixed_dictionaries(
        {},
        optional={
            "mcpServers": st.just({}) | st.just({"mine": {"command": "x"}}),
            "mcp": st.just({}) | st.just({"mine": {"type": "local"}}),
            "hooks": st.just({})
            | st.just({"SessionStart": []})
            | st.just({"SessionStart": [group], "Notification": [group]}),
            "context": st.just({}) | st.just({"fileName": "X.md"}) | st.just({"fileName": ["AGENTS.md", "GEMINI.md"]}),
            "permissions": st.just({"allow": ["Bash(ls)"]}),
            "$schema": st.just("https://opencode.ai/config.json"),
            "version": st.just(1),
        },
    )
    objects = st.builds(lambda a, b: a | b, st.dictionaries(st.text(max_size=4), values, max_size=3), known_keys)
    layout = st.sampled_from([{"indent": 2}, {"indent": 4}, {"indent": "\t"}, {}, {"separators": (",", ":")}])
    end = st.sampled_from(["", "\n", "\n\n", " "])

    def written(value, how, end, crlf, comment, ascii):
        text = json.dumps(value, ensure_ascii=ascii, **how) + end
        if comment:
            text = re.sub(r"([{,])\n", r"\1 // mine {\n", "/* mine: { */ " + text)
        return (text.replace("\n", "\r\n") if crlf else text).encode("utf-8", "surrogatepass")

    return st.builds(written, objects, layout, end, st.booleans(), st.booleans(), st.booleans()).filter(
        lambda data: not re.search(rb"\xed[\xa0-\xbf]", data)
    )


markdown = st.builds(
    lambda lines, newline, end: (newline.join(lines) + end).encode(),
    st.lists(
        st.sampled_from(["# Title", "", "text", "- @AGENTS.md", "@docs/x.md", "```", "中文", "<!-- mine -->"]),
        max_size=6,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\r\n", "\n\n", " "]),
)
toml = st.sampled_from(
    ["", "\n", 'model = "x" # mine', '# only\r\n[mcp_servers.mine]\r\ncommand = "x"\r\n', '[a]\nb = """\n\n"""\n']
).map(str.encode)
FILES = {
    "AGENTS.md": markdown, "CLAUDE.md": markdown, "GEMINI.md": markdown, ".mcp.json": json_texts(),
    ".claude/settings.json": json_texts(), ".codex/hooks.json": json_texts(), ".codex/config.toml": toml,
    ".gemini/settings.json": json_texts(), "opencode.json": json_texts(), "opencode.jsonc": json_texts(),
    ".cursor/mcp.json": json_texts(), ".cursor/hooks.json": json_texts(), ".agents/skills/mine/SKILL.md": markdown,
    ".claude/skills/x": st.none(), ".codex": st.none(), ".cursor": st.none(), ".agents/skills": st.none(),
}  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25)
@given(st.fixed_dictionaries({}, optional=FILES), st.sets(st.sampled_from(CLIENTS), min_size=1))
@example({".mcp.json": b"{}", ".claude/settings.json": b"{\n}\n", "AGENTS.md": b"", "CLAUDE.md": b"x\r"}, set(CLIENTS))
@example({".cursor/hooks.json": b'{\n  "version": 1\n}\n', "opencode.json": b'{"mcp": { }, }'}, set(CLIENTS))
@example({".gemini/settings.json": b'{"context":{"fileName":["AGENTS.md","GEMINI.md"]}}'}, {"claude"})
@example({".claude/settings.json": b'{"hooks": {"SessionStart": [ // none\n]}}'}, set(CLIENTS))
def test_whatever_was_there_is_there_again(tmp_path_factory, files, names):
    root = tmp_path_factory.mktemp("p")
    (root / ".git").mkdir()
    fill(root, files)
    before = {name: data for name, data in tree(root).items() if data is not None}
    between = in_and_out(root, *sorted(names))
    for name, data in before.items():
        if name.endswith((".md", ".toml")):
            assert between[name].startswith(data)


def test_foreign_entries_keep_their_bytes_and_their_comments(project):
    text = '{\n    // my servers\n    "mcpServers": {\n        "mine": {"command": "x"}, // the first\n    },\n    "n": 1.50e3\n}'
    fill(project, {".cursor/mcp.json": text})
    run(project, "cursor")
    written = (project / ".cursor/mcp.json").read_text()
    pieces = ["// my servers", '        "mine": {"command": "x"},', "// the first", '    "n": 1.50e3']
    assert [piece for piece in pieces if piece not in written] == []
    assert '"taskwall": {' in written
    run(project, remove=True)
    assert (project / ".cursor/mcp.json").read_text() == text


def test_what_people_added_meanwhile_stays(project):
    run(project, *CLIENTS)
    servers = project / ".mcp.json"
    servers.write_text(
        servers.read_text().replace('"mcpServers": {', '"mcpServers": {\n    // mine\n    "mine": {},', 1)
    )
    agents, codex = project / "AGENTS.md", project / ".codex/config.toml"
    agents.write_text(agents.read_text() + "\nMine.\n")
    codex.write_text(codex.read_text() + "[mine]\n")
    (project / ".claude/mine.txt").write_text("mine")
    run(project, remove=True)
    assert "mine" in servers.read_text() and "taskwall" not in servers.read_text()
    assert {name: data for name, data in tree(project).items() if data and name != ".mcp.json"} == {
        "AGENTS.md": b"\nMine.\n", ".codex/config.toml": b"[mine]\n", ".claude/mine.txt": b"mine",
    }  # fmt: skip


def test_an_entry_that_somebody_wrote_under_our_name_is_kept(project):
    mine = '{"mcpServers": {"taskwall": {"command": "uvx", "args": ["taskwall", "mcp"]}}}'
    toml = '[mcp_servers.taskwall]\ncommand = "/opt/bin/taskwall"\nargs = ["mcp"]\n'
    files = {".mcp.json": mine, ".codex/config.toml": toml, "CLAUDE.md": "mine"}
    fill(project, files)
    answer = run(project, "claude", "codex")
    assert len([note for note in answer.notes if "but starts taskwall" in note]) == 2
    assert run(project, "claude", "codex", check=True).exit == 0
    run(project, remove=True)
    assert {name: data.decode() for name, data in tree(project).items() if data is not None} == files


OTHER = '{"%s": {"taskwall": {"command": "other"}}}'


@pytest.mark.parametrize(
    ("client", "path", "text"),
    [
        ("claude", ".mcp.json", OTHER % "mcpServers"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"taskwall": 1}}'),
        ("opencode", "opencode.json", '{"mcp": {"taskwall": {"command": ["taskwall", "mcp"], "enabled": false}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.taskwall]\ncommand = "other"\n'),
    ],
)
def test_another_server_under_our_name_is_not_as_it_should_be(project, client, path, text):
    fill(project, {path: text})
    answer = run(project, client)
    assert answer.done and path not in answer.files
    for check in (True, False):
        again = run(project, client, check=check)
        assert (again.action, again.files, again.exit) == ("check", (path,), 4)
        assert any("not connected" in note and path in note for note in again.notes)
    run(project, remove=True)
    assert {name: data.decode() for name, data in tree(project).items() if data} == {path: text}


def test_a_changed_skill_is_named_and_stays(project):
    run(project, "claude")
    path = ".claude/skills/taskwall/SKILL.md"
    skill = project / path
    ours = skill.read_text()
    skill.write_bytes(ours.replace("\n", "\r\n").encode())
    assert run(project, "claude", check=True).exit == 0  # as git may check it out
    changed = ours + "Mine.\n"
    skill.write_text(changed)
    check = run(project, "claude", check=True)
    assert (check.files, check.exit) == ((path,), 4) and f"{path} is not the skill" in check.notes[0]
    run(project, "claude")
    assert skill.read_text() == changed
    removed = run(project, remove=True)
    assert [note for note in removed.notes if note.startswith(f"left {path}")]
    assert {name for name, data in tree(project).items() if data} == {path}


def test_a_skill_of_an_older_version_is_brought_up_to_date_and_taken_back(project, monkeypatch):
    text_of = known.text_of
    with monkeypatch.context() as older:
        older.setattr(known, "text_of", lambda name: text_of(name) + "An older line.\n")
        run(project, "codex")
    between = tree(project)
    skill = ".agents/skills/taskwall/SKILL.md"
    assert run(project, "codex", check=True).files == (skill, "AGENTS.md")
    run(project, remove=True)
    assert tree(project) == {} and b"older" in between[skill]


def test_the_skill_tells_a_model_nothing_of_its_keeping(project):
    fill(project, {".codex": None})
    run(project, "codex", "claude")
    for folder in (".agents", ".claude"):
        front, _, body = (project / folder / "skills/taskwall/SKILL.md").read_text()[4:].partition("\n---\n")
        assert body == known.text_of("SKILL.md")[4:].partition("\n---\n")[2] and "<!--" not in body
        assert re.fullmatch(r"# taskwall [0-9a-f]{8} \.codex", front.splitlines()[-1])


def test_gemini_that_reads_other_files_is_told_of_plainly(project):
    fill(project, {".gemini/settings.json": '{"context": {"fileName": "X.md"}}'})
    answer = run(project, "gemini")
    [note] = [note for note in answer.notes if "Gemini" in note]
    assert note == "Gemini will not read AGENTS.md: add it to context.fileName in .gemini/settings.json"
    assert note in run(project, "gemini", check=True).notes
    fill(project, {".gemini/settings.json": '{"context": {"fileName": 1}}'})
    assert note in run(project, "gemini").notes
    fill(project, {".gemini/settings.json": '{"context": {"fileName": ["X.md", "AGENTS.md"]}}'})
    assert note not in run(project, "gemini").notes


def test_an_older_block_is_brought_up_to_date_in_its_place(project):
    fill(project, {"AGENTS.md": "above\n"})
    run(project, "codex")
    agents = project / "AGENTS.md"
    agents.write_text(agents.read_text().replace("## Tasks: taskwall", "## An older text") + "below\n")
    check = run(project, "codex", check=True)
    assert (check.files, check.exit) == (("AGENTS.md",), 4)
    run(project, "codex")
    text = agents.read_text()
    assert text.startswith("above\n") and text.endswith("below\n") and text.count("taskwall:begin") == 1


def test_one_file_under_two_names_gets_one_block(project):
    fill(project, {"CLAUDE.md": "mine\n"})
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    between = in_and_out(project, "claude", "codex")
    assert between["CLAUDE.md"].count(b"taskwall:begin") == 1 and b"@AGENTS.md" not in between["CLAUDE.md"]
    assert between["AGENTS.md"] == "CLAUDE.md"


@pytest.mark.parametrize("link", ["AGENTS.md", "CLAUDE.md"])
def test_one_file_under_two_names_is_taken_back_for_the_last_client_alone(project, link):
    [real] = {"AGENTS.md", "CLAUDE.md"} - {link}
    fill(project, {real: "mine\n"})
    (project / link).symlink_to(real)
    before = tree(project)
    run(project, "codex")
    with_codex = tree(project)
    run(project, "codex", remove=True)
    assert tree(project) == before
    run(project, "claude", "codex")
    run(project, "claude", remove=True)
    assert tree(project) == with_codex and run(project, "codex", check=True).exit == 0
    run(project, "codex", remove=True)
    assert tree(project) == before


def test_taking_one_client_back_leaves_what_the_others_share(project):
    run(project, "codex")
    with_codex = tree(project)
    run(project, "claude")
    run(project, "claude", remove=True)
    assert tree(project) == with_codex


# Refusals: nothing is written


@pytest.mark.parametrize(
    "files",
    [
        {".mcp.json": '{"mcpServers": '},
        {".mcp.json": ""},
        {".mcp.json": '{"a": 1, "a": 2}'},
        {".mcp.json": '["a"]'},
        {".mcp.json": '{"mcpServers": []}'},
        {".mcp.json": b"\xff{}"},
        {".mcp.json": b"\xef\xbb\xbf{}"},
        {".codex/config.toml": b"\xef\xbb\xbf"},
        {".claude/settings.json": '{"hooks": {"SessionStart": {}}}'},
        {".codex/config.toml": "a = \n"},
        {".codex/config.toml": 'mcp_servers = {mine = {command = "x"}}\n'},
        {"AGENTS.md": "<!-- taskwall:begin, kept by taskwall setup -->\n"},
        {".claude": "a file"},
        {".agents/skills/taskwall/SKILL.md": None},
    ],
)
def test_what_cannot_be_read_is_refused_and_untouched(project, files):
    fill(project, files)
    before = tree(project)
    with pytest.raises(Invalid, match="nothing was written"):
        run(project, *CLIENTS)
    assert tree(project) == before
    try:
        run(project, remove=True)
    except Invalid as error:  # a mark of ours that stands alone
        assert "AGENTS.md" in files and "nothing was removed" in error.message
    assert tree(project) == before


@pytest.mark.parametrize(
    ("path", "rest"), [(".mcp.json", "codex gemini opencode cursor"), (".codex/config.toml", "claude gemini")]
)
def test_a_file_that_stops_set_up_is_named_with_the_clients_that_can_do_without(project, path, rest):
    fill(project, {path: b"\xef\xbb\xbf{}"})
    with pytest.raises(Invalid) as refused:
        run(project, *CLIENTS)
    assert f"{path} cannot be read: it begins with a byte order mark" in refused.value.message
    assert f"`taskwall setup {rest}" in refused.value.next
    assert run(project, *rest.split()).done
    with pytest.raises(Invalid) as refused:
        run(project, "claude" if path == ".mcp.json" else "codex")
    assert refused.value.next == "mend that and run the same again"


def test_a_server_of_ours_behind_a_byte_order_mark_stops_the_removal(project):
    fill(project, {"opencode.jsonc": "{}"})
    run(project, "opencode")
    file = project / "opencode.jsonc"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    with pytest.raises(Invalid, match=r"opencode\.jsonc cannot be read: it begins .* nothing was removed"):
        run(project, remove=True)


@pytest.mark.parametrize("link", [".claude", ".mcp.json", "AGENTS.md", ".claude/skills"])
def test_links_are_refused(project, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(outside)
    before = tree(tmp_path)
    with pytest.raises(Invalid, match="symbolic link"):
        run(project, "claude")
    run(project, remove=True)
    assert tree(tmp_path) == before


def test_unknown_clients_none_at_all_and_homes_are_refused(project, tmp_path):
    with pytest.raises(Invalid, match="no client 'emacs'"):
        run(project, "emacs")
    with pytest.raises(Invalid, match="was found"):
        run(project)
    with pytest.raises(Invalid, match="home folder"):
        run(project, "claude", env={"PATH": "", "HOME": str(project)})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_project_is_refused_before_anything_is_written(project):
    (project / ".claude").mkdir(mode=0o555)
    with pytest.raises(Unwritable):
        run(project, "claude", "codex")
    assert list(tree(project)) == [".claude"]


def test_a_file_that_changed_since_the_plan_is_not_overwritten(project):
    fill(project, {"AGENTS.md": "old\n"})

    def meanwhile(plan):
        (project / "AGENTS.md").write_text("new\n")
        return True

    with pytest.raises(Invalid, match="changed just now"):
        run(project, "codex", yes=False, ask=meanwhile)
    assert (project / "AGENTS.md").read_text() == "new\n"


# Only there


def test_without_a_yes_nothing_is_written(project):
    before = tree(project)
    answer = run(project, "claude", yes=False)
    assert (answer.done, answer.exit) == (False, 4) and "+++ b/.mcp.json" in answer.diff
    assert not run(project, "claude", yes=False, ask=lambda plan: False).done
    assert tree(project) == before
    assert run(project, "claude", yes=False, ask=lambda plan: True).done


def test_a_plan_begins_with_a_line_for_each_file_and_does_not_unroll_the_skill(project):
    fill(project, {"AGENTS.md": "mine\n", "CLAUDE.md.taskwall-tmp": ""})
    shown = run(project, "claude", yes=False).diff.splitlines()
    summary = shown[1 : shown.index("")]
    lines = len(known.text_of("SKILL.md").splitlines()) + 1
    assert shown[0] == f"In {project}:" and [line.split(maxsplit=1) for line in summary] == [
        ["new", f".claude/skills/taskwall/SKILL.md, {lines} lines"],
        ["changed", "AGENTS.md"],
        ["new", "CLAUDE.md"],
        ["new", ".mcp.json"],
        ["new", ".claude/settings.json"],
        ["removed", "CLAUDE.md.taskwall-tmp, left by an interrupted run"],
    ]
    assert "+## The loop" not in shown and "+@AGENTS.md" in shown
    run(project, "claude")
    taken = run(project, yes=False, remove=True).diff
    assert "  removed  CLAUDE.md\n" in taken and "## The loop" not in taken


def test_a_program_that_clients_will_not_find_is_named_by_every_check(project, tmp_path):
    run(project, "claude")
    missing = run(project, "claude", check=True)
    assert missing.exit == 0 and [note for note in missing.notes if "not on PATH" in note]
    fill(tmp_path, {"bin/taskwall": "#!/bin/sh\n"})
    (tmp_path / "bin/taskwall").chmod(0o755)
    found = run(project, "claude", check=True, env=NOWHERE | {"PATH": str(tmp_path / "bin")})
    assert (found.exit, found.notes) == (0, ())


def test_clients_in_use_are_found_by_their_files_and_programs(project, tmp_path):
    fill(project, {".gemini": None, "CLAUDE.md": ""})
    program = tmp_path / "bin/opencode"
    fill(tmp_path, {"bin/opencode": "#!/bin/sh\n"})
    program.chmod(0o755)
    env = NOWHERE | {"PATH": str(program.parent)}
    assert run(project, env=env, yes=False).clients == ("claude", "gemini", "opencode")


def test_user_files_go_into_the_home_folder_alone(project, tmp_path):
    home = tmp_path / "home"
    fill(home, {".claude.json": '{"numStartups": 3}', ".codex": None, ".config/opencode/opencode.json": "{}"})
    env = {"PATH": "", "HOME": str(home)}
    before = tree(project)
    tree_between = tree(home)
    assert run(project, *CLIENTS, user=True, env=env).done
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["taskwall"]["args"] == ["mcp"]
    assert tree(project) == before
    run(project, user=True, env=env, remove=True)
    assert tree(home) == tree_between


def test_what_is_said_in_a_home_folder_is_true_in_every_repository(tmp_path):
    env = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    notes = " ".join(run(tmp_path, *CLIENTS, user=True, env=env).notes)
    assert not re.search(r"\.mcp\.json|project", notes) and "Cursor" in notes
    said = [file.read_text() for file in tmp_path.rglob("*.md")]
    assert len(said) == 6
    for text in said:
        assert "this repository" not in text.lower()
        assert re.search(r"(?i)in a repository with a \.tasks folder", text)
    assert all("elsewhere use nothing" in text for text in said if text.startswith("---"))
    with pytest.raises(Invalid) as refused:
        fill(tmp_path, {".claude.json": "{"})
        run(tmp_path, "claude", "codex", user=True, env=env)
    assert "`taskwall setup --user codex`" in refused.value.next


def test_a_linked_worktree_names_the_board_of_the_main_one(tmp_path):
    git = lambda *words, cwd: subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)  # noqa: E731
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git("init", "-q", cwd=main)
    git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x", cwd=main)
    git("worktree", "add", "-q", str(linked), cwd=main)
    outside = tree(main)
    between = in_and_out(linked, "claude", "codex")
    assert (
        str(main / ".tasks")
        in json.loads(between[".claude/settings.local.json"])["permissions"]["additionalDirectories"]
    )
    codex = tomllib.loads(between[".codex/config.toml"].decode())
    assert codex["sandbox_workspace_write"]["writable_roots"] == [str(main / ".tasks")]
    assert tree(main) == outside
    left = {f"{name}.taskwall-tmp": "" for name in (".claude/settings.local.json", "opencode.jsonc")}
    fill(linked, left)
    assert set(run(linked, remove=True).files) == set(left)
    fill(linked, {".codex/config.toml": "[sandbox_workspace_write]\nnetwork_access = true\n"})
    assert any("sandbox" in note and str(main) in note for note in run(linked, "codex").notes)
    assert b"writable_roots" not in tree(linked)[".codex/config.toml"]


# Half-way


class Killed(BaseException):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("remove", [False, True])
def test_a_run_that_is_killed_anywhere_can_be_repeated(tmp_path, monkeypatch, remove):
    """Stopped before its nth change of the disk, for every n, then run again."""
    calls = ["makedirs", "replace", "unlink", "rmdir"]
    real = {name: getattr(os, name) for name in calls}
    for stop in range(1, 200):
        root = tmp_path / f"p{stop}"
        (root / ".git").mkdir(parents=True)
        fill(root, {".cursor": None, "AGENTS.md": "mine", ".mcp.json": '{"mcpServers": {}}', ".claude/x": "x"})
        before = tree(root)
        if remove:
            run(root, *CLIENTS)
        count = 0

        def step(name):
            def act(*args, **more):
                nonlocal count
                count += 1
                if count == stop:
                    raise Killed
                return real[name](*args, **more)

            return act

        with monkeypatch.context() as patch:
            for name in calls:
                patch.setattr(trees.os, name, step(name))
            try:
                run(root, *CLIENTS, remove=remove)
            except Killed:
                pass
        killed = count >= stop
        if not remove:
            run(root, *CLIENTS)
            assert run(root, *CLIENTS, check=True).exit == 0
        run(root, remove=True)
        assert tree(root) == before, stop
        if not killed:
            return
    raise AssertionError("never came to its end")


# The command


def tw(*words, cwd, path="/nowhere"):
    env = {k: v for k, v in os.environ.items() if not re.match("TASKWALL|CLAUDE|CODEX|GEMINI", k)}
    command = [sys.executable, "-m", "taskwall", *words]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env=env | {"PATH": path}, stdin=subprocess.DEVNULL
    )


def test_the_command_shows_a_diff_and_says_what_it_did(project):
    shown = tw("setup", "claude", cwd=project)
    assert shown.returncode == 4 and "+@AGENTS.md" in shown.stdout and "Nothing was written" in shown.stdout
    assert tw("setup", "claude", "--yes", cwd=project).returncode == 0
    assert tw("setup", "--check", "claude-code", cwd=project).returncode == 0
    (project / ".mcp.json").unlink()
    check = tw("setup", "claude", "--check", "--json", cwd=project)
    assert check.returncode == 4 and json.loads(check.stdout)["data"]["files"] == [".mcp.json"]
    assert tw("setup", "--remove", "--yes", cwd=project).returncode == 0
    assert tree(project) == {}


def test_init_names_set_up_when_a_client_is_there_and_writes_nothing(project):
    assert "setup" not in tw("init", cwd=project).stdout
    os.rmdir(project / ".tasks")
    fill(project, {".claude": None})
    assert "`taskwall setup`" in tw("init", cwd=project).stdout
    assert list(tree(project)) == [".claude"]


@pytest.mark.parametrize("value", ["null", "0", '"text"', "true"])
def test_another_value_where_ours_would_be_is_left_alone(project, value):
    files = {".mcp.json": f'{{"mcpServers": {value}}}', ".claude/settings.json": f'{{"hooks": {value}}}'}
    fill(project, files)
    before = tree(project)
    run(project, *CLIENTS, remove=True)
    assert tree(project) == before
