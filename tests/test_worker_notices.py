"""People in the loop: the user's own hook or webhook is told what needs a person, once, and never holds up the work."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from taskwall.core.errors import Invalid
from taskwall.worker.notices import read_notify
from worker_process import DONE, site, until  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

ASK = '[ "$TASKWALL_TASK" = ask ] && exec taskwall ask ask "red or blue?" --option red --option blue\n'


@pytest.fixture
def told(site, tmp_path):
    """The site with a hook that writes down what it is told; `told()`: all of that."""
    heard = tmp_path / "heard"
    hook = site.script(f"cat >> {heard}\necho >> {heard}\n", "hook.sh")
    configure(site, tmp_path, f"command = [{json.dumps(hook)}]")
    site.work()  # what waits already is no news
    return lambda: [json.loads(line) for line in heard.read_text().splitlines()] if heard.exists() else []


def configure(site, tmp_path, *lines):
    path = tmp_path / "config" / "taskwall" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["[notify]", *lines]))
    site.env |= {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_a_question_that_an_agent_asks_is_told_once_with_its_options(site, told):
    site.add("ask")
    site.add("behind", "-b", "ask")
    site.add("easy")
    site.work(status=7, agent=ASK + DONE)
    site.work(status=7)
    (event,) = told()
    assert (event["event"], event["board"]) == ("decision", str(site.board_path))
    assert event["task"]["question"] == "red or blue?" and event["task"]["options"] == ["red", "blue"]
    assert "red or blue?" in event["text"]


def test_the_last_attempt_a_hold_and_the_end_are_told_and_an_ordinary_wait_is_not(site, told):
    site.set("max_attempts = 1")
    site.add("a")
    site.add("b", "-b", "a")
    site.add("c")
    site.run("hold", "c", "材料没到")
    site.work(status=7, agent="exit 1\n")
    assert sorted((e["event"], e["task"]["id"]) for e in told()) == [("attempts", "a"), ("hold", "c")]
    assert "材料没到" in next(e["text"] for e in told() if e["event"] == "hold")
    for name in "ac":
        site.run("resume", name)
    site.work()
    assert [event["event"] for event in told()[2:]] == ["finished"]
    site.work()
    assert len(told()) == 3


def test_what_waits_again_after_it_was_lifted_is_told_again(site, told):
    site.add("a")
    site.run("hold", "a", "stop")
    site.work(status=7)
    site.run("resume", "a")
    site.work(agent='taskwall hold "$TASKWALL_TASK" stop\n', status=7)
    assert [event["event"] for event in told()] == ["hold", "hold"]


def test_what_waits_when_the_first_worker_comes_is_no_news(site, told):
    assert told() == []  # the site was finished, with no task at all
    site.add("a", "--for", "user")
    site.work(status=7)
    assert [event["task"]["id"] for event in told()] == ["a"]


def test_only_the_events_that_the_user_chose_are_told(site, tmp_path, told):
    hook = str(tmp_path / "hook.sh")
    configure(site, tmp_path, f"command = [{json.dumps(hook)}]", 'events = ["finished"]')
    site.add("a", "--for", "user")
    site.work(status=7)
    site.run("answer", "a", "yes")
    site.work()
    assert [event["event"] for event in told()] == ["finished"]


def test_a_webhook_is_posted_the_same(site, tmp_path):
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append((self.headers["Content-Type"], json.loads(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    configure(site, tmp_path, f'webhook = "http://127.0.0.1:{server.server_port}/hook"')
    site.work()
    site.add("a")
    site.work()
    server.shutdown()
    server.server_close()
    ((kind, body),) = bodies
    assert kind == "application/json"
    assert (body["event"], body["text"], body["board"]) == (
        "finished",
        "all 1 tasks are finished",
        str(site.board_path),
    )


@pytest.mark.parametrize(
    "line", ['command = ["no-such-program"]', 'command = ["false"]', 'webhook = "http://127.0.0.1:1/secret-token"']
)
def test_a_hook_that_fails_is_mentioned_and_stops_nothing(site, tmp_path, line):
    configure(site, tmp_path, line)
    site.work()
    site.add("a")
    said = site.work()
    assert "note: the " in said and "of [notify] failed" in said and "secret" not in said
    assert site.task("a")["status"] == "completed"


def test_a_hook_that_hangs_does_not_hold_up_the_work(site, tmp_path):
    gate = tmp_path / "gate"
    hook = site.script(f"while [ ! -e {gate} ]; do sleep 0.05; done\n", "hook.sh")
    configure(site, tmp_path, f"command = [{json.dumps(hook)}]")
    site.work()
    site.add("a", "--for", "user")
    site.add("b")
    worker = site.start()
    until(lambda: site.task("b")["status"] == "completed", of=worker)
    gate.touch()
    assert worker.wait(20) == 7


def test_a_board_never_names_a_hook(site, tmp_path):
    (site.board_path / "board.toml").write_text(f'[notify]\ncommand = ["touch", "{tmp_path}/ran"]\n')
    site.work()
    site.add("a", "--for", "user")
    site.work(status=7)
    assert not (tmp_path / "ran").exists()


def test_marks_that_are_a_link_to_somewhere_else_are_refused(site, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    configure(site, tmp_path, 'command = ["true"]')
    (site.board_path / ".local").mkdir()
    (site.board_path / ".local" / "told").symlink_to(precious)
    assert "is a symbolic link" in site.work(status=2)
    assert [path.name for path in precious.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "text",
    [
        "[notify",
        'notify = "x"',
        '[notify]\ncommand = "rm -rf"',
        "[notify]\ncommand = []",
        '[notify]\nwebhook = "file:///etc/passwd"',
        '[notify]\nevents = ["sneeze"]',
        '[notify]\nwebhok = "https://x"',
    ],
)
def test_settings_with_a_slip_are_refused_at_the_start(tmp_path, text):
    path = tmp_path / "taskwall" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(Invalid) as refusal:
        read_notify({"XDG_CONFIG_HOME": str(tmp_path)})
    assert str(path) in refusal.value.message


def test_no_settings_are_no_hook(tmp_path):
    assert read_notify({"XDG_CONFIG_HOME": str(tmp_path)}) is None
