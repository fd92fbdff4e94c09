"""The wall in a terminal: what it shows, that it lives, and that every act of the page can be done there."""

import asyncio
import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from building_site import Site
from rich.cells import cell_len

from taskwall.core.rules import Draft, Edit
from taskwall.faces.tui.acts import KEYS
from taskwall.faces.tui.app import Wall
from taskwall.faces.tui.dialogs import Form, Menu
from taskwall.faces.tui.items import Items
from taskwall.faces.tui.sight import Sight
from taskwall.faces.tui.task import TaskScreen
from taskwall.faces.words import LANGUAGES, OWN, language_of, words_of

SOURCE = Path(__file__).parent.parent / "src" / "taskwall" / "faces" / "tui"
SNAPSHOTS = Path(__file__).parent / "snapshots"
PATIENCE = 6

pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "building-site")


@contextlib.asynccontextmanager
async def shown(site, size=(80, 24)):
    """The wall on this board, once it shows it."""
    wall = Wall(site.by, "building-site", site.language, site.seconds)
    async with wall.run_test(size=size) as pilot:
        await until(pilot, lambda: wall.sight.rows)
        yield wall, pilot


async def until(pilot, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "\n" + screen(pilot.app)
        await pilot.pause(0.01)
    await pilot.pause()


async def press(pilot, *keys):
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


async def typed(pilot, text):
    await press(pilot, *(("space" if c == " " else c) for c in text))


def screen(wall):
    """What stands on the screen, a line each."""
    return "\n".join(strip.text.rstrip() for strip in wall.screen._compositor.render_strips())


def task(site, task_id):
    return json.loads((site.path / f"{task_id}.json").read_text())


def see(site, keys, wanted, size=(80, 24)):
    """What is on the screen after these keys, once `wanted` is there."""

    async def look():
        async with shown(site, size) as (wall, pilot):
            await press(pilot, *keys)
            await until(pilot, lambda: wanted in screen(wall))
            return screen(wall)

    return asyncio.run(look())


# What it shows

SHOTS = {
    "board": ((), {"en": "Close the", "zh": "封墙"}),
    "graph": (("2",), {"en": "Critical path", "zh": "关键路径"}),
    "agents": (("3",), {"en": "given back", "zh": "放回"}),
    "inbox": (("4",), {"en": "unblocks Mend the roof", "zh": "可解除阻塞：补屋顶"}),
    "task": (("left", "enter"), {"en": "Waits for 2", "zh": "等待 2"}),
    "keys": (("question_mark",), {"en": "this help", "zh": "本帮助"}),
}


@pytest.mark.parametrize(
    ("name", "size"), [*((name, (80, 24)) for name in SHOTS), ("board", (120, 40))], ids=[*SHOTS, "wide"]
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_screen_looks_as_it_did(tmp_path, name, language, size):
    keys, wanted = SHOTS[name]
    seen = see(Site(tmp_path / "building-site", language), keys, wanted[language], size) + "\n"
    kept = SNAPSHOTS / f"tui-{name}-{language}-{size[0]}x{size[1]}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(seen)
    assert seen == kept.read_text()
    assert max(map(cell_len, seen.split("\n"))) <= size[0]


def test_columns_of_chinese_cards_stand_in_line(tmp_path):
    lines = see(Site(tmp_path / "s", "zh"), (), "封墙").split("\n")
    bars = {cell_len(line[:at]) for line in lines for at, c in enumerate(line) if c == "▌"}
    assert len(bars) == 4


def test_it_speaks_the_language_of_the_terminal():
    assert language_of({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language_of({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert language_of({}) == "en"


def test_every_word_is_there_in_both_languages():
    assert OWN["en"].keys() == OWN["zh"].keys()
    used = {key for path in SOURCE.glob("*.py") for key in re.findall(r'\bt\("([a-z]+\.[a-z._ ]+)"', path.read_text())}
    assert len(used) > 40
    for language in LANGUAGES:
        assert [key for key in used if words_of(language)(key) == key] == []


def test_the_language_and_the_colours_change_while_it_runs(site):
    async def look():
        async with shown(site) as (wall, pilot):
            before = wall.theme
            await press(pilot, "l", "t")
            assert "可开始 3" in screen(wall) and wall.theme != before
            await press(pilot, "l", "t")
            assert "Ready 3" in screen(wall) and wall.theme == before

    asyncio.run(look())


def test_the_tree_tells_each_task_once_and_then_points_to_it(site):
    seen = see(site, ("2",), "Run the wires")
    assert seen.count("Clear the site") == 4 and seen.count("Clear the site  (see above)") == 3


def test_the_tree_folds_what_waits_for_a_task(site):
    assert "Close the walls  + 5 folded" in see(site, ("2", "down", "minus"), "folded")
    assert "Paint" in see(site, ("2", "down", "minus", "plus"), "Paint")
    assert "Paint" in see(site, ("2", "down", "minus", "0"), "Paint")


def test_members_of_a_ring_are_in_the_tree():
    row = {"state": "blocked", "priority": 2}
    ring = {i: row | {"id": i, "subject": i, "blockers": [w], "waits": [w]} for i, w in ("ab", "bc", "ca")}
    branches = [(branch.row["id"], branch.depth, branch.again) for branch in Sight(ring, words_of("en")).tree()]
    assert branches == [("a", 0, False), ("c", 1, False), ("b", 2, False), ("a", 3, True)]


def test_what_is_searched_for_alone_is_shown(site):
    seen = see(site, ("slash", *"tiles", "enter"), "In progress 1", (120, 40))
    assert "Order the tiles" in seen and "Run the wires" not in seen
    assert "Run the wires" in see(site, ("slash", *"tiles", "escape"), "In progress 2", (120, 40))


def test_the_cursor_goes_to_what_was_found_and_acts_on_it(site):
    act(site, ("slash",), "wires", ("enter", "full_stop"), wanted="Take over")


def test_the_first_task_of_an_empty_board_is_chosen_as_it_comes(site):
    for path in site.path.glob("*.json"):
        path.unlink()

    async def look():
        wall = Wall(site.by, "building-site", "en", site.seconds)
        async with wall.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "This board has no tasks yet" in screen(wall) and "live" in screen(wall))
            await asyncio.to_thread(lambda: site.by().create([Draft(subject="Begin", id="begin")]))
            await until(pilot, lambda: wall.chosen == "begin")
            await press(pilot, "c")
            await until(pilot, lambda: "Begin: claimed" in screen(wall))

    asyncio.run(look())


def test_a_task_leads_to_those_it_waits_for_and_back(site):
    async def look():
        async with shown(site) as (wall, pilot):
            await press(pilot, "left", "enter")
            await until(pilot, lambda: "Waits for 2" in screen(wall))
            while wall.screen.lines.chosen != "pipes":
                await press(pilot, "down")
            await press(pilot, "enter")
            await until(pilot, lambda: "● completed" in screen(wall))
            assert wall.screen.task_id == "pipes"
            await press(pilot, "escape")
            assert wall.screen.task_id == "wall"
            await press(pilot, "escape")
            assert not isinstance(wall.screen, TaskScreen)

    asyncio.run(look())


# It lives


def test_what_others_do_is_shown_as_it_happens(site):
    async def look():
        async with shown(site) as (wall, pilot):
            await asyncio.to_thread(lambda: site.by("codex", "a81d07").complete("tiles"))
            await until(pilot, lambda: "In progress 1" in screen(wall))
            path = site.path / "doors.json"
            path.write_text(path.read_text().replace("Order the inner doors", "Order the front door"))
            await until(pilot, lambda: "front door" in screen(wall))
            path.unlink()
            await until(pilot, lambda: "front door" not in screen(wall))

    asyncio.run(look())


def test_an_open_task_is_told_anew_when_it_changes(site):
    async def look():
        async with shown(site) as (wall, pilot):
            await press(pilot, "left", "enter")
            await until(pilot, lambda: "k Ask a person" in screen(wall))
            await asyncio.to_thread(lambda: site.by("ann").update("wall", Edit(subject="Close all the walls")))
            await until(pilot, lambda: "Close all the walls" in screen(wall))

    asyncio.run(look())


def test_the_cursor_stays_on_its_task_when_that_goes_to_another_column(site):
    async def look():
        async with shown(site) as (wall, pilot):
            assert wall.chosen == "windows"
            await asyncio.to_thread(lambda: site.by("codex", "a81d07").claim("windows"))
            await until(pilot, lambda: "In progress 3" in screen(wall))
            assert wall.chosen == "windows" and wall.board.list.has_focus

    asyncio.run(look())


def test_a_file_that_cannot_be_read_waits_on_a_person(site):
    (site.path / "doors.json").write_text("<<<<<<< HEAD")
    assert "unreadable" in see(site, ("right", "right"), "unreadable")


def test_a_board_that_cannot_be_read_is_told_and_then_shown_again(site):
    away = site.path.with_name("away")

    async def look():
        async with shown(site) as (wall, pilot):
            site.path.rename(away)
            await until(pilot, lambda: "✗ The board cannot be read" in screen(wall) or "no tasks" in screen(wall))
            away.rename(site.path)
            await until(pilot, lambda: "● live" in screen(wall) and "Run the wires" in screen(wall))

    asyncio.run(look())


# It acts


def act(site, *steps, wanted=""):
    """Do these steps: a tuple is keys, a text is typed. Then wait for `wanted`, or for every form to be closed."""

    async def do():
        async with shown(site) as (wall, pilot):
            for step in steps:
                if isinstance(step, str):
                    await typed(pilot, step)
                else:
                    await press(pilot, *step)
                await pilot.pause()
            await until(pilot, lambda: wanted in screen(wall))
            return screen(wall)

    return asyncio.run(do())


def test_a_key_claims_the_chosen_task(site):
    act(site, ("c",), wanted="Replace the windows: measure, order, fit: claimed")
    assert (task(site, "windows")["status"], task(site, "windows")["owner"]) == ("in_progress", "user")


def test_a_task_is_completed_with_what_came_of_it(site):
    site.by().claim("doors")
    seen = act(site, ("right",), ("down", "d"), "four doors", ("enter",), wanted="completed")
    assert "Order the inner doors: completed" in seen
    assert task(site, "doors")["result"] == "four doors"


def test_a_question_is_answered_by_a_button(site):
    act(site, ("4", "down", "down", "a"), ("shift+tab", "shift+tab", "enter"), wanted="answered")
    assert task(site, "colour")["answer"] in ("warm white", "light grey")


def test_a_question_is_answered_in_words(site):
    act(site, ("4", "down", "down", "a"), "mist blue", ("enter",), wanted="answered")
    assert task(site, "colour")["answer"] == "mist blue"


def test_a_claim_is_given_back_with_the_reason(site):
    site.by().claim("doors")
    act(site, ("right",), ("down", "r"), "no time", ("tab", "space", "ctrl+s"), wanted="given back")
    assert task(site, "doors")["status"] == "pending" and task(site, "doors")["attempts"] == 1


def test_a_person_is_asked_with_choices(site):
    act(site, ("down", "k"), "oak or pine?", ("tab",), "oak", ("enter",), "pine", ("ctrl+s",), wanted="asked")
    (question,) = [
        t for path in site.path.glob("*.json") if (t := json.loads(path.read_text())).get("options") == ["oak", "pine"]
    ]
    assert question["question"] == "oak or pine?" and question["id"] in task(site, "doors")["blockedBy"]


def test_a_task_is_made_to_wait_for_one_that_is_looked_for(site):
    act(site, ("b",), "tiles", ("enter",), wanted="changed")
    assert "tiles" in task(site, "windows")["blockedBy"]


def test_a_ring_is_refused_with_its_members_and_the_form_stays(site):
    seen = act(site, ("left", "b"), "clear", ("enter",), wanted="cycle")
    assert "Close the walls →" in seen and "What does it wait for?" in seen
    assert task(site, "wall")["blockedBy"] == ["wires", "pipes"]


def test_a_task_is_held_and_resumed(site):
    act(site, ("h",), "rain", ("enter",), wanted="held")
    assert task(site, "windows")["hold"] == "rain"
    act(site, ("4", "home", "down", "full_stop"), ("enter",), wanted="resumed")
    assert "hold" not in task(site, "windows")


def test_a_note_is_added(site):
    act(site, ("m",), "seals too", ("enter",), wanted="changed")
    assert task(site, "windows")["notes"][0]["text"] == "seals too"


def test_an_edit_sends_what_was_changed_alone(site):
    before = task(site, "windows")
    act(site, ("e", "end"), "!", ("ctrl+s",), wanted="changed")
    after = task(site, "windows")
    assert after["subject"] == before["subject"] + "!"
    assert {key for key in after if after[key] != before.get(key)} == {"subject", "updatedAt", "rev"}


def test_an_edit_of_nothing_writes_nothing(site):
    before = (site.path / "windows.json").read_bytes()

    async def do():
        async with shown(site) as (wall, pilot):
            await press(pilot, "e")
            await until(pilot, lambda: isinstance(wall.screen, Form))
            await press(pilot, "ctrl+s")
            await until(pilot, lambda: not isinstance(wall.screen, Form))

    asyncio.run(do())
    assert (site.path / "windows.json").read_bytes() == before


def test_a_new_task_is_made_and_an_empty_one_is_not(site):
    act(site, ("n", "enter"), wanted="New task")
    act(site, ("n",), "Sweep the stairs", ("enter",), wanted="Sweep the stairs: created")
    assert task(site, "colour")["subject"] != "Sweep the stairs"
    assert [path for path in site.path.glob("*.json") if "Sweep the stairs" in path.read_text()]


def test_the_menu_offers_what_is_legal_and_takes_a_task_over(site):
    seen = act(site, ("right", "full_stop"), wanted="Take over")
    assert "Complete" not in seen.split("Take over")[1].split("q quit")[0]
    act(site, ("right", "full_stop"), ("enter",), "she is ill", ("enter",), wanted="Run the wires: claimed")
    assert task(site, "wires")["owner"] == "user"


def test_a_task_that_others_wait_for_is_cancelled_once_it_is_said_what_becomes_of_them(site):
    async def do():
        async with shown(site) as (wall, pilot):
            await press(pilot, "left", "full_stop")
            await until(pilot, lambda: isinstance(wall.screen, Menu))
            await press(pilot, "end", "enter")
            await until(pilot, lambda: "It stays on the board" in screen(wall))
            await press(pilot, "enter")
            await until(pilot, lambda: "Tasks wait for it" in screen(wall))
            assert task(site, "wall")["status"] == "pending"
            await press(pilot, "enter")
            await until(pilot, lambda: "Close the walls: cancelled" in screen(wall))

    asyncio.run(do())
    assert task(site, "wall")["status"] == "cancelled" and task(site, "paint")["blockedBy"] == ["colour"]


@pytest.mark.parametrize(("key", "said"), [("m", "changed"), ("d", "Nobody holds it")])
def test_what_becomes_of_a_form_that_was_closed_while_it_was_sent_is_still_said(site, key, said):
    async def do():
        async with shown(site) as (wall, pilot):
            with site.by("ann").store.write():
                await press(pilot, key, "x", "enter", "escape")
                await until(pilot, lambda: not isinstance(wall.screen, Form))
                assert said not in screen(wall)
            await until(pilot, lambda: said in screen(wall))

    asyncio.run(do())


def test_everything_of_a_session_is_given_back(site):
    act(site, ("3", "R"), "gone", ("enter",), wanted="At work 2")
    assert task(site, "wires")["status"] == "pending"


def test_a_refusal_says_what_is_in_the_way_and_the_way_out(site):
    seen = act(site, ("left", "c"), wanted="Blocked by")
    assert "Run the wires" in seen and "→ " in seen


def test_every_key_of_an_act_is_that_of_the_page():
    assert " ".join(KEYS) == "c d a r k b h m e"


# What is hostile, and what is large

HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]x[/] [@click=app.quit]q[/] \u202eevil\u2066 \x9b2J\r"


def test_no_text_of_a_task_reaches_the_terminal_raw_or_becomes_markup(site):
    path = site.path / "windows.json"
    evil = {"subject": HOSTILE, "description": HOSTILE, "labels": [HOSTILE], "result": HOSTILE, "question": HOSTILE,
            "options": [HOSTILE], "notes": [{"at": HOSTILE, "by": HOSTILE, "text": HOSTILE}], "metadata": {HOSTILE: HOSTILE},
            "createdBy": HOSTILE, HOSTILE: HOSTILE}  # fmt: skip
    path.write_text(json.dumps(json.loads(path.read_text()) | evil))
    other = site.path / "doors.json"
    other.write_text(json.dumps(json.loads(other.read_text()) | {"owner": HOSTILE, "hold": HOSTILE}))
    seen = []

    async def look():
        async with shown(site, (120, 40)) as (wall, pilot):
            for keys in (("1",), ("2",), ("3",), ("4",), ("1", "enter"), ("pagedown",), ("escape", "full_stop"), ("escape", "e"),
                         ("escape", "a"), ("escape", "c"), ("r",), ("escape", "question_mark")):  # fmt: skip
                await press(pilot, *keys)
                for _ in range(8):
                    await pilot.pause(0.01)
                    seen.append(screen(wall))

    asyncio.run(look())
    shown_raw = {c for text in seen for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")}
    assert shown_raw == set()
    assert any("[bold]x[/]" in text for text in seen) and any("\\x1b[31m" in text for text in seen)


@pytest.mark.slow
def test_of_five_thousand_tasks_only_those_in_sight_are_built(site):
    user = site.by()
    user.create([Draft(subject=f"任务 {n}", id=f"n-{n}", blocked_by=(f"n-{n - 1}",) if n else ()) for n in range(5000)])

    async def look():
        async with shown(site) as (wall, pilot):
            await press(pilot, "left", "end")
            assert wall.chosen and "Blocked 5006" in screen(wall)
            await press(pilot, "2", "end", "pageup", "home", "minus", "0")
            await until(pilot, lambda: "任务 9" in screen(wall) or "Run the wires" in screen(wall))
            return max(len(items._drawn) for items in wall.query(Items))

    assert asyncio.run(look()) < 200


# The command


def command(*words, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TASKWALL")}
    return [sys.executable, "-m", "taskwall", *words], clean | {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | env


def in_terminal(argv, env, leave=lambda terminal, process: os.write(terminal, b"q")):
    """Run it in a terminal of its own, and leave it once it shows something. What it printed, and its exit status."""
    outer, inner = pty.openpty()
    with subprocess.Popen(argv, stdin=inner, stdout=inner, stderr=inner, env=env) as process:
        os.close(inner)
        printed = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(outer, 65536):
                printed += chunk
                if b"quit" in printed and leave:
                    leave(outer, process)
                    leave = None
        os.close(outer)
    return printed.decode(errors="replace"), process.returncode


def test_the_command_shows_the_board_until_it_is_left(site):
    argv, env = command("--board", str(site.path), "tui")
    printed, status = in_terminal(argv, env)
    assert status == 0 and "windows" in printed and "Traceback" not in printed


def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(site):
    argv, env = command("--board", str(site.path), "tui")
    printed, status = in_terminal(argv, env, lambda _, process: process.terminate())
    assert status == 128 + signal.SIGTERM and "\x1b[?1049l" in printed and "Traceback" not in printed


def test_without_a_terminal_it_says_what_prints_the_board(site):
    argv, env = command("--board", str(site.path), "tui")
    done = subprocess.run(argv, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "taskwall list" in done.stderr and not done.stdout


def test_without_textual_it_says_how_to_install_it(site):
    code = "import sys; sys.modules['textual'] = None; from taskwall.faces.cli.main import run; run()"
    _, env = command()
    printed, status = in_terminal([sys.executable, "-c", code, "--board", str(site.path), "tui"], env)
    assert status == 2 and "pip install 'taskwall[tui]'" in printed


def test_a_board_that_is_not_there_is_refused_before_the_screen_is_taken(tmp_path):
    argv, env = command("--board", str(tmp_path), "tui")
    printed, status = in_terminal(argv, env)
    assert status == 2 and "there is no board" in printed and "\x1b[?1049h" not in printed
