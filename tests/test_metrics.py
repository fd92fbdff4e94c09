"""What Prometheus scrapes: in its format to the letter, behind the token, and nothing of what tasks say."""

import re
from pathlib import Path

import pytest
from mcp_process import run
from prometheus_client.parser import text_string_to_metric_families
from wall_process import Wall

from boardfiles import Files
from conftest import add
from taskwall.board import Board
from taskwall.core.model import Actor
from taskwall.faces.web.metrics import metrics
from taskwall.stores.memory import MemoryStore

TOKEN = "a-token-of-mine_0123456789"
NAME = r"taskwall_[a-z_]+"
LINE = re.compile(
    rf'# HELP {NAME} \S[^\n\\]*|# TYPE {NAME} gauge|{NAME}(\{{[a-z_]+="([^"\\\n]|\\[\\"n])*"\}})? -?[0-9]+(\.[0-9]+)?'
)


def scraped(text):
    """`{name: {labels: value}}`, of text that holds to the format and says nothing twice."""
    lines = text[:-1].split("\n")
    assert text[-1] == "\n" and all(map(LINE.fullmatch, lines)) and len(set(lines)) == len(lines), text
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families) == text.count("# TYPE ") == text.count("# HELP ")
    assert all(family.documentation and family.type == "gauge" for family in families)
    found = {}
    for family in families:
        for sample in family.samples:
            assert sample.name == family.name
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


@pytest.fixture
def on(clock):
    store = MemoryStore(monotonic=clock.monotonic)
    return lambda host, name="ann": Board(store, Actor(name, name, host=host), clock=clock)


def test_an_empty_fleet_and_one_that_cannot_be_read_are_told_apart(on):
    found = scraped(metrics(on("h").fleet()))
    assert found["taskwall_up"] == {(): 1} and found["taskwall_tasks"][("ready",)] == 0
    assert found["taskwall_oldest_decision_seconds"] == {(): 0}
    assert "taskwall_lease_seconds_left_min" not in found and "taskwall_sessions" not in found
    assert scraped(metrics(None)) == {"taskwall_up": {(): 0}}


def test_each_question_has_its_gauge(on, clock):
    ann, bob = on("alpha"), on("beta", "bob")
    for n in range(5):
        add(ann, f"t{n}", subject="SECRET subject", description="SECRET")
    ann.claim("t0"), clock.sleep(minutes=3), ann.complete("t0", result="SECRET")
    ann.claim("t1", ttl=10), bob.claim("t2", ttl=60), bob.claim("t3")
    bob.release("t3", failed=True), bob.ask("t3", "SECRET?")
    clock.sleep(minutes=9)
    text = metrics(ann.fleet())
    found = scraped(text)
    assert found["taskwall_sessions"] == {("alpha",): 1, ("beta",): 1}
    assert found["taskwall_claims"] == {("lapsed",): 0, ("live",): 2, ("by hand",): 0, ("idle",): 0, ("unknown",): 0}
    tasks = {state: n for (state,), n in found["taskwall_tasks"].items() if n}
    assert tasks == {"ready": 1, "in_progress": 2, "waiting": 1, "blocked": 1, "finished": 1}
    one = {name.removeprefix("taskwall_"): values[()] for name, values in found.items() if () in values}
    assert one == {
        "up": 1, "claims_lapsing": 1, "lease_seconds_left_min": 60, "oldest_decision_seconds": pytest.approx(540, abs=6),
        "completed_last_hour": 1, "failed_attempts_last_hour": 1, "created_last_hour": 6,
        "completed_last_day": 1, "failed_attempts_last_day": 1, "created_last_day": 6,
        "claim_to_done_median_seconds": pytest.approx(180, abs=6),
    }  # fmt: skip
    assert "SECRET" not in text and "t1" not in text and "bob" not in text


@pytest.mark.parametrize(
    "host", ['back\\slash "quoted"\nline', "", "主机", "\\n", "a\rb\tc\u2028d", '"} 7\ntaskwall_up 0']
)
def test_whatever_a_host_is_called_it_is_read_as_it_is(on, host):
    add(on(host), "t")
    on(host).claim("t")
    assert scraped(metrics(on(host).fleet()))["taskwall_sessions"] == {(host,): 1}


def test_the_docs_name_every_gauge(on, clock):
    ann = on("h")
    add(ann, "a"), add(ann, "b"), ann.claim("a", ttl=9), ann.claim("b"), ann.complete("b")
    docs = (Path(__file__).parent.parent / "docs" / "fleet.md").read_text()
    named = {*re.findall(r"taskwall_[a-z_]+[a-z]", docs)} - {"taskwall_failed_attempts", "taskwall_created"}
    found = {name for name in scraped(metrics(ann.fleet())) if not re.search("_last_day|(attempts|created)_last", name)}
    assert named == found


# Over HTTP


@pytest.fixture
def files(tmp_path):
    files = Files(tmp_path)
    add(files.board(), "a")
    return files


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.slow
def test_a_scraper_with_a_token_of_its_own_reads_and_one_without_does_not(files):
    with Wall(files.folder, "--read-only", TASKWALL_WEB_TOKEN=TOKEN) as wall:
        assert TOKEN not in wall.link and wall.link.endswith("/#token=$TASKWALL_WEB_TOKEN"), "logs outlive a server"
        told = wall.bare.get("/metrics", headers=bearer(TOKEN))
        assert told.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert scraped(told.text)["taskwall_tasks"][("ready",)] == 1
        for headers in ({}, bearer(TOKEN[:-1]), {"Authorization": TOKEN}, {"Cookie": f"token={TOKEN}"}):
            assert wall.bare.get("/metrics", headers=headers).status_code == 401, headers
        for path in ("/metrics/", "/metrics?token=" + TOKEN, "/%6detrics"):
            assert wall.bare.get(path).status_code in (401, 404), path
        assert wall.client.post("/metrics").status_code == 405
        assert wall.client.get("/metrics", headers={"Host": "evil.example"}).status_code == 421
        assert wall.client.get("/api/lanes").status_code == 200, "it is the token of the whole wall"


@pytest.mark.slow
def test_a_board_that_cannot_be_read_is_not_up(files):
    (files.path / ".local/claims/a.json").write_text(
        '{"claim": {"task": "a", "epoch": 1, "actor": "x", "session": "s", "since": "2026", "reserved": null, "ttl": null,'
        '"open": true, "past": [], "host": "\\ud800"}}'
    )
    with Wall(files.folder) as wall:
        assert scraped(wall.client.get("/metrics").text)["taskwall_up"] == {(): 1}
        files.path.rename(files.path.with_name("away"))
        files.path.write_text("no folder")
        assert scraped(wall.client.get("/metrics").text) == {"taskwall_up": {(): 0}}


@pytest.mark.slow
@pytest.mark.parametrize(
    "token", ["short", "fifteen-letters", "sixteen letters!", "sixteen-letters\n", "sechzehn-zeichen-ä"]
)
def test_a_token_that_is_easily_guessed_or_no_link_can_carry_is_refused(files, token):
    refused = run(files.folder, "--board", str(files.folder), "web", "--port", "0", TASKWALL_WEB_TOKEN=token)
    assert refused.returncode == 2 and "at least 16" in refused.stderr and token.strip() not in refused.stderr


@pytest.mark.slow
def test_what_the_wall_runs_does_not_inherit_its_token(files):
    add(files.board(), "c", checks=('test -z "$TASKWALL_WEB_TOKEN"',))
    assert run(files.folder, "trust", "c", "--yes").returncode == 0
    with Wall(files.folder, TASKWALL_WEB_TOKEN=TOKEN) as wall:
        assert wall.ask("claim_task", task_id="c").json()["ok"]
        assert wall.ask("complete_task", task_id="c").json()["ok"]
