"""What is derived from the verbs: schemas for agents, the repair of arguments, the JSON envelope, the lines of text."""

import json

import pytest
from conftest import add, ids, open_board

from taskwall import verbs  # noqa: F401 - registers them
from taskwall.core import refusals, rules
from taskwall.core.errors import EXITS, Refused
from taskwall.envelope import dumps, envelope, refusal_envelope
from taskwall.registry import VERBS, bind, call, draft, schema, tools, verb
from taskwall.render import refusal, text
from taskwall.stores.memory import MemoryStore

SHOWN = {
    "create_task": "subject description blockedBy parent priority owner products checks",
    "create_tasks": "tasks",
    "list_tasks": "state text after",
    "get_task": "task_id",
    "next_actionable": "",
    "claim_task": "task_id",
    "complete_task": "task_id result",
    "release_task": "task_id reason failed",
    "update_task": "task_id subject description priority addBlockedBy removeBlockedBy note",
    "ask_person": "task_id question options",
}
REQUIRED = {
    "create_task": ["subject"],
    "create_tasks": ["tasks"],
    "get_task": ["task_id"],
    "complete_task": ["task_id"],
    "update_task": ["task_id"],
    "ask_person": ["task_id", "question"],
}


@pytest.fixture
def board(clock):
    return open_board(MemoryStore(monotonic=clock.monotonic), clock=clock)


@pytest.fixture
def user(board, clock):
    return open_board(board.store, "user", clock=clock)


# Schemas


def check_object(found, depth=0):
    """Only what every client accepts (reference/clients.md section 1)."""
    assert set(found) - {"description"} == {"type", "properties", "required", "additionalProperties"}
    assert (found["type"], found["additionalProperties"]) == ("object", False)
    assert set(found["required"]) <= set(found["properties"])
    for given in found["properties"].values():
        check_property(given, depth)


def check_property(given, depth):
    if "description" in given:
        assert given["description"].strip()
        assert "\n" not in given["description"]
    kinds = {"string": {"enum"}, "integer": set(), "boolean": set(), "array": {"items"}}
    assert set(given) <= {"type", "description"} | kinds[given["type"]]
    if given["type"] == "array":
        if given["items"]["type"] == "object":
            assert depth == 0, "objects in arrays are flat"
            check_object(given["items"], depth + 1)
        else:
            assert given["items"] == {"type": "string"}


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool["name"])
def test_every_schema_is_of_the_safe_dialect(tool):
    assert set(tool) == {"name", "description", "inputSchema"}
    assert tool["name"].replace("_", "").isalpha()
    assert tool["name"].islower()
    assert len(tool["name"]) <= 40
    assert 10 < len(tool["description"]) < 1000
    check_object(tool["inputSchema"])
    assert all("description" in given for given in tool["inputSchema"]["properties"].values())


def test_verbs_that_are_no_tools_have_safe_schemas_but_for_numbers():
    for found in VERBS.values():
        assert schema(found)["type"] == "object"
        assert all(param.doc for param in found.params)


def test_the_ten_tools_show_exactly_what_the_design_says():
    assert {t["name"]: " ".join(t["inputSchema"]["properties"]) for t in tools()} == SHOWN
    assert {t["name"]: r for t in tools() if (r := t["inputSchema"]["required"])} == REQUIRED
    item = tools(("create_tasks",))[0]["inputSchema"]["properties"]["tasks"]["items"]
    assert list(item["properties"]) == ["ref", "subject", "description", "blockedBy", "parent"]


def test_the_ten_tools_together_are_at_most_4608_bytes():
    assert len(json.dumps(tools()).encode()) <= 4608


def test_a_verb_cannot_take_what_no_schema_can_say():
    for kind in ("dict[str, str]", "int | str", "list[int]", "Task"):

        def strange(board, value):
            """Strange.

            value: odd
            """

        strange.__annotations__ = {"value": kind}
        with pytest.raises(TypeError, match="cannot take"):
            verb()(strange)
    assert "strange" not in VERBS


def test_every_parameter_must_be_described():
    def untold(board, value):
        """Untold."""

    untold.__annotations__ = {"value": "str"}
    verb()(untold)
    with pytest.raises(KeyError):
        VERBS.pop("untold").params


# Arguments


@pytest.mark.parametrize(
    ("name", "given", "bound"),
    [
        ("get_task", {"id": "t1"}, {"task_id": "t1"}),
        ("get_task", {"taskId": 1}, {"task_id": "1"}),
        ("claim_task", {}, {}),
        ("claim_task", None, {}),
        ("claim_task", "", {}),
        ("claim_task", {"task_id": None}, {}),
        ("claim_task", {"task_id": ""}, {}),
        ("claim_task", '{"task_id": "t1"}', {"task_id": "t1"}),
        ("create_task", {"title": "s", "blocked_by": "a"}, {"subject": "s", "blocked_by": ["a"]}),
        ("create_task", {"subject": "s", "blockers": ["a", "b"]}, {"subject": "s", "blocked_by": ["a", "b"]}),
        ("create_task", {"subject": "s", "depends_on": "a, b"}, {"subject": "s", "blocked_by": ["a", "b"]}),
        ("create_task", {"subject": "s", "blockedBy": '["a", "b"]'}, {"subject": "s", "blocked_by": ["a", "b"]}),
        ("create_task", {"subject": "s", "blockedBy": None}, {"subject": "s"}),
        ("create_task", {"subject": "s", "blockedBy": [1, "2"]}, {"subject": "s", "blocked_by": ["1", "2"]}),
        ("create_task", {"subject": "s", "priority": "1"}, {"subject": "s", "priority": 1}),
        ("create_task", {"subject": "s", "priority": "high"}, {"subject": "s", "priority": 1}),
        ("create_task", {"subject": "s", "priority": 3.0}, {"subject": "s", "priority": 3}),
        ("update_task", {"id": "t", "addBlockedBy": "a"}, {"task_id": "t", "add_blocked_by": ["a"]}),
        ("update_task", {"id": "t", "blockedBy": ["a"]}, {"task_id": "t", "add_blocked_by": ["a"]}),
        ("release_task", {"task_id": "t", "failed": "true"}, {"task_id": "t", "failed": True}),
        ("release_task", {"task_id": "t", "failed": False}, {"task_id": "t", "failed": False}),
        ("list_tasks", {"status": "done"}, {"state": ["done"]}),
        ("complete_task", {"task_id": "t", "summary": "ok"}, {"task_id": "t", "result": "ok"}),
    ],
)
def test_arguments_are_taken_kindly(name, given, bound):
    assert bind(VERBS[name], given) == bound


def refused(function, *arguments):
    with pytest.raises(Refused) as error:
        function(*arguments)
    assert error.value.code == "invalid"
    return error.value


def test_what_cannot_be_meant_is_refused_with_what_can():
    assert "it takes task_id" in refused(bind, VERBS["get_task"], {"task_id": "t", "colour": "red"}).next
    assert "needs task_id" in refused(bind, VERBS["get_task"], {}).message
    for limit in (float("inf"), float("nan"), 1.5, "many", True, [3]):
        told = refused(bind, VERBS["list_tasks"], {"limit": limit}).message
        assert told == f"list_tasks: limit is {str(limit)!r}, must be a whole number"
    told = refused(bind, VERBS["release_task"], {"task_id": "t", "failed": "perhaps"}).message
    assert told == "release_task: failed is 'perhaps', must be true or false"
    for name, given in [
        ("get_task", {"task_id": {"a": 1}}),
        ("get_task", {"task_id": ["a"]}),
        ("get_task", "not json"),
        ("get_task", [1]),
        ("create_task", {"subject": "s", "priority": "soon"}),
        ("create_task", {"subject": "s", "priority": 1.5}),
        ("create_task", {"subject": "s", "priority": True}),
        ("create_task", {"subject": "s", "blockedBy": [{"id": 1}]}),
        ("create_task", {"subject": "s", "blockedBy": "[broken"}),
        ("release_task", {"task_id": "t", "failed": "maybe"}),
        ("create_tasks", {"tasks": [1]}),
        ("create_tasks", {"tasks": [{"ref": "a"}]}),
        ("create_tasks", {"tasks": [{"subject": "s", "colour": "red"}]}),
        ("create_tasks", {"tasks": "[["}),
    ]:
        assert refused(bind, VERBS[name], given).next


def test_an_unknown_tool_offers_the_near_one(board):
    error = refused(call, board, "create_taks", {})
    assert "did you mean create_task" in error.next
    assert all(name in error.next for name in SHOWN)


def test_status_is_not_set_but_by_the_verbs_that_change_it(board):
    add(board, "t")
    error = refused(call, board, "update_task", {"task_id": "t", "status": "done"})
    assert "complete_task" in error.next


def test_ids_come_in_every_form_that_models_write(board):
    add(board, "1", subject="the only one")
    add(board, "task_8k2m4x7q9z")
    for name in ("1", "#1", "task_1", 1, " 1 ", '"1"', "the only one", "THE ONLY ONE"):
        assert call(board, "get_task", {"task_id": name}).row.task.id == "1"
    for name in ("task_8k2m", "7q9z", "TASK_8K2M", "task_8k2m…"):
        assert call(board, "get_task", {"task_id": name}).row.task.id == "task_8k2m4x7q9z"


def test_a_plan_is_taken_as_a_list_an_object_or_text(board):
    plan = [{"ref": "a", "title": "first"}, {"ref": "b", "subject": "then", "depends_on": "a"}, "only a subject"]
    for given in ({"tasks": plan}, plan, json.dumps(plan), {"tasks": json.dumps(plan)}):
        made = call(board, "create_tasks", given)
        assert made.rows[1].task.blocked_by == (made.rows[0].task.id,)
    assert draft({"subject": "s", "labels": "a,b", "priority": "urgent"}).labels == ("a", "b")


# Envelopes


def data(answer):
    found = json.loads(dumps(envelope(answer)))
    assert (found["v"], found["ok"], set(found)) == (1, True, {"v", "ok", "data"})
    return found["data"]


def test_every_answer_has_its_shape(board, user):
    one = data(call(board, "create_task", {"subject": "s", "id": "t"}))
    assert (one["task"]["id"], one["task"]["state"], one["task"]["blockedBy"], next(iter(one["task"]))) == (
        "t",
        "ready",
        [],
        "id",
    )
    many = data(call(board, "create_tasks", [{"ref": "a", "subject": "a"}, {"subject": "b", "blockedBy": "a"}]))
    assert ([t["state"] for t in many["tasks"]], many["more"]) == (["ready", "blocked"], 0)
    assert "task" not in many
    claimed = data(call(board, "claim_task", {"task_id": "t"}))
    assert (claimed["task"]["token"], claimed["task"]["state"], claimed["unblocked"]) == ("t#1", "in_progress", [])
    asked = data(call(board, "ask_person", {"task_id": "t", "question": "Which?"}))
    assert (asked["task"]["id"], asked["task"]["state"]) == ("t", "blocked")
    question = asked["also"][0]["id"]
    answered = data(user.answer(question, "this"))
    assert [t["id"] for t in answered["unblocked"]] == ["t"]
    listed = data(call(board, "list_tasks", {}))
    assert {"tasks", "more"} <= set(listed)
    shown = data(call(board, "get_task", {"task_id": "t"}))
    assert {"task", "blockers", "children", "dependents", "would_unblock", "claim"} <= set(shown)
    offered = data(call(board, "next_actionable", {}))
    assert {"tasks", "more", "waiting"} <= set(offered)
    reasons = data(call(board, "why", {"task_id": many["tasks"][1]["id"]}))
    assert reasons["task"]["reasons"][0]["how"] == "open"
    assert data(call(board, "graph", {}))["edges"] == [[many["tasks"][0]["id"], many["tasks"][1]["id"]]]
    assert {"at", "by", "verb", "task"} <= set(data(call(board, "history", {}))["events"][0])
    assert data(call(board, "release_task", {"session": "nobody"})) == {"session": "nobody", "tasks": [], "more": 0}


def test_a_refusal_has_its_shape(board):
    add(board, "a")
    add(board, "b", "a")
    with pytest.raises(Refused) as error:
        call(board, "claim_task", {"task_id": "b"})
    found = refusal_envelope(error.value)
    assert (found["v"], found["ok"], set(found["error"])) == (1, False, {"code", "message", "task", "by", "next"})
    assert (found["error"]["code"], found["error"]["task"], found["error"]["by"]) == ("blocked", "b", ["a"])


def test_every_refusal_has_a_code_with_an_exit_status():
    assert refusals.Blocked in (kinds := Refused.__subclasses__())
    assert {kind.code for kind in kinds} == set(EXITS)
    assert all(kind.__doc__ and kind("x").exit == EXITS[kind.code] for kind in kinds)


def test_json_escapes_what_is_not_safe_to_print(board):
    add(board, "t", description="\x1b[31mred\u202e \u2028")
    out = dumps(envelope(board.get("t")))
    assert out.isprintable()
    assert json.loads(out)["data"]["task"]["description"] == "\x1b[31mred\u202e \u2028"


# Text


def test_text_is_in_the_words_of_the_lessons(board):
    assert text(board.list()).startswith("No tasks. Use create_task")
    created = text(call(board, "create_task", {"subject": "setup database schema", "id": "task_1"}))
    assert created == "Created task_1: setup database schema"
    created = text(
        call(board, "create_task", {"subject": "create API endpoints", "id": "task_2", "blockedBy": "task_1"})
    )
    assert created == "Created task_2: create API endpoints (blockedBy: task_1)"
    assert text(board.list()).splitlines() == [
        "[ ] task_1: setup database schema [pending]",
        "[ ] task_2: create API endpoints [pending] blockedBy=task_1",
    ]
    with pytest.raises(Refused) as error:
        call(board, "claim_task", {"task_id": "task_2"})
    assert refusal(error.value).splitlines()[0] == "Blocked by: task_1"
    assert text(board.claim("task_1")).splitlines()[0] == "Claimed task_1 (setup database schema)"
    assert text(board.list()).splitlines()[0] == "[>] task_1: setup database schema [in_progress] owner=agent"
    assert text(board.complete("task_1")).splitlines() == [
        "Completed task_1 (setup database schema)",
        "Unblocked:",
        "- task_2: create API endpoints",
    ]
    assert text(board.list()).splitlines()[-1] == "1 finished"
    assert (
        text(board.list(everything=True)).splitlines()[0] == "[x] task_1: setup database schema [completed] owner=agent"
    )


def test_a_long_list_is_capped_and_its_cursor_leads_through_all_of_it(board):
    for number in range(93):
        add(board, f"t{number}")
    seen, after = [], ""
    while page := board.list(after=after).rows:
        seen, after = seen + ids(page), page[-1].task.id
    assert seen == [f"t{n}" for n in range(93)]
    assert text(board.list()).splitlines()[-1] == "… 43 more: list --after t49 (with the same filters)"


def test_what_is_stale_is_not_said_to_have_lost_its_lease_alone(board, clock):
    add(board, "t")
    board.claim("t", ttl=1)
    clock.sleep(minutes=2)
    assert text(board.list()).endswith("stale: its holder is gone or its lease ran out")


def test_no_escape_of_a_task_reaches_a_terminal(board):
    add(board, "t", description="\x1b[2J\u202ewipe", owner="a\u200fb")
    board.update("t", rules.Edit(note="\x9b31m"))
    for answer in (board.get("t"), board.list(), board.why("t"), board.graph(), board.history("t")):
        assert all(c == "\n" or c.isprintable() for c in text(answer))
