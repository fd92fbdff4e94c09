"""What people and models get wrong or leave out, and what becomes of it: each was once a surprise."""

import json
import re

import pytest
from boardfiles import Files
from conftest import Clock, add, ids, open_board, open_store
from hypothesis import given
from hypothesis import strategies as st

from taskwall import envelope, render, verbs  # noqa: F401 - registers the verbs
from taskwall.core import rules
from taskwall.core.errors import Invalid, Refused, UnknownTask
from taskwall.core.model import Settings
from taskwall.core.refusals import AlreadyResolved, Cycle, NotOwner, OpenDependents, ProductsMissing, Superseded
from taskwall.faces.cli.plan import read_plan
from taskwall.lengths import LEAST, leveled
from taskwall.registry import bind, call, VERBS


@pytest.fixture
def board(board_for):
    return board_for("agent", "s1")


@pytest.mark.parametrize("ttl", [0, -3, float("inf"), float("nan"), 1e300])
def test_a_lease_has_a_possible_length_in_every_verb(board, ttl):
    add(board, "t1")
    with pytest.raises(Invalid, match="lease"):
        board.claim("t1", ttl=ttl)
    board.claim("t1", ttl=5)
    with pytest.raises(Invalid, match="lease"):
        board.heartbeat("t1", ttl=ttl)
    assert board.get("t1").claim["lease"] == "live"


def test_claiming_without_an_id_takes_ones_own_lapsed_claim_anew(board, clock):
    add(board, "t1")
    assert board.claim("t1", ttl=1).row.task.token == "t1#1"
    clock.sleep(minutes=2)
    again = board.claim()
    assert (again.already, again.row.task.token, again.row.task.attempts) == (False, "t1#2", 1)


@pytest.mark.parametrize(
    "verb", ["cancel", "reopen", "answer", "resume", "hold", "update", "release", "complete", "ask"]
)
def test_nothing_is_done_under_a_superseded_token(board, board_for, verb):
    other, person = board_for("other"), board_for("user")
    add(board, "t1")
    board.claim("t1")
    other.claim("t1", steal=True, reason="gone")
    other.release("t1#2")
    arguments = {"answer": ("x",), "ask": ("x?",), "update": (rules.Edit(note="x"),)}.get(verb, ())
    with pytest.raises(Superseded):
        getattr(person, verb)("t1#1", *arguments)
    assert board.get("t1").row.task.status == "pending"


def test_a_token_that_was_never_granted_is_no_key(board):
    add(board, "t1")
    board.claim("t1")
    with pytest.raises(NotOwner, match="no claim that was ever granted"):
        board.complete("t1#9")
    with pytest.raises(UnknownTask):
        board.get("t1#" + "9" * 5000)


def test_two_names_for_one_argument_are_joined_or_refused_but_never_dropped(board):
    add(board, "a1"), add(board, "b1")
    made = call(board, "create_task", {"subject": "x", "blockedBy": ["a1"], "depends_on": "b1"})
    assert made.rows[0].task.blocked_by == ("a1", "b1")
    plan = call(board, "create_tasks", {"tasks": [{"subject": "y", "blockers": "a1", "dependencies": ["b1"]}]})
    assert plan.rows[0].task.blocked_by == ("a1", "b1")
    with pytest.raises(Invalid, match="twice"):
        call(board, "create_task", {"subject": "x", "title": "other"})


def test_a_lone_text_is_one_item_and_only_ids_are_split_at_commas(board):
    assert bind(VERBS["create_task"], {"subject": "s", "checks": 'pytest -k "a,b"'})["checks"] == ['pytest -k "a,b"']
    assert bind(VERBS["ask_person"], {"task_id": "t", "question": "q", "options": "Yes, now"})["options"] == [
        "Yes, now"
    ]
    assert bind(VERBS["create_task"], {"subject": "s", "blockedBy": "a, b"})["blocked_by"] == ["a", "b"]


def test_an_owner_and_a_parent_can_be_taken_away_through_a_call(board):
    add(board, "p1"), add(board, "t1", owner="bob", parent="p1")
    changed = call(board, "update_task", {"task_id": "t1", "owner": "-", "parent": "-"}).row.task
    assert (changed.owner, changed.parent) == (None, None)


@pytest.mark.parametrize("subject", ["fix bug #12", "#7 login", "`foo` fails", "bug#12"])
def test_a_subject_stands_for_its_id_whatever_marks_it_has(board, subject):
    add(board, "t1", subject=subject)
    assert board.get(subject).row.task.id == "t1"
    assert board.claim(subject).row.task.id == "t1"


def test_four_characters_of_a_random_id_are_enough_from_either_end(board):
    add(board, "task_v1p44y6br9"), add(board, "task_fpdnbw1qr0")
    for part in ("v1p4", "task_v1p", "6br9", "V1P4"):
        assert board.get(part).row.task.id == "task_v1p44y6br9"
    with pytest.raises(UnknownTask):
        board.get("v1p")


def test_a_child_of_a_finished_parent_can_be_reopened_and_makes_it_suspect(board):
    add(board, "p1"), add(board, "c1", parent="p1")
    for name in ("c1", "p1"):
        board.claim(name), board.complete(name)
    assert ids(board.reopen("c1").also) == ["p1"]


def test_reopening_a_decision_asks_again_for_whom_it_was(tmp_path):
    store = open_store("files", tmp_path, Clock(), Settings(people=("alice",)))
    board = open_board(store, "alice")
    add(board, "q1", owner="user")
    board.answer("q1", "yes")
    assert board.get("q1").row.task.owner == "alice"
    board.reopen("q1")
    assert board.get("q1").row.task.owner == "user"
    open_board(store, "user").answer("q1", "no")


def test_answering_passes_the_same_gate_as_completing(board_for, tmp_path):
    person = board_for("user")
    add(person, "w1", owner="user", products=("report.pdf",))
    with pytest.raises(ProductsMissing):
        person.answer("w1", "done")
    (tmp_path / "report.pdf").write_text("x")
    assert person.answer("w1", "done").row.state == "completed"


def test_long_chains_are_cut_and_say_so(board):
    chain = [rules.Draft(f"s{n}", id=f"s-{n:03}", blocked_by=(f"s-{n - 1:03}",) if n else ()) for n in range(300)]
    board.create(chain)
    for answer, way in ((board.graph(), "list"), (board.why("s-299"), "why s-")):
        assert (len(answer.steps), answer.more) == (100, 200)
        assert envelope.envelope(answer)["data"]["more"] == 200
        told = render.text(answer)
        lines = re.findall(r"^ *(\d*)(?:: )?\[ \] (s-\d+): .* \[pending\]", told, re.MULTILINE)
        assert f"… {300 - len(lines)} more: taskwall {way}" in told
        assert len(told.encode()) <= render.MOST and len(lines) > 50
        assert [int(depth) for depth, _ in lines if depth] == list(range(13, len(lines)))
    assert [step.depth for step in board.graph().steps] == list(range(100))


def test_a_refusal_names_few_of_many_tasks_in_the_way(board):
    board.create([rules.Draft("first", id="first"), *(rules.Draft(f"s{n}", blocked_by=("first",)) for n in range(300))])
    with pytest.raises(OpenDependents, match="task_[^,]*, … 280 more$") as refusal:
        board.cancel("first")
    assert len(refusal.value.by) == 300


def test_a_plan_that_was_made_before_is_made_again_but_said(board):
    plan = [rules.Draft(" first"), rules.Draft("second")]
    assert board.create(plan).notices == ()
    (notice,) = board.create(plan).notices
    assert notice.endswith("has the subject of the first already; with --key NAME a plan is made once")
    keyed = [draft.replace(key=f"k/{n}") for n, draft in enumerate(plan)]
    assert board.create(keyed).notices == board.create(keyed).notices == board.create(plan[:1]).notices == ()


def test_people_are_told_times_and_lists_as_they_write_them(board, board_for):
    add(board, "t1", owner="")
    call(board, "create_tasks", {"tasks": [{"subject": "s", "id": "s1", "for": "user"}]})
    assert board.get("s1").row.state == "waiting"
    board.update("t1", rules.Edit(labels=("费用", "ui"), metadata={"k": [1]}))
    told = render.text(board.get("t1"))
    assert "\nlabels: 费用, ui\n" in told and '\nmetadata: {"k": [1]}\n' in told
    board.claim("t1")
    with pytest.raises(Refused, match=r"already claimed by agent since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"):
        board_for("bob").claim("t1")


def test_a_person_is_not_told_to_wait_for_what_they_hold(board_for):
    user = board_for("user")
    add(user, "mine"), add(user, "after", "mine")
    user.claim("mine")
    digest = user.digest()
    assert ([row.task.id for row in digest.held], digest.waiting.decisions) == (["mine"], ())
    assert board_for("agent").digest().waiting.decisions == (("user", "mine"),)


def test_a_long_plan_is_told_in_few_lines(board):
    made = board.create([rules.Draft(f"s{n}") for n in range(300)])
    told = render.text(made)
    assert told.count("Created ") == 50 and "… 250 more: taskwall list" in told
    assert len(envelope.envelope(made)["data"]["tasks"]) == 300


@pytest.mark.slow
def test_no_answer_grows_with_the_board(board):
    board.create([rules.Draft(f"blocker {n}", id=f"b-{n:03}") for n in range(300)])
    add(board, "all", *(f"b-{n:03}" for n in range(300)))
    board.create([rules.Draft(f"after {n}", id=f"a-{n:03}", blocked_by=("all",)) for n in range(300)])
    with pytest.raises(Refused) as blocked:
        board.claim("all")
    assert len(blocked.value.by) == 300
    texts = [
        render.refusal(blocked.value),
        *map(render.text, (board.get("all"), board.list(), board.history(limit=1000))),
    ]
    assert max(len(text.encode()) for text in texts) <= render.MOST
    assert len(board.history(limit=1000).events) == 601
    assert [len(board.history(limit=n).events) for n in (0, -1)] == [1, 1]


@pytest.mark.slow
def test_no_answer_is_longer_than_an_agent_should_read_however_long_the_texts(board):
    """Whole lines go from lists and trees, whose way on is named; of long texts, the longest give up their ends."""
    wide = "很长的任务名" * 30
    board.create([rules.Draft(f"{wide} {n}", id=f"b-{n:02}", labels=("x" * 40,) * 3) for n in range(60)])
    for n in range(30):
        board.claim(f"b-{n:02}")
        board.complete(f"b-{n:02}", result="结果" * 5_000)
    add(board, "all", *(f"b-{n:02}" for n in range(30)))
    board.update("all", rules.Edit(description="begin " + "说明" * 10_000, metadata={"k": "v" * 20_000}))
    for n in range(40):
        board.update("all", rules.Edit(note=f"note {n}: {'字' * 3_000}"))
    texts = {
        "show": render.text(board.get("all")),
        "list": render.text(board.list()),
        "list --all": render.text(board.list(everything=True)),
        "next": render.text(board.next(50)),
        "log": render.text(board.history()),
        "graph": render.text(board.graph()),
        "why": render.text(board.why("all")),
        "claim": render.text(board.claim("all")),
        "list_tasks": render.counted(board.list(), 5_000),
    }
    sizes = {name: len(told.encode()) for name, told in texts.items()}
    assert max(sizes.values()) <= render.MOST and sizes["list_tasks"] <= 5_000 < sizes["list"]
    assert min(sizes["show"], sizes["claim"]) > render.MOST - 200, "what there is room for is told"
    for part in ("description:\n  begin", "… 20 earlier", "note 39", "result of b-00"):
        assert part in texts["show"]
    shown = texts["list"].count("\n[") + 1
    assert f"… {31 - shown} more: list --after" in texts["list"] and "bytes more" not in texts["list"]
    last = texts["log"].splitlines()[-1]
    assert "note=note 39: 字字" in last and last.endswith("字…") and len(last) < 200


def test_whoever_takes_a_task_is_handed_over_what_the_last_one_wrote(board):
    add(board, "t", description="d" * 3_900)
    for n in range(6):
        board.update("t", rules.Edit(note=f"{n}" * 1_400))
    told = render.text(board.claim("t"))
    assert "d" * 3_900 in told and "5" * 1_400 in told and "0" * 30 not in told
    assert f"{'1' * 300}… 1100 characters more (show --json)" in told


def test_a_person_at_a_terminal_is_shown_all_of_a_task(board):
    add(board, "t", description="x" * 20_000)
    for n in range(40):
        board.update("t", rules.Edit(note=f"note {n}: {'y' * 900}"))
    whole, cut = render.text(board.get("t"), None), render.text(board.get("t"))
    assert whole.count("y" * 900) == 40 and "x" * 20_000 in whole
    assert "characters more" in cut and "… 20 earlier (--json tells all)" in cut and len(cut) <= render.MOST


@given(st.lists(st.text(max_size=300), min_size=1, max_size=200), st.integers(300, 4_000))
def test_levelled_texts_fit_and_the_short_ones_stay_whole(parts, most):
    told = leveled(parts, most, "look")
    size = sum(len(part.encode()) + 1 for part in parts) - 1
    assert len(told.encode()) <= most
    assert told == "\n".join(parts) or size > most or len(parts) > most // LEAST
    if size > most:
        assert bool(re.search(r"\n… \d+ more \(look\)$", told)) == (len(parts) > most // LEAST)
    if len(parts) <= most // LEAST:
        assert all(part in told for part in parts if len(part.encode()) < LEAST)


def test_a_cycle_in_a_plan_is_told_in_the_names_of_the_plan(board):
    with pytest.raises(Cycle, match="x → y → x|y → x → y"):
        call(
            board,
            "create_tasks",
            {"tasks": [{"ref": "x", "subject": "X", "blockedBy": "y"}, {"ref": "y", "subject": "Y", "blockedBy": "x"}]},
        )
    with pytest.raises(UnknownTask) as unknown:
        call(
            board,
            "create_tasks",
            {"tasks": [{"ref": "launch", "subject": "X"}, {"subject": "Y", "blockedBy": "lanch"}]},
        )
    assert "launch" in unknown.value.next


def test_plans_may_be_written_with_chinese_marks_and_comments():
    drafts = read_plan("# 计划\n建表：建表\n接口：写接口 ← 建表\n文档: 写文档 <- 建表、接口\n[ui] build page\n")
    assert [(d.ref, d.subject, d.blocked_by) for d in drafts] == [
        ("建表", "建表", ()),
        ("接口", "写接口", ("建表",)),
        ("文档", "写文档", ("建表", "接口")),
        ("", "[ui] build page", ()),
    ]
    assert read_plan("[ui] build page")[0].subject == "[ui] build page"


def test_whoever_claims_a_task_is_told_what_came_of_its_blockers(board, board_for):
    add(board, "t1"), board.ask("t1", "which provider?", ["A", "B"])
    (decision,) = board.get("t1").blockers
    board_for("user").answer(decision.task.id, "Netlify")
    told = render.text(board.claim("t1"))
    assert "answer of " in told and "Netlify" in told
    assert "Netlify" in render.text(board.get("t1"))


def test_answering_the_asking_task_names_its_question(board, board_for):
    add(board, "t1")
    asked = board.ask("t1", "which?")
    with pytest.raises(Invalid) as error:
        board_for("user").answer("t1", "this")
    assert f"taskwall answer {asked.also[0].task.id}" in error.value.next


def test_a_claim_is_shown_only_while_it_stands(board):
    add(board, "t1"), board.claim("t1")
    assert board.get("t1").claim["session"] == "s1"
    board.release("t1")
    assert board.get("t1").claim is None


def test_a_session_is_named_where_the_actor_is_the_same(board, board_for):
    add(board, "t1"), board.claim("t1")
    with pytest.raises(NotOwner, match="s2"):
        board_for("agent", "s2").complete("t1")


def test_finished_tasks_are_counted_where_the_filters_fit(board):
    add(board, "w1", labels=("web",)), add(board, "x1")
    board.claim("x1"), board.complete("x1")
    assert board.list(label="web").finished == 0
    assert board.list().finished == 1


def test_double_encoded_and_empty_arguments_are_read(board):
    for given in ("null", '""', '"{}"', "", None, {}):
        assert call(board, "list_tasks", given).total == 0


def test_releasing_a_session_leaves_what_somebody_else_took_since(board, board_for, store):
    add(board, "m1"), add(board, "n1")
    board.claim("m1"), board.claim("n1"), board.release("m1")
    board_for("bob").claim("m1")
    assert ids(board_for("user").release_session("s1").rows) == ["n1"]
    assert board.get("m1").row.task.owner == "bob"


def test_a_foreign_rev_is_not_ours(tmp_path):
    store = open_store("files", tmp_path, Clock())
    raw = {"id": "r1", "subject": "R", "status": "pending", "owner": None, "blockedBy": [], "rev": "1-abc", "tasks": []}
    path = tmp_path / ".tasks" / "r1.json"
    path.write_text(json.dumps(raw, indent=2))
    open_board(store, "a").claim("r1")
    assert json.loads(path.read_text()) == raw | {"status": "in_progress", "owner": "a"}


def test_a_finished_task_is_not_told_to_be_taken_back_by_persons_alone(board):
    add(board, "t1"), board.claim("t1"), board.complete("t1")
    with pytest.raises(AlreadyResolved) as error:
        board.claim("t1")
    assert "reopen" in error.value.next


def test_values_that_python_cannot_hold_are_refused_like_any_other(board):
    add(board, "t1")
    for name, given in (
        ("create_task", {"subject": "s", "priority": 10**400}),
        ("update_task", {"task_id": "t1", "addBlockedBy": "[" * 100_000}),
        ("create_tasks", {"tasks": "[" * 100_000}),
        ("list_tasks", {"id_glob": "[" * 100_000}),
    ):
        with pytest.raises(Invalid):
            call(board, name, given)


def test_a_damaged_serial_stops_neither_readers_nor_plans(tmp_path):
    store = open_store("files", tmp_path, Clock())
    board = open_board(store, "a")
    board.create([rules.Draft("A", id="a-1"), rules.Draft("B", id="b-1")])
    (tmp_path / ".tasks/.local/serial").write_text("9" * 5000)
    assert board.list().total == 2
    board.create([rules.Draft("C", id="c-1"), rules.Draft("D", id="d-1")])
    assert board.list().total == 4


def test_whoever_holds_all_there_is_to_do_is_told_to_finish_it(board):
    add(board, "t1"), board.claim("t1")
    with pytest.raises(Refused, match="you hold t1") as nothing:
        board.claim()
    assert (nothing.value.code, nothing.value.exit) == ("nothing_actionable", 6)


def test_history_names_every_task_that_a_cancelled_one_let_go(board):
    add(board, "t1"), add(board, "u1", "t1")
    board.cancel("t1", drop_edges=True)
    assert [event["verb"] for event in board.history("u1").events] == ["create", "update"]


def test_an_edge_moved_to_a_held_parent_leaves_no_cycle(tmp_path):
    store = open_store("files", tmp_path, Clock())
    for name, more in (("P", {"blocks": ["X"]}), ("X", {"blocks": []})):
        raw = {"id": name, "subject": name, "status": "pending", "blockedBy": [], **more}
        (tmp_path / ".tasks" / f"{name}.json").write_text(json.dumps(raw, indent=2))
    bob = open_board(store, "bob")
    bob.claim("P")
    bob.update("X", rules.Edit(remove_blocked_by=("P",), parent="P"))
    assert json.loads((tmp_path / ".tasks/P.json").read_text())["blocks"] == []
    assert bob.why("X").waiting.cycles == ()
    assert bob.claim("X").row.task.id == "X"


def test_a_blocker_that_does_not_exist_is_shown_among_those_that_a_task_waits_for(tmp_path):
    theirs = {"id": "t", "subject": "t", "status": "pending", "blockedBy": ["gone", "a"]}
    board = Files(tmp_path, {"t.json": json.dumps(theirs)}).board()
    add(board, "a")
    add(board, "z", "t")
    told = render.text(board.get("t")).splitlines()
    at = told.index("Waits for:")
    assert told[at + 1 : at + 5] == [
        "- [ ] a: task a [pending]",
        "- gone: does not exist",
        "Dependents:",
        "- [ ] z: task z [pending] blockedBy=t",
    ]
    board.cancel("a", drop_edges=True)
    told = render.text(board.get("t")).splitlines()
    at = told.index("Waits for:")
    assert told[at + 1] == "- gone: does not exist" and "Children:" not in told
