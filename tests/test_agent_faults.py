"""What endpoints do wrong, one by one and mixed, over both protocols, streaming or not: the agent outlives it."""

import json
import os
import random
import re
import socket
import threading
import time

import pytest

from endpoint import (
    WIRES,
    Endpoint,
    anthropic_flaw,
    cut,
    dropped,
    error_in_200,
    events,
    openai_flaw,
    refuse,
    results,
    told,
    torn,
    unfinished,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from taskwall import config
from taskwall.agent import run
from taskwall.agent.anthropic_wire import request as anthropic_request
from taskwall.agent.compaction import compacted
from taskwall.agent.http import HTTPModel, retry_after
from taskwall.agent.messages import unwrapped
from taskwall.agent.models import Endpoint as Place
from taskwall.agent.answers import ModelError, Transient
from taskwall.agent.patience import FIRST_PATIENCE, LONGEST_WAIT, PATIENCE, Patient
from taskwall.agent.scripted import calls, say, send, task_id
from taskwall.core.errors import Invalid
from taskwall.core.model import Actor

pytestmark = pytest.mark.slow


MADE = ("create_task", {"subject": "wire the house"})


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """Neither a configured model, nor a client around the tests, nor a proxy; an empty board that is quick."""
    for name in list(os.environ):
        if name.startswith(("TASKWALL_", "OPENAI_", "DEEPSEEK_", "ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / ".tasks").mkdir()
    (tmp_path / ".tasks" / "board.toml").write_text('durability = "fast"')


@pytest.fixture(params=[pytest.param(w, marks=[pytest.mark.slow] if w != WIRES[0] else []) for w in WIRES])
def wire(request):
    return request.param


@pytest.fixture
def play(tmp_path, wire):
    """`play(*steps, **options)`: the agent's exit status and what the endpoint was asked."""

    def play(*steps, strict=(), **options):
        with Endpoint(steps, wire, strict=strict) as model:
            given = {"goal": "go", "base_url": model.url, "model": "scripted", **options}
            status = run(config.find_board(str(tmp_path), {}, str(tmp_path)), **given)
        assert model.flaws == []
        return status, model.requests

    return play


def board_of(folder):
    return config.open_board(config.find_board(str(folder), {}, str(folder)), Actor("user", "user"), make=True)


def tasks_of(folder):
    return [row.task for row in board_of(folder).list(everything=True).rows]


def entries_of(folder):
    [path] = (folder / ".tasks" / ".local" / "runs").glob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def claimed(*steps):
    made = lambda seen: calls(
        ("claim_task", {"task_id": task_id([{"content": "\n".join(texts(seen))}], MADE[1]["subject"])})
    )
    return calls(MADE), made, *steps


def texts(messages):
    return told({"messages": messages})


def assert_released(folder, why):
    [task] = tasks_of(folder)
    assert (task.status, task.owner, task.epoch) == ("pending", None, 1)
    assert why in task.notes[-1]["text"]


# 1: calls as text


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "create_task", "arguments": {"subject": "wire the house"}}',
        'Sure.\n```json\n{"name": "create_task", "arguments": {"subject": "wire the house"}}\n```\nDone.',
        '```\n[{"name": "create_task", "parameters": {"subject": "wire the house"}}]\n```',
        '<tool_call>\n{"name": "create_task", "arguments": "{\\"subject\\": \\"wire the house\\"}"}\n</tool_call>',
        '<think>So {"name": "x"}, hm.</think>\n{"name": "create_task", "arguments": {"subject": "wire the house"}}',
        '<tool_call>{"name": "create_task", "arguments": {"subject": "wire the house"}}}</tool_call>',
        '{"name": "next_actionable", "arguments": {}}\n{"name": "create_task", "arguments": {"subject": "wire the house"}}',
        '<tool_call>{"function": {"name": "create_task", "arguments": {"subject": "wire the house"}}}',
    ],
)
def test_calls_written_as_text_are_carried_out(play, tmp_path, text):
    status, requests = play(say(text), say("done"))
    assert status == 0 and results(requests[-1])[-1].startswith("Created task_")
    assert [task.subject for task in tasks_of(tmp_path)] == ["wire the house"]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "create_task", "arguments": {"subject": "wire the ho',
        '```json\n{"name": "create_task", "arguments": {"subject": "wire the ho',
        '{"name": "create_task", "arguments": {subject: wire the house}}',
    ],
)
def test_a_written_call_that_is_broken_is_answered_and_not_taken_for_words(play, tmp_path, text):
    status, requests = play(cut(say(text)), say("done"))
    assert status == 0 and "create_task was not run: its arguments were cut off" in results(requests[-1])[0]
    assert tasks_of(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bob", "arguments": {"age": 3}}',
        'Use `{"name": "create_task", "arguments": {"subject": "x"}}` for that.',
        '```json\n{"name": "create_task"}\n```',
        '```json\n{"subject": "create_task"}\n```',
        "```json\n[1, 2]\n```",
        "[[" * 50_000,
    ],
)
def test_json_that_is_no_call_of_a_known_tool_is_an_answer_in_words(play, tmp_path, text):
    status, requests = play(say(text))
    assert (status, len(requests), tasks_of(tmp_path)) == (0, 1, [])


def test_text_is_no_call_beside_a_native_one(play, tmp_path):
    written = '{"name": "create_task", "arguments": {"subject": "twice"}}'
    play({**calls(("list_tasks", {})), "content": written}, say("done"))
    assert tasks_of(tmp_path) == []


def test_a_tool_that_does_not_exist_is_answered_with_the_right_one(play):
    near = say('<tool_call>{"name": "createTask", "arguments": {}}</tool_call>')
    _, requests = play(near, calls(("read-file", {})), say("done"))
    assert "did you mean create_task?" in results(requests[-1])[0]
    assert "did you mean read_file?" in results(requests[-1])[1]


# 2: cut output


@pytest.mark.parametrize("ending", [cut, unfinished])
@pytest.mark.parametrize("arguments", ['{"subject": "wire the ho', ""])
def test_a_call_that_was_cut_off_is_not_run_and_says_so(play, tmp_path, ending, arguments):
    whole, half = ("create_task", {"subject": "whole"}), ("create_task", arguments)
    status, requests = play(ending(calls(whole, half)), say("done"))
    assert status == 0
    first, second = results(requests[-1])
    assert first.startswith("Created task_") and "cut off" in second and "shorter" in second
    assert [task.subject for task in tasks_of(tmp_path)] == ["whole"]


@pytest.mark.parametrize("ending", [cut, unfinished])
def test_text_that_was_cut_off_is_gone_on_with(play, capsys, ending):
    status, requests = play(ending(say("The house has")), say("two floors."))
    assert status == 0 and "cut off" in told(requests[-1])[-1]
    assert "The house has\ntwo floors.\n" in capsys.readouterr().out


def test_text_is_gone_on_with_three_times_at_most(play, capsys):
    status, requests = play(*[cut(say(f"part {n}")) for n in range(9)])
    assert (status, len(requests)) == (1, 4)
    assert "cut off 4 times" in capsys.readouterr().err


# 3: broken arguments


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("", {}),
        ("null", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": 1} and so on', {"a": 1}),
        ('{"a": 1}}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
    ],
)
def test_arguments_are_unwrapped(given, value):
    assert unwrapped(given) == value


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        '{"subject": "wire the house"} I hope that helps!',
        '"{\\"subject\\": \\"wire the house\\"}"',
        '```json\n{"subject": "wire the house"}\n```',
        '{"title": "wire the house", "priority": "high", "blockedBy": ""}',
    ],
)
def test_arguments_in_odd_wrappings_are_understood(tmp_path, arguments):
    for protocol in ("openai-stream", "openai-whole", "anthropic-stream"):
        folder = tmp_path / protocol
        folder.mkdir()
        with Endpoint([calls(("create_task", arguments)), say("done")], protocol) as model:
            board = config.find_board(str(folder), {}, str(folder))
            assert run(board, goal="go", base_url=model.url, model="scripted") == 0
        assert model.flaws == [] and [task.subject for task in tasks_of(folder)] == ["wire the house"]


def test_arguments_that_are_wrong_are_explained(play):
    wrong = calls(
        ("create_task", {"colour": "red"}), ("list_tasks", {"state": {"a": 1}}), ("read_file", {}), ("bash", [])
    )
    _, requests = play(wrong, say("done"))
    unknown, kind, missing, no_object = results(requests[-1])
    assert "does not take 'colour'" in unknown and "it takes subject, description" in unknown
    assert "must be" in kind and "needs path" in missing and "not a JSON object" in no_object


# 4: ids and indexes


def test_ids_that_are_missing_or_repeated_are_made_unique(play):
    twice = calls(("list_tasks", {}), ("next_actionable", {}), ("list_tasks", {"all": True}))
    for call, call_id in zip(twice["tool_calls"], ("same", "same", None), strict=True):
        call["id"] = call_id
    status, requests = play(twice, twice, say("done"))
    assert status == 0 and len(results(requests[-1])) == 6


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def part(arguments, **fields):
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return delta(tool_calls=[{"function": {**name, "arguments": arguments}, **fields}])


@pytest.mark.parametrize(
    "pieces",
    [
        [part('{"subject":', name="create_task", id="a"), part('"x"}'), part('{"subject": "y"}', name="create_task", id="b")],
        [part('{"subject":', name="create_task", index=0), part('"x"}', index=0), part('{"subject": "y"}', name="create_task", index=0)],
        [part("", name="create_task", index=0, id="a"), part('{"subject": "y"}', name="create_task", index=1, id="b"), part('{"subject": "x"}', index=0)],
        [part('{"subject": "x"}', name="create_task", index=0, id="a"), part('{"subject": "y"}', name="create_task", index=0, id="b")],
        [part('{"subject":', name="create_task", index=0, id="a"), part('"x"}', name="create_task", index=0, id="a"), part('{"subject": "y"}', name="create_task", index=1)],
    ],
    ids=["no index", "one index, no ids", "interleaved", "one index", "name repeated"],
)  # fmt: skip
def test_calls_that_stream_in_odd_pieces_are_put_together(tmp_path, pieces):
    with Endpoint([events(*pieces), say("done")]) as model:
        place = config.find_board(str(tmp_path), {}, str(tmp_path))
        assert run(place, goal="go", base_url=model.url, model="scripted") == 0
    assert sorted(task.subject for task in tasks_of(tmp_path)) == ["x", "y"]


# 5: as it came


@pytest.mark.parametrize("mode", ["stream", "whole"])
def test_what_only_this_model_understands_is_sent_back_and_kept_from_others(tmp_path, mode):
    place = config.find_board(str(tmp_path), {}, str(tmp_path))
    answer = calls(
        ("list_tasks", {}), reasoning_content="hm", reasoning_details=[{"index": 0, "type": "x", "data": "d"}]
    )
    answer["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "abc"}}
    silent = calls(("next_actionable", {}), reasoning_content="")
    with Endpoint([answer, silent, say("done")], f"openai-{mode}", strict=["reasoning_content"]) as model:
        assert run(place, goal="go", base_url=model.url, model="one") == 0
    said = [m for m in model.requests[-1]["messages"] if m["role"] == "assistant"]
    assert said[0]["tool_calls"] == answer["tool_calls"]
    assert {k: said[0][k] for k in ("reasoning_content", "reasoning_details")} == {k: answer[k] for k in ("reasoning_content", "reasoning_details")}  # fmt: skip
    assert said[1]["reasoning_content"] == "" and model.flaws == []
    with Endpoint([say("done")], f"openai-{mode}") as other:
        assert run(place, base_url=other.url, model="two", resume="") == 0
    plain = next(m for m in other.requests[0]["messages"] if m["role"] == "assistant")
    assert set(plain) == {"role", "content", "tool_calls"}
    assert set(plain["tool_calls"][0]) == {"id", "type", "function"}


@pytest.mark.parametrize("mode", ["stream", "whole"])
def test_thinking_blocks_are_sent_back_signed_and_kept_from_others(tmp_path, mode):
    place = config.find_board(str(tmp_path), {}, str(tmp_path))
    thought = [
        {"type": "thinking", "thinking": "let me see", "signature": "s=="},
        {"type": "redacted_thinking", "data": "x"},
    ]
    steps = calls(("list_tasks", {}), blocks=thought), say("done")
    with Endpoint(steps, f"anthropic-{mode}", strict=["thinking"]) as model:
        assert run(place, goal="go", base_url=model.url, model="one") == 0
    assert model.requests[1]["messages"][1]["content"][:2] == thought and model.flaws == []
    for protocol in ("anthropic", "openai"):
        with Endpoint([say("done")], f"{protocol}-{mode}") as other:
            assert run(place, base_url=other.url, model="two", resume="") == 0
        assert other.flaws == []
        assert "signature" not in json.dumps(other.requests) and "list_tasks" in json.dumps(
            other.requests[0]["messages"]
        )


# 6: nothing, or the same again


def test_an_empty_answer_is_nudged_once(play, capsys):
    assert play(say(""), say("done"))[0] == 0
    status, requests = play(say(None), calls(("list_tasks", {})), say(""), say("  "), say("not asked"))
    assert (status, len(requests)) == (1, 4)
    assert "nothing, twice" in capsys.readouterr().err


def test_the_same_call_again_and_again_ends_the_run(play, capsys):
    status, requests = play(*claimed(*[calls(("list_tasks", {})) for _ in range(9)]))
    assert (status, len(requests)) == (1, 6)
    assert ["third time" in result for result in results(requests[-1])[-3:]] == [False, False, True]
    assert "the same call 4 times" in capsys.readouterr().err


# 7: asking again, or not


@pytest.mark.parametrize("wire", ["openai-stream", "anthropic-whole"])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_asked_again(play, capsys, status):
    ended, requests = play(refuse(status, "not now", retry_after="0"), say("done"))
    assert (ended, len(requests)) == (0, 2)
    assert f"answered {status}: not now" in capsys.readouterr().err


@pytest.mark.parametrize("wire", ["openai-whole", "anthropic-stream"])
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
def test_what_will_not_pass_gives_the_task_back_with_the_reason(play, tmp_path, status):
    assert play(*claimed(refuse(status, "no such thing")))[0] == 9
    assert_released(tmp_path, f"answered {status}: no such thing")


@pytest.mark.parametrize(
    "words", ["You exceeded your current quota", "monthly spend limit reached", "insufficient_quota: retry in 6s"]
)
def test_a_limit_that_waiting_does_not_lift_is_final(play, tmp_path, words):
    assert play(*claimed(refuse(429, words)))[0] == 9
    assert_released(tmp_path, words)


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit reached, try again in 6s. Add a payment method at https://platform.example/account/billing",
        "You exceeded your current quota. Quota exceeded for requests per minute. Please retry in 2.5s.",
    ],
)
def test_a_limit_that_passes_soon_is_waited_for(play, words):
    assert play(refuse(429, words, retry_after="0"), say("done"))[0] == 0
    assert play(refuse(429, words), say("done"))[0] == 0


def test_a_wait_beyond_our_deadline_is_not_begun(play, tmp_path):
    began = time.monotonic()
    assert play(*claimed(refuse(429, "slow down", retry_after="1209600")))[0] == 9
    assert time.monotonic() - began < 10
    assert_released(tmp_path, "asks to wait 1209600 seconds")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "overloaded_error", "message": "Overloaded"},
        {"code": 502, "message": "Provider returned error"},
        {"code": "server_error", "message": "oops"},
        "something went wrong",
    ],
)
@pytest.mark.parametrize("after", [None, say("I was about to say")])
def test_an_error_inside_a_200_is_asked_again(play, tmp_path, error, after):
    ended, requests = play(error_in_200(error, after), calls(MADE), say("done"))
    assert (ended, len(requests)) == (0, 3)
    assert "about to say" not in json.dumps(requests[-1])
    assert len(tasks_of(tmp_path)) == 1


def test_a_final_error_inside_a_200_is_final(play, tmp_path):
    assert play(*claimed(error_in_200({"type": "authentication_error", "message": "bad key"})))[0] == 9
    assert_released(tmp_path, "bad key")


@pytest.mark.parametrize("fault", [dropped(), torn(calls(MADE)), torn(say("half of a long sentence"))])
def test_a_connection_that_breaks_is_asked_again(play, tmp_path, fault):
    ended, requests = play(fault, calls(MADE), say("done"))
    assert (ended, len(requests)) == (0, 3)
    assert len(tasks_of(tmp_path)) == 1


def test_separators_of_lines_within_words_do_not_break_a_stream(tmp_path, capsys):
    text = json.dumps(delta(content="one\u2028two\x85three 刷漆"), ensure_ascii=False)
    with Endpoint([events(text, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})]) as model:
        place = config.find_board(str(tmp_path), {}, str(tmp_path))
        assert run(place, goal="go", base_url=model.url, model="scripted") == 0
    assert "two" in (out := capsys.readouterr().out) and "three 刷漆" in out


@pytest.mark.parametrize("stream", [[], ["[DONE]"], [{"type": "ping"}], ["{not json"], [{"choices": "no"}]])
def test_a_stream_that_holds_nothing_is_asked_again(tmp_path, stream):
    with Endpoint([events(*stream), say("done")], "openai-stream") as model:
        place = config.find_board(str(tmp_path), {}, str(tmp_path))
        assert run(place, goal="go", base_url=model.url, model="scripted") == 0
    assert len(model.requests) == 2


def test_a_server_that_cannot_stream_is_asked_without(play):
    ended, requests = play(refuse(500, "Cannot use tools with stream"), say("done"))
    assert ended == 0 and [bool(r.get("stream")) for r in requests] == [True, False]


class Turning:
    """A clock that only sleeping turns."""

    def __init__(self):
        self.now, self.slept = 1000.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.mark.slow
def test_waits_grow_and_keep_to_one_deadline():
    clock = Turning()
    with Endpoint([refuse(503, "loading") for _ in range(199)]) as model:
        patient = Patient([http(model.url)], lambda _: None, clock, clock.sleep)
        with pytest.raises(ModelError, match="no time left"):
            patient.answer([{"role": "user", "content": "x"}], [], deadline=float("inf"), say=lambda _: None)
    assert all(0.75 * most <= slept <= most for slept, most in zip(clock.slept, (0.5, 1, 2, 4, 8, 16, 32, 60, 60)))
    assert max(clock.slept) <= LONGEST_WAIT and PATIENCE - 2 * LONGEST_WAIT < sum(clock.slept) <= PATIENCE


def test_an_endpoint_that_wants_to_be_asked_at_once_is_not_asked_without_end():
    clock = Turning()
    with Endpoint([refuse(429, "slow down", retry_after="0") for _ in range(99)]) as model:
        patient = Patient([http(model.url)], lambda _: None, clock, clock.sleep)
        with pytest.raises(ModelError):
            patient.answer([{"role": "user", "content": "x"}], [], deadline=clock() + 60, say=lambda _: None)
    assert clock.slept[0] < 0.1 and len(model.requests) < 30


def test_an_address_where_nothing_answers_is_given_up_soon():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    clock = Turning()
    patient = Patient([http(url)], lambda _: None, clock, clock.sleep)
    with pytest.raises(ModelError, match="cannot be reached"):
        patient.answer([{"role": "user", "content": "x"}], [], deadline=float("inf"), say=lambda _: None)
    assert sum(clock.slept) <= FIRST_PATIENCE


def http(url, model="scripted", wire="openai"):
    return HTTPModel(Place(url, "key", model, wire))


def ask(url, seconds):
    return http(url).answer([{"role": "user", "content": "x"}], [], deadline=time.monotonic() + seconds, say=print)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("text/event-stream", f"data: {json.dumps(delta(content='bla '))}"),
        ("text/event-stream", ": still here"),
        ("application/json", " "),
    ],
)
def test_an_endpoint_that_never_comes_to_an_end_is_stopped(kind, line):
    over = threading.Event()
    with Endpoint([]) as model, pytest.raises(Transient, match="time was over"):
        model.respond = lambda handler, _: endless(handler, kind, line, lambda: over.wait(0.01))
        ask(model.url, 0.3)
    over.set()


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_an_answer_without_end_does_not_fill_the_memory(kind, monkeypatch):
    monkeypatch.setattr("taskwall.agent.http.MAX_ANSWER", 100_000)
    with Endpoint([]) as model, pytest.raises(Transient, match="more than 100000 bytes"):
        model.respond = lambda handler, _: endless(handler, kind, "x" * 10_000, lambda: False)
        ask(model.url, 20)


@pytest.mark.parametrize("streams", [True, False])
def test_an_error_that_is_the_whole_of_a_200_is_understood(streams):
    told = {"object": "error", "message": "no model m", "type": "NotFoundError", "code": 404}
    with Endpoint([events(told)]) as model, pytest.raises(ModelError, match="NotFoundError: no model m") as raised:
        if not streams:
            model.respond = lambda handler, _: send(handler, 200, told)
        ask(model.url, 20)
    assert raised.value.status == 404 and not isinstance(raised.value, Transient)


def endless(handler, kind, line, over):
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.end_headers()
    try:
        while not over():
            handler.wfile.write(f"{line}\n\n".encode())
    except ConnectionError:
        pass
    handler.close_connection = True


def test_retry_after_is_seconds_or_a_date():
    assert retry_after({"retry-after": "7"}) == 7 and retry_after({"retry-after-ms": "1500"}) == 1.5
    assert (
        50
        < retry_after({"retry-after": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))})
        < 70
    )
    assert retry_after({"retry-after": "soon"}) is None and retry_after({}) is None


# 8: too long

TOO_LONG = [
    refuse(400, "This model's maximum context length is 8192 tokens."),
    refuse(413, "request_too_large"),
    refuse(400, "prompt is too long: 205000 tokens > 200000 maximum"),
    refuse(400, "the request exceeds the available context size"),
    refuse(429, "Request too large for gpt-x on tokens per min (TPM): Limit 10000, Requested 20000"),
    error_in_200({"code": 400, "message": "The input token count exceeds the maximum number of tokens"}),
]


@pytest.mark.parametrize("fault", TOO_LONG)
def test_a_conversation_that_is_too_long_is_shortened_and_asked_once_more(play, tmp_path, fault):
    work = [calls(("write_file", {"path": f"{n}", "content": f"{n}" * 400})) for n in range(8)]
    ended, requests = play(*claimed(*work, fault, say("done")), goal="build the house")
    assert ended == 0
    before, after = requests[-2], requests[-1]
    assert len(json.dumps(after)) < len(json.dumps(before))
    assert "build the house" in told(after)[0]
    note = told(after)[1]
    assert "too long" in note and "wire the house" in note and f"You hold:\n- {tasks_of(tmp_path)[0].id}#1" in note
    assert results(after) == results(before)[-len(results(after)) :] and 0 < len(results(after)) < len(results(before))
    log = entries_of(tmp_path)
    shorter = next(entry for entry in log if "compacted" in entry)
    assert shorter["compacted"] > 0
    assert (
        sum('"path": "0"' in json.dumps(e.get("message", "")).replace("\\", "") for e in log) == 1
    )  # what was dropped


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3_000), st.booleans()), max_size=12))
def test_a_shortened_conversation_never_parts_a_call_from_its_result(turns):
    messages = [{"role": "system", "content": "rules"}, {"role": "user", "content": "goal"}]
    for number, (made, length, notice) in enumerate(turns):
        made = [{"id": f"{number}-{n}", "function": {"name": "x", "arguments": "{}"}} for n in range(made)]
        messages.append({"role": "assistant", "content": "words", **({"tool_calls": made} if made else {})})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "r" * (length + 1)} for call in made]
        messages += [{"role": "user", "content": "notice"}] if notice or not made else []
    shorter = compacted(messages, "NOTE")
    assert openai_flaw({"messages": shorter}) is None
    assert anthropic_flaw(anthropic_request("m", "m", shorter, [])) is None
    assert shorter[:2] == messages[:2] and len(json.dumps(shorter)) <= len(json.dumps(messages)) + 50
    kept = [m for m in shorter[2:] if m["content"] != "NOTE"]
    assert [m["role"] for m in kept] == [m["role"] for m in messages[len(messages) - len(kept) :]]


def test_a_conversation_that_cannot_be_shortened_ends_the_run(play, tmp_path):
    assert play(*claimed(TOO_LONG[0], TOO_LONG[0], say("not asked")))[0] == 9
    assert_released(tmp_path, "maximum context length")


def test_one_long_turn_is_shortened_by_its_results(play, tmp_path):
    (tmp_path / "long").write_text("word " * 2_000)
    many = calls(*[("read_file", {"path": "long", "limit": n}) for n in range(1, 5)])
    ended, requests = play(many, TOO_LONG[0], say("done"))
    assert ended == 0 and all(len(result) <= 1_000 for result in results(requests[-1]))


def test_a_shortened_run_is_resumed_as_it_was(play):
    work = [calls(("write_file", {"path": f"{n}", "content": "x" * 400})) for n in range(8)]
    _, requests = play(*work, TOO_LONG[0], say("done"))
    _, later = play(say("done"), resume="", goal=None)
    assert told(later[0])[: len(told(requests[-1]))] == told(requests[-1])


# 10: another model, budgets


def test_after_repeated_overload_another_model_is_asked(play):
    busy = [refuse(529, "overloaded", retry_after="0") for _ in range(3)]
    ended, requests = play(calls(MADE), *busy, calls(("list_tasks", {})), say("done"), fallback="stand-in")
    assert ended == 0
    assert [request["model"] for request in requests] == ["scripted"] * 4 + ["stand-in"] * 2


@pytest.mark.parametrize(
    ("options", "why", "turns"),
    [
        ({"max_turns": 3}, "--max-turns", 3),
        ({"max_tokens": 250}, "--max-tokens", 3),
        ({"max_seconds": 1e-9}, "--max-seconds", 0),
        ({"max_cost": 0.00025, "prices": "1/1"}, "--max-cost", 3),
        ({"max_cost": 0.0105, "prices": "0/1000"}, "--max-cost", 2),
    ],
)
def test_a_budget_ends_the_run(play, capsys, options, why, turns):
    steps = [calls(("create_task", {"subject": f"task {n}"})) for n in range(9)]
    ended, requests = play(*steps, **options)
    assert (ended, len(requests)) == (10, turns)
    assert why in capsys.readouterr().err


def test_a_cost_needs_prices(play):
    for options in ({"max_cost": 1}, {"max_cost": 1, "prices": "cheap"}, {"max_tokens": -1}):
        with pytest.raises(Invalid):
            play(**options)


def test_prices_may_come_from_the_environment_and_are_told(play, capsys, monkeypatch):
    monkeypatch.setenv("TASKWALL_PRICES", "10/100")
    play(say("done"))
    assert "1 turn, 100 tokens read and 10 written" in (told := capsys.readouterr().err) and "cost 0.0020" in told


def test_tokens_are_estimated_where_nobody_counts(tmp_path):
    uncounted = events(delta(content="done"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    with Endpoint([uncounted]) as model:
        run(config.find_board(str(tmp_path), {}, str(tmp_path)), goal="go", base_url=model.url, model="scripted")
    used = entries_of(tmp_path)[-1]["end"]["used"]
    assert re.match(r"1 turn, about [1-9][\d,]+ tokens read", used)


# All of it


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_night_of_mixed_faults_ends_with_the_work_done_once(play, tmp_path, seed):
    dice = random.Random(seed)
    faults = [
        refuse(529, "overloaded", retry_after="0"),
        refuse(429, "slow down", retry_after="0"),
        error_in_200({"type": "overloaded_error", "message": "Overloaded"}),
        error_in_200({"code": 502, "message": "bad gateway"}, say("half a")),
        torn(calls(MADE)),
        cut(calls(("create_task", '{"subject": "cut o'))),
        unfinished(calls(("create_task", ""))),
        calls(("createTask", {"subject": "x"})),
        calls(("create_task", {"colour": "red"})),
        say(""),
        say('<tool_call>{"name": "no_such_tool"}</tool_call>'),
        TOO_LONG[0],
    ]
    steps = []
    for number in range(12):
        steps += [dice.choice(faults), calls(("create_task", {"subject": f"task {number}"}))]
    assert play(*steps, say("done"))[0] == 0
    assert [task.subject for task in tasks_of(tmp_path)] == [f"task {number}" for number in range(12)]
