"""A board in PostgreSQL and one in memory in lockstep; and nothing that the database derives ever drifts.

Task files of another program are brought in as a move brings them: their `blocks` gate, and they may close rings.
"""

import json

import pytest
from conftest import ids, open_board
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, multiple, rule, run_state_machine_as_test
from postgres import at_length, board_url, drift, drop, open_postgres
from test_machine import ACTORS, RULES, Boards

from taskwall.core.model import Actor, Claim
from taskwall.core.rules import Edit
from taskwall.core.state import is_waiting, open_waits
from taskwall.stores.files.dialects import read
from taskwall.stores.files.strict import encode, parse
from taskwall.stores.postgres import writing
from taskwall.stores.postgres.database import Address, Database
from taskwall.stores.postgres.view import PostgresView

FREE = RULES.replace(claims_per_session=0)
"""Then claims go on beside each other, under row locks."""


class OnPostgres(Boards):
    beside, board_settings = "postgres", FREE

    @initialize()
    def start(self):
        Boards.start(self)
        self.database = Database(Address(board_url("main")))  # what a failure leaves open is not in others' way
        self.stores["postgres"] = open_postgres(self.clock, self.board_settings, database=self.database)

    def teardown(self):
        super().teardown()
        if hasattr(self, "database"):
            drop(self.stores["postgres"])
            self.database.close()

    @rule(who=st.integers(0, 4), older=st.sampled_from([0, 1]))
    def archive(self, who, older):
        self.both(who, lambda board: board.archive(older))

    @rule(name=Boards.tasks, other=Boards.tasks, priority=st.integers(0, 4), subject=st.sampled_from(["", "多行", "s"]))
    def edit(self, name, other, priority, subject):
        self.both(0, lambda b: b.update(name, Edit(subject=subject or None, priority=priority, parent=other)))

    @rule(who=st.integers(0, 4))
    def come_to_an_end(self, who):
        """What somebody holds is done, so that much gets finished."""
        memory = self.stores["memory"].read()
        for task in memory.held_by(Actor(*ACTORS[who])):
            self.both(who, lambda board, i=task.id: board.complete(i, result="done"))

    @invariant()
    def nothing_drifts(self):
        assert drift(self.stores["postgres"]) == []

    @invariant()
    def both_views_answer_alike(self):
        memory, postgres = (answers_of(store.read()) for store in self.stores.values())
        assert [(q, memory[q], found) for q, found in postgres.items() if found != memory[q]] == []
        assert self.stores["memory"].events() == self.stores["postgres"].events()


def answers_of(view):
    """What a view answers to every question that PostgreSQL answers by queries of its own."""
    tasks = sorted(view, key=lambda task: task.id)
    known = {*ids(tasks)}  # in memory, what only a blocker names is found in the archive too
    return {
        "counts": [view.counts(), *(view.counts(task) for task in tasks)],
        "by age": (ids(view.by_age()), ids(view.by_age(closed=True))),
        "behind one": [ids(view.by_age(task)) for task in tasks],
        "in progress": sorted(ids(view.in_progress())),
        "held": [ids(view.held_by(Actor(*actor))) for actor in ACTORS],
        "subjects": sorted(view.subjects()),
        "ranks": [(t.id, view.rank(t.id)) for t in tasks],
        "blockers": [(t.id, view.blockers(t)) for t in tasks],
        "dependents": [(t.id, [d.id for d in view.dependents(t.id) if d.id in known]) for t in tasks],
        "children": [(t.id, ids(view.children(t.id))) for t in tasks],
        "offered": [t.id for t in view.unblocked() if not open_waits(view, t)],
        "keys": [view.by_key(t.key) is not None for t in tasks if t.key],
        "same subject": [sorted(view.by_subject(t.subject)) for t in tasks if len(view.by_subject(t.subject)) < 2],
    }


class WithSessionLimit(OnPostgres):
    board_settings = RULES


class Moved(OnPostgres):
    """With files of another program among the tasks, whose `blocks` alone name some edges, and rings."""

    @rule(
        target=Boards.tasks,
        number=st.integers(1, 6),
        blocks=st.lists(st.integers(1, 6), max_size=2),
        blocked_by=st.lists(st.integers(1, 6), max_size=1),
        ours=st.none() | Boards.tasks,
    )
    def bring(self, number, blocks, blocked_by, ours):
        text = json.dumps(
            {"id": str(number), "subject": f"of claude {number}", "status": "pending", "activeForm": "doing",
             "blocks": sorted({*map(str, blocks), ours} - {None}), "blockedBy": [*map(str, blocked_by)]}
        )  # fmt: skip
        if self.stores["memory"].read().get(str(number)):
            return multiple()
        for store in self.stores.values():
            with store.write() as txn:
                txn.put(read(parse(text)))
        postgres = self.stores["postgres"]
        with postgres.database.session("BEGIN") as session:
            update = "UPDATE taskwall.tasks SET origin = %s WHERE board = %s AND id = %s"
            session.run(update, encode([f"{number}.json", text]), postgres.number, str(number))
        return str(number)


def play(machine, examples, steps, **more):
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps, **more))


QUICK = {"derandomize": True, "database": None}


def test_a_board_in_postgres_answers_like_one_in_memory_quickly():
    play(Moved, 4, 30, **QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [OnPostgres, WithSessionLimit, Moved])
def test_a_board_in_postgres_answers_like_one_in_memory(machine):
    play(machine, 12, 30, **QUICK)


@pytest.mark.slow
def test_ranks_that_are_all_counted_anew_are_the_same(monkeypatch):
    monkeypatch.setattr(writing, "MOST_MENDED", -1)
    play(Moved, 10, 30, **QUICK)


@at_length
@pytest.mark.parametrize("most_mended", [writing.MOST_MENDED, 3, -1])
@pytest.mark.parametrize("machine", [OnPostgres, WithSessionLimit, Moved])
def test_a_board_in_postgres_answers_like_one_in_memory_at_length(machine, most_mended, monkeypatch):
    monkeypatch.setattr(writing, "MOST_MENDED", most_mended)
    play(machine, 150, 50)


# The machine finds


def parents_that_move_nothing(monkeypatch):
    moves = writing._moves
    monkeypatch.setattr(writing, "_moves", lambda old, new: moves(old and old.replace(parent=new.parent), new))


def ranks_of_the_changed_alone(monkeypatch):
    monkeypatch.setattr(writing._Ranks, "_ahead", lambda *_: [])


def waits_of_the_changed_alone(monkeypatch):
    monkeypatch.setattr(writing.Txn, "waiters", lambda *_: [])
    monkeypatch.setattr(
        writing, "_waits", lambda txn, moved, _: {t.id: is_waiting(txn, t) for t in moved if not t.closed}
    )


def rings_that_are_forgotten(monkeypatch):
    monkeypatch.setattr(PostgresView, "ringed", property(lambda _: False, lambda *_: None), raising=False)


def archived_tasks_that_count(monkeypatch):
    monkeypatch.setattr(writing, "_count", lambda *_: None)


BUGS = (
    parents_that_move_nothing,
    ranks_of_the_changed_alone,
    waits_of_the_changed_alone,
    archived_tasks_that_count,
    rings_that_are_forgotten,
)


@at_length
@pytest.mark.parametrize("bug", BUGS, ids=lambda each: each.__name__)
def test_a_seeded_bug_is_found(monkeypatch, bug):
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        play(Moved if bug == rings_that_are_forgotten else OnPostgres, 400, 30, phases=[Phase.generate], **QUICK)
