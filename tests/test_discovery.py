"""Where the board lies, who acts, what the settings say (DESIGN section 3), in real git repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import add
from taskwall.config import find_actor, find_board, find_repository, make_board, open_board, read_settings
from taskwall.core.errors import Invalid, Refused
from taskwall.core.model import Actor, Settings

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(*args, cwd):
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *map(str, args)]
    return subprocess.run(command, cwd=cwd, env=os.environ | GIT, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tmp_path(tmp_path):
    """Without links in it, so that paths compare as they are."""
    return tmp_path.resolve()


def repository(path: Path, *files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    git("init", cwd=path)
    for name in ("README", *files):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("{}")
    git("add", "-Af", cwd=path)
    git("commit", "-m", "first", cwd=path)
    return path


def found(cwd, given=None, **env):
    return find_board(given, env, str(cwd))


# Inside git


def test_the_board_of_a_repository_lies_at_its_root_wherever_one_stands(tmp_path):
    repo = repository(tmp_path / "repo", "src/deep/x")
    for cwd in (repo, repo / "src" / "deep"):
        where = found(cwd)
        assert (where.path, where.root, where.exists) == (str(repo / ".tasks"), str(repo), False)
    assert make_board(where) and not make_board(where)
    assert found(repo / "src").exists and found(repo / "src").why == "the root of this repository"
    assert git("status", "--porcelain", cwd=repo) == ""


def test_the_root_comes_before_a_nearer_tasks_folder(tmp_path):
    repo = repository(tmp_path / "repo", ".tasks/a", "src/.tasks/b")
    assert found(repo / "src").path == str(repo / ".tasks")


def test_a_nearer_tasks_folder_counts_when_the_root_has_none(tmp_path):
    repo = repository(tmp_path / "repo", "src/.tasks/b")
    (repo / "src" / "deep").mkdir()
    where = found(repo / "src" / "deep")
    assert (where.path, where.why) == (str(repo / "src" / ".tasks"), "the nearest .tasks upward")
    assert found(repo).path == str(repo / ".tasks") and not found(repo).exists


def test_linked_worktrees_share_the_board_of_the_main_one(tmp_path):
    repo = repository(tmp_path / "repo", "src/x")
    (repo / ".tasks").mkdir()
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    for cwd in (tmp_path / "linked", tmp_path / "linked" / "src"):
        where = found(cwd)
        assert (where.path, where.exists) == (str(repo / ".tasks"), True)
        assert where.root == str(tmp_path / "linked"), "products are made where one works"
        assert (where.why, where.warnings) == ("the main worktree of this repository", ())


def test_a_board_is_made_in_the_main_worktree_from_a_linked_one(tmp_path):
    repo = repository(tmp_path / "repo")
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    open_board(found(tmp_path / "linked"), Actor("a", "a"), make=True)
    assert (repo / ".tasks").is_dir() and not (tmp_path / "linked" / ".tasks").exists()


def test_a_copy_of_the_board_in_a_linked_worktree_is_ignored_with_one_warning(tmp_path):
    repo = repository(tmp_path / "repo", ".tasks/a.json")
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    where = found(tmp_path / "linked")
    assert where.path == str(repo / ".tasks")
    (warning,) = where.warnings
    assert str(tmp_path / "linked" / ".tasks") in warning and "ignored" in warning and "\n" not in warning
    assert found(repo).warnings == ()


def test_a_tracked_copy_is_no_board_even_when_the_main_worktree_has_none(tmp_path):
    repo = repository(tmp_path / "repo", ".tasks/a.json")
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    git("rm", "-rq", ".tasks", cwd=repo)
    where = found(tmp_path / "linked")
    assert (where.path, where.exists) == (str(repo / ".tasks"), False) and len(where.warnings) == 1


def test_a_worktree_inside_the_main_one_shares_its_board(tmp_path):
    repo = repository(tmp_path / "repo")
    (repo / ".tasks").mkdir()
    git("worktree", "add", repo / ".worktrees" / "w", cwd=repo)
    assert found(repo / ".worktrees" / "w").path == str(repo / ".tasks")


def submodule(tmp_path):
    repo, library = repository(tmp_path / "repo"), repository(tmp_path / "library", ".tasks/x")
    git("submodule", "add", library, "lib", cwd=repo)
    git("commit", "-m", "lib", cwd=repo)
    (repo / ".tasks").mkdir()
    return repo


def test_a_submodule_is_its_own_repository(tmp_path):
    repo = submodule(tmp_path)
    where = found(repo / "lib")
    assert (where.path, where.root) == (str(repo / "lib" / ".tasks"), str(repo / "lib"))
    assert find_repository(str(repo / "lib")).linked is False


def test_a_linked_worktree_of_a_submodule_shares_the_submodules_board(tmp_path):
    repo = submodule(tmp_path)
    git("worktree", "add", tmp_path / "linked", cwd=repo / "lib")
    where = found(tmp_path / "linked")
    assert (where.path, where.root) == (str(repo / "lib" / ".tasks"), str(tmp_path / "linked"))


@pytest.mark.parametrize("name", ["bare.git", ".bare"])
def test_a_bare_repository_needs_a_board_beside_it(tmp_path, name):
    repository(tmp_path / "origin")
    git("clone", "--bare", tmp_path / "origin", tmp_path / "hub" / name, cwd=tmp_path)
    bare = tmp_path / "hub" / name
    git("worktree", "add", tmp_path / "hub" / "main", cwd=bare)
    for cwd in (bare, tmp_path / "hub" / "main"):
        with pytest.raises(Invalid, match="bare repository") as refusal:
            found(cwd)
        assert "--board" in refusal.value.next
        assert found(cwd, str(tmp_path / "hub")).path == str(tmp_path / "hub" / ".tasks")
    (tmp_path / "hub" / ".tasks").mkdir()
    for cwd in (bare, tmp_path / "hub" / "main"):
        assert found(cwd).path == str(tmp_path / "hub" / ".tasks")
        assert found(cwd).why == "beside the bare repository"
    assert found(tmp_path / "hub" / "main").root == str(tmp_path / "hub" / "main")
    assert found(tmp_path / "hub" / "main", str(tmp_path / "hub")).root == str(tmp_path / "hub" / "main")


def test_a_folder_whose_git_file_points_to_a_bare_repository_holds_its_board(tmp_path):
    repository(tmp_path / "origin")
    hub = tmp_path / "hub"
    git("clone", "--bare", tmp_path / "origin", hub / ".bare", cwd=tmp_path)
    (hub / ".git").write_text("gitdir: ./.bare\n")
    (hub / ".tasks").mkdir()
    git("worktree", "add", hub / "feature", cwd=hub)
    assert found(hub).path == found(hub / "feature").path == str(hub / ".tasks")


def test_a_nested_repository_has_its_own_board(tmp_path):
    outer = repository(tmp_path / "outer", ".tasks/x")
    inner = repository(outer / "vendor" / "inner", ".tasks/x")
    assert found(inner).path == str(inner / ".tasks")


def test_a_git_directory_kept_elsewhere(tmp_path):
    (tmp_path / "work").mkdir()
    git("init", "--separate-git-dir", tmp_path / "kept", cwd=tmp_path / "work")
    (tmp_path / "work" / ".tasks").mkdir()
    assert found(tmp_path / "work").path == str(tmp_path / "work" / ".tasks")


def test_a_path_through_a_link_leads_to_the_same_board(tmp_path):
    repo = repository(tmp_path / "repo", "src/x")
    (tmp_path / "link").symlink_to(repo / "src")
    assert found(tmp_path / "link").path == str(repo / ".tasks")


# Outside git


def test_without_git_the_nearest_board_upward_counts(tmp_path):
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    where = found(deep)
    assert (where.path, where.exists) == (str(deep / ".tasks"), False)
    (tmp_path / "a" / ".tasks").mkdir()
    where = found(deep)
    assert (where.path, where.why, where.root) == (
        str(tmp_path / "a" / ".tasks"),
        "the nearest .tasks upward",
        str(tmp_path / "a"),
    )


def test_a_board_that_is_not_there_is_named_with_what_was_searched(tmp_path):
    with pytest.raises(Invalid) as refusal:
        open_board(found(tmp_path), Actor("a", "a"))
    assert str(tmp_path / ".tasks") in refusal.value.message and "init" in refusal.value.next
    assert list(tmp_path.iterdir()) == []


def test_a_file_called_like_the_board_is_left_alone(tmp_path):
    (tmp_path / ".tasks").write_text("mine")
    with pytest.raises(Invalid, match="not a folder"):
        open_board(found(tmp_path), Actor("a", "a"), make=True)
    assert (tmp_path / ".tasks").read_text() == "mine"


# --board and $TASKWALL_BOARD


def test_a_board_is_named_by_its_folder_or_by_the_one_that_holds_it(tmp_path):
    board = tmp_path / "there" / ".tasks"
    board.mkdir(parents=True)
    repo = repository(tmp_path / "repo", ".tasks/x")
    for given in (board, board.parent, "../there", "../there/.tasks/"):
        where = found(repo, str(given))
        assert (where.path, where.why, where.root, where.exists) == (
            str(board),
            "--board",
            str(board.parent),
            True,
        )


def test_the_order_is_option_environment_discovery(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name / ".tasks").mkdir(parents=True)
    here = tmp_path / "three"
    env = {"TASKWALL_BOARD": str(tmp_path / "two")}
    assert found(here, str(tmp_path / "one"), **env).path == str(tmp_path / "one" / ".tasks")
    assert found(here, **env).path == str(tmp_path / "two" / ".tasks")
    assert found(here, **env).why == "$TASKWALL_BOARD"
    assert found(here, TASKWALL_BOARD="").path == str(here / ".tasks")


def test_a_named_board_needs_no_repository_to_be_sound(tmp_path):
    git("init", "--bare", tmp_path / "b.git", cwd=tmp_path)
    (tmp_path / "x").mkdir()
    assert found(tmp_path / "b.git", str(tmp_path / "x")).path == str(tmp_path / "x" / ".tasks")


def test_products_of_the_own_repository_are_looked_for_in_the_worktree_one_works_in(tmp_path):
    repo = repository(tmp_path / "repo", ".tasks/x")
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    assert found(tmp_path / "linked", str(repo)).root == str(tmp_path / "linked")


def test_so_are_those_of_a_board_in_a_folder_of_it_in_the_same_folder(tmp_path):
    repo = repository(tmp_path / "repo", "pkg/.tasks/x")
    (repo / "new" / ".tasks").mkdir(parents=True)
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    linked = tmp_path / "linked"
    assert found(linked, str(repo / "pkg")).root == str(linked / "pkg")
    assert found(linked, str(repo / "new")).root == str(linked), "nobody has committed it"
    assert found(repo, str(repo / "pkg")).root == str(repo / "pkg")
    assert found(repo, str(linked / "pkg")).root == str(linked / "pkg"), "it lies in that worktree"


def test_a_board_in_a_worktree_of_a_bare_repository_has_its_work_looked_for_where_one_works(tmp_path):
    repository(tmp_path / "origin", "src/x")
    hub = tmp_path / "hub"
    git("clone", "--bare", tmp_path / "origin", hub / ".bare", cwd=tmp_path)
    git("worktree", "add", hub / "m", cwd=hub / ".bare")
    git("worktree", "add", "-b", "other", tmp_path / "elsewhere", cwd=hub / ".bare")
    (hub / "m" / ".tasks").mkdir()
    assert found(tmp_path / "elsewhere" / "src", str(hub / "m")).root == str(tmp_path / "elsewhere")
    assert found(tmp_path, str(hub / "m")).root == found(hub / "m", str(hub / "m")).root == str(hub / "m")


def test_in_a_submodule_of_a_linked_worktree_one_is_in_that_worktree_for_the_board_around(tmp_path):
    repo = submodule(tmp_path)
    linked = tmp_path / "linked"
    git("worktree", "add", linked, cwd=repo)
    git("submodule", "update", "--init", cwd=linked)
    assert found(linked / "lib", str(repo)).root == str(linked)
    assert found(linked / "lib", str(repo / "lib")).root == str(repo / "lib"), "a clone, and no worktree of that one"
    assert found(repo / "lib", str(repo)).root == str(repo)


def test_a_folder_of_task_files_of_another_name_is_a_board_but_any_json_makes_none(tmp_path):
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "a.json").write_text("{")
    (tmp_path / "sample" / "b.json").write_text('{"id": 1, "subject": "s", "status": "pending"}')
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    assert found(tmp_path, "sample").path == str(tmp_path / "sample")
    assert found(tmp_path, "node").path == str(tmp_path / "node" / ".tasks")


def test_a_board_folder_that_is_a_link_is_the_folder_it_leads_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".tasks").symlink_to(tmp_path / "kept")
    for given in (None, "work", "work/.tasks"):
        where = found(tmp_path / "work" if given is None else tmp_path, given)
        assert os.path.realpath(where.path) == str(tmp_path / "kept") and where.exists
        assert where.root == found(tmp_path, where.address).root == str(tmp_path / "work")


@pytest.mark.parametrize("given", ["no/such/folder", "file", "mysql://host/db", "https://x"])
def test_a_name_that_can_be_no_board_is_refused(tmp_path, given):
    (tmp_path / "file").write_text("")
    for option, env in ((given, {}), (None, {"TASKWALL_BOARD": given})):
        with pytest.raises(Invalid):
            found(tmp_path, option, **env)


# No process


def test_discovery_runs_no_process_and_needs_no_path(tmp_path):
    repo = repository(tmp_path / "repo", ".tasks/x")
    git("worktree", "add", tmp_path / "linked", cwd=repo)
    code = (
        "import sys\n"
        "sys.addaudithook(lambda name, _: name in ('subprocess.Popen', 'os.exec', 'os.fork', 'os.posix_spawn',"
        " 'os.system') and sys.exit(f'ran {name}'))\n"
        "from taskwall.config import find_board\n"
        "print(find_board(None, {}, '.').path, 'subprocess' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "linked", env={"PATH": ""}, capture_output=True, text=True
    )
    assert (ran.stdout.split(), ran.stderr) == ([str(repo / ".tasks"), "False"], "")


# Who acts


@pytest.mark.parametrize(
    ("given", "env", "default", "actor"),
    [
        (None, {}, "user", Actor("user", "user", named=False)),
        ("alice", {}, "user", Actor("alice", "alice")),
        ("alice", {"TASKWALL_ACTOR": "bob", "CLAUDECODE": "1"}, "user", Actor("alice", "alice")),
        (None, {"TASKWALL_ACTOR": "bob", "CLAUDECODE": "1"}, "user", Actor("bob", "bob")),
        (None, {"TASKWALL_ACTOR": ""}, "user", Actor("user", "user", named=False)),
        (None, {"CLAUDECODE": "1"}, "user", Actor("claude", "claude")),
        (None, {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}, "user", Actor("claude", "s")),
        (None, {"CODEX_THREAD_ID": "t"}, "user", Actor("codex", "t")),
        (None, {"CODEX_SANDBOX": "seatbelt"}, "user", Actor("codex", "codex")),
        (None, {"GEMINI_CLI": "1"}, "user", Actor("gemini", "gemini")),
        (None, {"TASKWALL_SESSION": "mine"}, "user", Actor("user", "mine", named=False)),
        (
            "alice",
            {"TASKWALL_SESSION": "mine", "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"},
            "user",
            Actor("alice", "mine"),
        ),
        ("alice", {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}, "user", Actor("alice", "s")),
        (None, {"CLAUDE_CODE_SESSION_ID": "s"}, "user", Actor("user", "user", named=False)),
        (None, {}, "agent", Actor("agent", "agent")),
        (None, {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}, "agent", Actor("agent", "s")),
        (None, {"TASKWALL_ACTOR": "bob"}, "agent", Actor("bob", "bob")),
    ],
)
def test_who_acts_and_in_which_session(given, env, default, actor):
    assert find_actor(given, env, default) == actor


def test_an_empty_name_does_not_act_as_the_person():
    with pytest.raises(Invalid, match="names nobody"):
        find_actor("", {})


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", " ", "x" * 300, "\udcff"])
def test_a_name_that_could_not_be_shown_is_refused(name):
    with pytest.raises(Invalid):
        find_actor(name, {})
    with pytest.raises(Invalid):
        find_actor("a", {"TASKWALL_SESSION": name})


# Settings


def test_without_settings_the_defaults_hold(tmp_path):
    assert read_settings(str(tmp_path)) == Settings()
    for text in ("", "\n", "# nothing yet\n", '[other]\nkey = "kept for later versions"\n'):
        (tmp_path / "board.toml").write_text(text)
        assert read_settings(str(tmp_path)) == Settings()


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ('people = ["王", "chair"]', "people", ("王", "chair")),
        ("people = []", "people", ()),
        ("lease_minutes = 5", "lease_minutes", 5),
        ("lease_minutes = 0.5", "lease_minutes", 0.5),
        ("max_attempts = 1", "max_attempts", 1),
        ('durability = "fast"', "durability", "fast"),
        ('durability = "full"', "durability", "full"),
        ("claims_per_session = 2", "claims_per_session", 2),
        ("claims_per_session = 0", "claims_per_session", 0),
    ],
)
def test_each_setting_is_read(tmp_path, line, key, value):
    (tmp_path / "board.toml").write_text(line + "\n")
    assert read_settings(str(tmp_path)) == Settings(**{key: value})


@pytest.mark.parametrize(
    "line",
    [
        'people = "chair"',
        "people = [1]",
        'lease_minutes = "5"',
        "lease_minutes = 0",
        "lease_minutes = -1",
        "lease_minutes = true",
        "lease_minutes = inf",
        "lease_minutes = nan",
        "max_attempts = 0",
        "max_attempts = 2.5",
        "max_attempts = true",
        'durability = "sometimes"',
        "durability = 1",
        "claims_per_session = -1",
        "claims_per_session = 1.5",
    ],
)
def test_a_setting_of_a_wrong_type_is_named(tmp_path, line):
    (tmp_path / "board.toml").write_text(line + "\n")
    with pytest.raises(Invalid) as refusal:
        read_settings(str(tmp_path))
    assert line.split()[0] in refusal.value.message and "must be" in refusal.value.message
    assert "board.toml" in refusal.value.next


@pytest.mark.parametrize(
    "content", [b"people = [", b"\xff", b"x = " + b"[" * 5000, b"a = 1\na = 2", b"\0", b"\xef\xbb\xbfpeople = []"]
)
def test_settings_that_cannot_be_read_are_named(tmp_path, content):
    (tmp_path / "board.toml").write_bytes(content)
    with pytest.raises(Invalid, match=r"board\.toml cannot be read"):
        read_settings(str(tmp_path))


def test_settings_are_not_read_through_a_link_or_a_folder(tmp_path):
    (tmp_path / "real.toml").write_text("max_attempts = 1")
    (tmp_path / "board.toml").symlink_to(tmp_path / "real.toml")
    with pytest.raises(Invalid, match="symbolic link"):
        read_settings(str(tmp_path))
    (tmp_path / "board.toml").unlink()
    (tmp_path / "board.toml").mkdir()
    with pytest.raises(Invalid):
        read_settings(str(tmp_path))


def test_settings_reach_the_rules(tmp_path):
    (tmp_path / ".tasks").mkdir()
    (tmp_path / ".tasks" / "board.toml").write_text(
        'people = ["chair"]\nmax_attempts = 1\nclaims_per_session = 1\ndurability = "fast"\n'
    )
    board = open_board(found(tmp_path), Actor("a", "a"))
    for task_id in ("one", "two", "three"):
        add(board, task_id, owner="chair" if task_id == "three" else "")
    assert board.get("three").row.state == "waiting"
    board.claim("one")
    with pytest.raises(Refused) as refusal:
        board.claim("two")
    assert refusal.value.code == "busy"
    board.release("one", failed=True)
    assert board.get("one").row.state == "held"
