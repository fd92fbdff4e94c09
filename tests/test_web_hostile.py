"""Whatever a task says is text: on every screen of the page, and in the exported one."""

import html as markup
import json
import re

import pytest
from mcp_process import run
from wall_browser import DESK, browser, expect, go  # noqa: F401 - a fixture
from wall_process import Wall

from boardfiles import Files
from taskwall.board import timestamp, utc_now

SCRIPT = "<script>window.pwned=1</script>"
IMAGE = '"><img src=x onerror="window.pwned=1">'
TURNED = "a\u202eb\x1b[31mc\x00d\u2028e"
LINKS = (
    "[click](javascript:window.pwned=1) [data](data:text/html,<script>window.pwned=1</script>) [x](vbscript:a) ![i](x)"
)
EVIL = f"{SCRIPT}{IMAGE}{{{{7*7}}}} ${{window.pwned=1}} &lt;b&gt; </title></textarea></style>{TURNED}"


def hostile(task_id, **more):
    """The text of a task file with something evil in every key that may hold text."""
    line = EVIL.replace("\u2028", " ")[:190]
    task = {
        "id": task_id,
        "subject": line,
        "description": f"# {EVIL}\n\n- {EVIL}\n\n| {IMAGE} | {SCRIPT} |\n|--|--|\n| a | {IMAGE} |\n\n```html\n{EVIL}\n```\n> {EVIL}\n\n{LINKS}",
        "status": "pending",
        "owner": None,
        "blockedBy": [],
        "labels": [SCRIPT, IMAGE],
        "products": [IMAGE],
        "checks": [SCRIPT],
        "notes": [{"at": EVIL, "by": EVIL, "text": EVIL}],
        "metadata": {SCRIPT: IMAGE},
        "createdAt": SCRIPT,
        "createdBy": IMAGE,
        "evil<b>": SCRIPT,
        "rev": 1,
    }
    return json.dumps(task | more)


@pytest.fixture
def site(tmp_path):
    files = Files(
        tmp_path,
        {
            "a.json": hostile("a", status="in_progress", owner=IMAGE),
            "b.json": hostile("b", blockedBy=["a", IMAGE]),
            "c.json": hostile("c", owner="user", question=EVIL, options=[SCRIPT, IMAGE]),
            "d.json": hostile("d", hold=EVIL),
            "e.json": hostile("e", status="completed", result=EVIL, answer=EVIL, evidence={SCRIPT: [IMAGE]}),
            f"{IMAGE[:8].replace('/', '')}.json": "{broken " + EVIL,
        },
    )
    (files.path / ".local").mkdir()
    claim = {"at": timestamp(utc_now()), "by": EVIL, "session": EVIL, "verb": "claim", "task": "a", "reason": EVIL}
    (files.path / ".local" / "events.jsonl").write_text(
        json.dumps(claim) + "\n" + json.dumps(claim | {"verb": SCRIPT}) + "\n"
    )
    return files


@pytest.mark.slow
def test_no_screen_of_the_page_runs_or_shows_markup_of_a_task(browser, site):  # noqa: F811 - the fixture
    with Wall(site.folder) as wall:
        page = browser.new_context(**DESK).new_page()
        alarms, requests = [], []
        page.on("dialog", lambda dialog: alarms.append(dialog.message))
        page.on("pageerror", lambda error: alarms.append(str(error)))
        page.on("console", lambda message: message.type == "error" and alarms.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(wall.link)
        page.wait_for_selector(".card")
        page.get_by_role("button", name="Show").click()
        for route in ("board", "task/a", "task/b", "task/c", "task/d", "task/e", "inbox", "agents", "graph", "graph/b"):
            go(page, wall.origin, route)
            if route == "agents":
                page.locator("summary").click()
            if route == "graph":
                page.get_by_role("button", name="List").click()
                expect(page.locator("table")).to_contain_text("<script>")
                page.get_by_role("button", name="Picture").click()
            assert page.evaluate("window.pwned") is None, route
            assert page.locator("main img, main script, main iframe").count() == 0, route
            assert page.locator("a[href^='javascript'], a[href^='data'], a[href^='vbscript']").count() == 0, route
            text = page.evaluate("document.body.innerText")
            assert not re.search("[\x00\x1b\u202e]", text), route
        expect(page.locator(".spotlight h2")).to_contain_text("<script>window.pwned=1</script>")
        assert alarms == []
        assert {url.split("/")[2] for url in requests if not url.startswith("blob:")} == {f"127.0.0.1:{wall.port}"}


def tags(page):
    return set(re.findall(r"<(\w+)", page))


def test_the_exported_page_holds_text_alone(site):
    done = run(site.folder, "--board", str(site.folder), "export", "html", "-o", "wall.html")
    assert (done.returncode, done.stderr) == (0, "")
    page = (site.folder / "wall.html").read_text()
    ours = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "p",
        "main",
        "article",
        "code",
        "bdi",
        "pre",
    }
    assert tags(page) <= ours | {"details", "summary", "small", "a"}
    assert markup.escape(SCRIPT) in page
    assert not re.search("[\x00\x1b\u202e\u2028]", page)
    assert set(re.findall(r' (\w[\w-]*)="', page)) <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
    }
    assert not re.search(r'href="(?!#)', page)


@pytest.mark.slow
def test_the_exported_page_is_shown_as_styled_and_asks_for_nothing(browser, site):  # noqa: F811 - the fixture
    run(site.folder, "--board", str(site.folder), "export", "html", "-o", "wall.html")
    page = browser.new_page()
    requests, alarms = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: alarms.append(message.text))
    page.goto(f"file://{site.folder}/wall.html")
    assert page.evaluate("getComputedStyle(document.querySelector('article')).borderRadius") == "8px"
    assert page.evaluate("window.pwned") is None and len(requests) == 1 and alarms == []
    page.close()
