"""Boards in memory and of files in lockstep: whatever is asked in whatever order, both give the same answers.

On the file board an outside editor works too: it rewrites files by hand, breaks them and mends them, removes them. From
then on the two may differ, and only what must always hold is checked.
"""

import json
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from conftest import Clock, ids, open_board, open_store
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from taskwall.core.errors import Refused
from taskwall.core.model import Settings
from taskwall.core.rules import Draft, Edit
from taskwall.core.state import open_waits, state

ACTORS = [("user", "tty"), ("ann", "tty"), ("agent", "s1"), ("agent", "s2"), ("robot/1", "r1")]
RULES = Settings(people=("ann",), durability="fast", max_attempts=2, claims_per_session=2)


def shown(answer):
    """What an answer says, without what differs between boards by nature."""
    listed = {name: ids(getattr(answer, name)) for name in ("rows", "also", "unblocked") if hasattr(answer, name)}
    row = getattr(answer, "row", None)
    told = row and (row.task.replace(notices=()), row.state, [r.text for r in row.reasons], row.waits, row.reserved)
    waiting = getattr(answer, "waiting", None)
    return type(answer).__name__, told, listed, getattr(answer, "already", None), waiting and waiting.lines()


def standing(claim):
    """A claim as it counts: the lease of one that has ended is nobody's concern."""
    return claim if claim is None or claim.open else claim.replace(lease="by hand", left=None)


class Boards(RuleBasedStateMachine):
    """A board in memory, and beside it one of another kind."""

    tasks = Bundle("tasks")
    beside, board_settings = "files", RULES

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp(prefix="taskwall-"))
        self.clock = Clock()
        kinds = ("memory", self.beside)
        self.numbers = {kind: random.Random(7) for kind in kinds}
        self.stores = {kind: open_store(kind, self.folder, self.clock, self.board_settings) for kind in kinds}
        self.edited = False
        self.holders, self.epochs = {}, {}

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def both(self, who, act):
        """Do the same on both boards, at the same time; their answers and refusals are the same."""
        now = self.clock()
        outcomes = {}
        for kind, store in self.stores.items():
            self.clock.now = now
            numbers = self.numbers[kind]
            new_id = lambda numbers=numbers: f"task_{numbers.getrandbits(40):010x}"
            board = open_board(store, *ACTORS[who], clock=self.clock, new_id=new_id, root=self.folder)
            try:
                outcomes[kind] = shown(found := act(board))
            except Refused as refusal:
                outcomes[kind] = (refusal.code, refusal.message, refusal.task, refusal.by, refusal.next)
                found = None
        if not self.edited:
            assert outcomes["memory"] == outcomes[self.beside]
        return found

    @rule(target=tasks, who=st.integers(0, 4), blockers=st.lists(tasks, max_size=3), parent=st.none() | tasks,
          owner=st.sampled_from(["", "", "user", "robot"]), priority=st.integers(1, 2))  # fmt: skip
    def create(self, who, blockers, parent, owner, priority):
        draft = Draft("some work", blocked_by=tuple(blockers), parent=parent or "", owner=owner, priority=priority)
        made = self.both(who, lambda board: board.create([draft]))
        return multiple(*(ids(made.rows) if made else []))

    @rule(target=tasks, who=st.integers(0, 4), blocker=tasks)
    def plan(self, who, blocker):
        drafts = [
            Draft("first", ref="a", blocked_by=(blocker,)),
            Draft("then", blocked_by=("a",), parent=blocker, key=blocker),
        ]
        made = self.both(who, lambda board: board.create(drafts))
        return multiple(*(ids(made.rows)[:1] if made else []))

    @rule(who=st.integers(0, 4), ttl=st.sampled_from([None, 15]))
    def claim_best(self, who, ttl):
        self.both(who, lambda board: board.claim(ttl=ttl))

    @rule(who=st.integers(0, 4), name=tasks, ttl=st.sampled_from([None, 15]), steal=st.booleans())
    def claim(self, who, name, ttl, steal):
        self.both(who, lambda board: board.claim(name, ttl=ttl, steal=steal, reason="test"))

    @rule(
        who=st.integers(0, 4),
        name=tasks,
        epoch=st.none() | st.integers(1, 3),
        verb=st.sampled_from(["complete", "release", "heartbeat", "hold"]),
    )
    def as_holder(self, who, name, epoch, verb):
        self.both(who, lambda board: getattr(board, verb)(f"{name}#{epoch}" if epoch else name))

    @rule(name=tasks, failed=st.booleans())
    def its_holder_ends(self, name, failed):
        task = self.stores["memory"].read().get(name)
        for who, (actor, _) in enumerate(ACTORS):
            if task and task.owner == actor:
                self.both(
                    who,
                    lambda board: board.release(name, failed=True) if failed else board.complete(name, result="done"),
                )

    @rule(
        who=st.integers(0, 4),
        name=tasks,
        other=tasks,
        change=st.sampled_from(["block", "unblock", "move", "leave", "note"]),
    )
    def update(self, who, name, other, change):
        edits = {
            "block": Edit(add_blocked_by=(other,)),
            "unblock": Edit(remove_blocked_by=(other,)),
            "move": Edit(parent=other),
            "leave": Edit(parent=""),
            "note": Edit(note="so it is", metadata={"k": other}),
        }
        self.both(who, lambda board: board.update(name, edits[change]))

    @rule(target=tasks, who=st.integers(0, 4), name=tasks)
    def ask(self, who, name):
        asked = self.both(who, lambda board: board.ask(name, "Which?"))
        return multiple(*(ids(asked.also) if asked else []))

    @rule(who=st.integers(0, 4), name=tasks)
    def answer(self, who, name):
        self.both(who, lambda board: board.answer(name, "that"))

    @rule(who=st.integers(0, 4), name=tasks, verb=st.sampled_from(["resume", "reopen"]))
    def take_back(self, who, name, verb):
        self.both(who, lambda board: getattr(board, verb)(name))

    @rule(who=st.integers(0, 4), name=tasks, how=st.sampled_from([{}, {"cascade": True}, {"drop_edges": True}]))
    def cancel(self, who, name, how):
        self.both(who, lambda board: board.cancel(name, **how))

    @rule(session=st.sampled_from(ACTORS))
    def session_ends(self, session):
        name, run = session
        view = self.stores["memory"].read()
        held = [claim for task in view if (claim := view.claim(task.id)) and claim.open and claim.session == run]
        if len(held) > 1:
            return  # several are given back in the order in which the store has them, each at its own time
        self.both(0, lambda board: board.release_session(run, reason=f"{name} ended"))

    @rule(minutes=st.sampled_from([1, 14, 16]))
    def time_passes(self, minutes):
        self.clock.sleep(minutes=minutes)

    @rule(who=st.integers(0, 4), name=tasks)
    def look(self, who, name):
        for verb in ("get", "why"):
            self.both(who, lambda board, verb=verb: getattr(board, verb)(name))
        for verb in ("list", "next", "graph", "fleet"):
            self.both(who, lambda board, verb=verb: getattr(board, verb)())

    # The outside editor

    @precondition(lambda self: self.may_edit)
    @rule(
        name=tasks, key=st.sampled_from(["status", "owner", "blockedBy", "epoch"]), other=tasks, pick=st.integers(0, 3)
    )
    def edit_by_hand(self, name, key, other, pick):
        path = self.folder / ".tasks" / f"{name}.json"
        values = {
            "status": ["pending", "in_progress", "completed", "doing"],
            "owner": [None, "agent", "user", "mallory"],
            "blockedBy": [[], [other], [name], ["nowhere"]],
            "epoch": [0, 1, 2, 7],
        }
        if path.exists():
            try:
                stored = json.loads(path.read_text())
            except ValueError:
                return
            path.write_text(json.dumps(stored | {key: values[key][pick]}))
            self.edited = True
            self.holders.clear()
            self.epochs.clear()

    @precondition(lambda self: self.may_edit)
    @rule(
        name=consumes(tasks),
        who=st.integers(0, 4),
        garbage=st.sampled_from(["", "{", "<<<<<<< ours", "[]", '{"id": 1}', "\0\0", "\ufeff{}"]),
    )
    def break_and_mend(self, name, who, garbage):
        path = self.folder / ".tasks" / f"{name}.json"
        if path.exists():
            before, edited = path.read_text(), self.edited
            path.write_text(garbage)
            self.edited = True
            for act in ("claim", "complete", "cancel", "reopen"):
                self.on_files(who, lambda board, act=act: getattr(board, act)(name))
            assert path.read_text() == garbage, "what cannot be read is never written"
            path.write_text(before)
            self.edited = edited

    def on_files(self, who, act):
        try:
            return act(open_board(self.stores["files"], *ACTORS[who], clock=self.clock, root=self.folder))
        except Refused:
            return None

    @precondition(lambda self: self.may_edit)
    @rule(name=consumes(tasks))
    def remove(self, name):
        (self.folder / ".tasks" / f"{name}.json").unlink(missing_ok=True)
        self.edited = True

    may_edit = False

    # What must always hold

    @invariant()
    def one_holder_an_epoch_and_epochs_grow(self):
        view = self.stores[self.beside].read()
        for task in view:
            assert state(view, task).name
            claim = view.claim(task.id)
            assert task.flaw or task.epoch >= self.epochs.get(task.id, 0)
            self.epochs[task.id] = task.epoch
            if task.status == "in_progress" and claim and claim.open and claim.epoch == task.epoch:
                assert self.holders.setdefault(task.token, (claim.actor, claim.session)) == (claim.actor, claim.session)

    @invariant()
    def both_boards_hold_the_same(self):
        if not self.edited:
            memory, other = (store.read() for store in self.stores.values())
            assert {t.id: t for t in memory} == {t.id: t for t in other}
            for task in memory:
                assert standing(memory.claim(task.id)) == standing(other.claim(task.id))
            said, told = ([e["verb"] for e in store.events()] for store in self.stores.values())
            assert said == told

    @invariant()
    def what_is_finished_waited_for_nothing(self):
        view = self.stores["memory"].read()
        for actor in ACTORS:
            for row in open_board(self.stores["memory"], *actor).next(50).rows:
                assert not open_waits(view, view.get(row.task.id))


class Outside(Boards):
    may_edit = True


def machine(which, examples, steps):
    case = which.TestCase
    case.settings = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    return case


class TestLockstep(machine(Boards, 40, 40)):
    """The same requests on both boards."""


class TestOutsideEditor(machine(Outside, 25, 40)):
    """The same, with somebody at the files of one."""


@pytest.mark.slow
class TestLockstepLonger(machine(type("LongBoards", (Boards,), {}), 300, 50)):
    pass


@pytest.mark.slow
class TestOutsideEditorLonger(machine(type("LongOutside", (Outside,), {}), 300, 50)):
    pass
