"""What is built is what is installed: the wheel, in a virtual environment with nothing else of ours."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLEAN = {k: v for k, v in os.environ.items() if not re.match("TASKWALL|CLAUDE|CODEX|GEMINI|PYTHONPATH|VIRTUAL_ENV", k)}
OFFLINE = re.compile("No matching distribution|Could not find a version|Temporary failure|connection", re.IGNORECASE)

pytestmark = pytest.mark.slow


def run(*words, **more):
    return subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, env=CLEAN | more.pop("env", {}), **more
    )


def or_skip(done):
    """The finished command; a test that needs a package index says so where there is none."""
    if done.returncode and OFFLINE.search(done.stdout + done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    or_skip(run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, ROOT))
    return next(out.glob("taskwall-*.whl"))


def works(program, folder):
    for words, shown in (
        (["--version"], r"taskwall \d"),
        (["add", "一个任务", "--id", "first"], "Created first: 一个任务"),
        (["claim"], "Claimed first"),
        (["done", "first"], "Completed first"),
        (["agent", "x"], None),
    ):
        done = run(program, *words, cwd=folder)
        if shown:
            assert re.search(shown, done.stdout), done.stderr
        else:  # no model is configured: clear words, no traceback
            assert done.returncode == 2 and "OPENAI_API_KEY" in done.stderr


def test_pip_installs_it_in_a_bare_environment(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "bare")
    or_skip(run(tmp_path / "bare/bin/pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel))
    keys = {"OPENAI_API_KEY": "", "DEEPSEEK_API_KEY": "", "OPENAI_BASE_URL": ""}
    CLEAN.update(keys)
    works(tmp_path / "bare/bin/taskwall", tmp_path)
    assert run(tmp_path / "bare/bin/tw", "list", "--all", cwd=tmp_path).stdout.startswith("[x] first")


def test_the_board_needs_the_standard_library_alone(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "bare")
    or_skip(run(tmp_path / "bare/bin/pip", "install", "-q", "--no-deps", wheel))
    assert "Created first" in run(tmp_path / "bare/bin/tw", "add", "x", "--id", "first", cwd=tmp_path).stdout
    assert run(tmp_path / "bare/bin/tw", "list", cwd=tmp_path).stdout == "[ ] first: x [pending]\n"


def test_uv_installs_it_as_a_tool(wheel, tmp_path):
    uv = shutil.which("uv")
    if not uv:
        pytest.skip("uv is not installed")
    env = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    or_skip(run(uv, "tool", "install", "-q", wheel, env=env))
    works(tmp_path / "bin/taskwall", tmp_path)


def test_the_wheel_holds_the_program_and_its_licence_alone(wheel):
    names = run(sys.executable, "-m", "zipfile", "-l", wheel).stdout
    assert "taskwall/core/state.py" in names and "licenses/LICENSE" in names
    assert "taskwall/interop/texts/SKILL.md" in names and "taskwall/interop/texts/agents.md" in names
    assert "taskwall/faces/web/static/vendor/preact.js" in names and "static/vendor/LICENSES.txt" in names
    assert not re.search(r"tests/|scripts/|\.tasks", names)
