"""The house: which room may import which, how light a command starts, how large the whole is."""

import ast
import io
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from taskwall.faces.cli.main import LAST_WORDS

SRC = Path(__file__).parent.parent / "src" / "taskwall"

LAYERS = [
    {"core.record", "core.errors", "core.light"},
    {"core.jsontext"},
    {"core.graph", "core.model", "core.refusals"},
    {"core.naming"},
    {"core.view", "core.claims"},
    {"core.state"},
    {"core.rules.change", "core.rules.proving"},
    {"core.rules.making"},
    {"core.rules.deciding", "core.rules.ending"},
    {"core.rules.claiming"},
    {"core.rules"},
    {"core.actions"},
    {"results", "selection", "process", "signals", "lengths"},
    {"fleet", "outcomes", "overviews", "wording"},
    {"stores", "proof", "accounts"},
    {"onlooker", "trust"},
    {"board"},
    {"settings", "registry", "render"},
    {"config"},
    {"verbs", "envelope", "heartbeat", "glance", "mermaid"},
    {"agent", "interop"},
    {"demo", "selftest", "worker"},
    {"faces"},
]
"""From the ground up: a module imports only what is named in a lower line, or its own package."""

LIGHT = {"os", "time"}
HEAVY = {
    "anthropic", "argparse", "asyncio", "collections", "contextlib", "dataclasses", "difflib", "enum", "functools",
    "gettext", "httpx2", "inspect", "json", "locale", "openai", "operator", "pathlib", "platform", "psycopg",
    "psycopg_pool", "pydantic", "re", "rich", "shtab", "shutil", "socket", "sqlite3", "sse_starlette", "starlette",
    "subprocess", "textual", "tomllib", "types", "typing", "urllib", "uvicorn",
}  # fmt: skip


def modules() -> dict[str, Path]:
    found = {}
    for path in SRC.rglob("*.py"):
        name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "__main__"):
            found[name] = path
    return found


def layer(name: str) -> int:
    best = max(
        ((len(room), at) for at, rooms in enumerate(LAYERS) for room in rooms if f"{name}.".startswith(f"{room}.")),
        default=None,
    )
    return best[1] if best else -1


def imports(name: str, path: Path) -> set[str]:
    """The modules of taskwall that a module imports, wherever in it, with those for type checking alone."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    known = modules()
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else None
            if base is None:
                if not (node.module or "").startswith("taskwall"):
                    continue
                base = (node.module or "").split(".")[1:]
            elif node.module:
                base = base + node.module.split(".")
            target = ".".join(base)
            for alias in node.names:
                inner = f"{target}.{alias.name}".strip(".")
                found.add(inner if inner in known else target)
    return {module for module in found if module}


def test_every_module_has_its_room():
    assert [name for name in modules() if layer(name) < 0 and name not in ("core",)] == []


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_run_one_way(name):
    own = layer(name)
    wrong = []
    for target in imports(name, modules()[name]):
        same_package = target.split(".")[0] == name.split(".")[0] and layer(target) == own
        if layer(target) > own or (layer(target) == own and not same_package):
            wrong.append(target)
    assert wrong == []


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_ring():
    from taskwall.core.graph import rings

    edges = {name: imports(name, path) & set(modules()) for name, path in modules().items()}
    assert list(rings(sorted(edges), lambda name: sorted(edges.get(name, ())))) == []


def test_core_is_pure():
    """No clock, disk, process or network under core."""
    banned = {"os", "time", "subprocess", "socket", "random", "pathlib", "io", "sys", "datetime"}
    for name, path in modules().items():
        if name.startswith("core"):
            tree = ast.parse(path.read_text())
            used = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
            used |= {
                n.module.split(".")[0]
                for n in ast.walk(tree)
                if isinstance(n, ast.ImportFrom) and n.module and not n.level
            }
            assert not used & banned, name
            assert not [
                n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("print", "open")
            ]


COMMANDS = {
    "list": ["list"],
    "next": ["next"],
    "add": ["add", "another"],
    "show": ["show", "task-a"],
    "claim": ["claim", "task-a"],
    "done": ["done", "task-a"],
}
LOOKS = {"list", "next", "show"}
SELDOM = {"agent", "settings", "envelope", "faces.cli.commands", "faces.cli.parsing", "stores.memory"}
WRITING = {
    "accounts", "board", "core.refusals", "core.rules", "outcomes", "overviews", "process", "stores.files.archive",
    "stores.files.dialects", "stores.files.lock", "stores.files.moved", "stores.files.patch", "stores.files.tables",
    "stores.files.writing",
}  # fmt: skip
"""What only changes a board, or what is seldom there."""
MOST_ROOMS = 41
"""How many modules of ours a command loads that only looks: each costs about a hundredth of an interpreter start."""


def test_hot_commands_start_without_heavy_modules(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(SRC.parent)}
    run = "import sys\nfrom taskwall.faces.cli.main import main\nmain(sys.argv[1:])\nprint('LOADED', *sys.modules)"
    add = ["add", "first", "--id", "task-a"]
    for words in (add, *COMMANDS.values()):
        done = subprocess.run(
            [sys.executable, "-S", "-c", run, "--board", str(tmp_path), *words], capture_output=True, text=True, env=env
        )
        assert done.returncode == 0, done.stderr
        loaded = set(done.stdout.rpartition("LOADED ")[2].split())
        assert not loaded & (HEAVY | LAST_WORDS), words
        ours = {name.removeprefix("taskwall.") for name in loaded if name.startswith("taskwall")}
        assert not ours & (SELDOM | (WRITING if words[0] in LOOKS else set())), words
        assert words[0] not in LOOKS or len(ours) <= MOST_ROOMS, sorted(ours)
        assert LIGHT <= loaded  # the probe sees what is loaded


def test_importing_does_nothing(tmp_path):
    names = [f"taskwall.{name}" for name in modules() if name != "demo"]
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def code_lines(path: Path) -> int:
    """Lines that hold code: no blank ones, comments or docstrings."""
    text = path.read_text()
    strings = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [n.body[0] for n in ast.walk(ast.parse(text)) if isinstance(n, strings) and ast.get_docstring(n) is not None]
    told = {line for doc in docs for line in range(doc.lineno, doc.end_lineno + 1)}
    shape = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return len({token.start[0] for token in tokens if token.type not in shape} - told)


@pytest.mark.slow
def test_the_whole_stays_small():
    assert sum(code_lines(path) for path in modules().values()) < 20_600


def test_no_module_is_long():
    lines = {name: path.read_text().count("\n") for name, path in modules().items()}
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_no_function_is_long():
    long = []
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                doc = ast.get_docstring(node, clean=False) or ""
                if node.end_lineno - node.lineno - doc.count("\n") > 50:
                    long.append(f"{name}.{node.name}")
    assert long == []
