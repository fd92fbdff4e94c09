"""Connections that break: a verb is neither lost nor done twice, wherever that happens, and the next one works."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter

import psycopg
import pytest
from conftest import add, open_board
from postgres import COUNT, at_length, database_url, drift, open_postgres
from wire import AFTER, BEFORE, CUTS, MEANWHILE, Wire

from taskwall import registry, verbs  # noqa: F401 - importing verbs registers them
from taskwall.core.errors import Refused, Unwritable
from taskwall.core.refusals import NothingActionable
from taskwall.core.model import Settings
from taskwall.core.rules import Draft, Edit
from taskwall.stores.base import Outdated
from taskwall.stores.postgres.database import READ, WRITE, Address, Database, Session

pytestmark = pytest.mark.slow

RULES = Settings(max_attempts=1000)


@pytest.fixture
def new_wire():
    with contextlib.ExitStack() as stack:

        def new_wire():
            wire = Wire(database_url())
            stack.callback(wire.close)
            return wire

        yield new_wire


def board_through(wire, name="agent", board=None):
    """A board as one host sees it, over this wire."""
    store = open_postgres(settings=RULES, database=Database(Address(wire.url)), name=board or f"cut{next(COUNT)}")
    return open_board(store, name, clock=time.time_ns)


# One commit that is cut

CHANGES = {
    "create": (lambda b: add(b, "new"), lambda v: "new" in v),
    "claim": (lambda b: b.claim("a"), lambda v: v.get("a").epoch == 2),
    "claim the best": (lambda b: b.claim(), lambda v: v.get("a").epoch == 2),
    "complete": (lambda b: b.complete("held"), lambda v: v.get("held").status == "completed"),
    "release": (lambda b: b.release("held"), lambda v: v.get("held").status == "pending"),
    "cascade": (
        lambda b: b.cancel("a", cascade=True),
        lambda v: (v.get("a").status, v.get("b").status) == ("cancelled", "cancelled"),
    ),
    "note": (lambda b: b.update("a", Edit(note="once")), lambda v: len(v.get("a").notes) == 1),
}


def cut_faults(wire, change, where, warm):
    """What goes wrong when the COMMIT of a change is cut there.

    warm: how often statements were sent before; some are prepared by then, and look otherwise on the wire.
    """
    board, (act, is_done) = board_through(wire), CHANGES[change]
    add(board, "a")
    add(board, "b", "a")
    add(board, "held")
    board.claim("a")
    board.release("a")
    board.claim("held")
    for _ in range(warm):
        board.hold("b")
        open_board(board.store, "user").resume("b")
    before = len(board.store.events())
    wire.armed = where
    try:
        act(board)
        told = True
    except Refused:
        told = False
    found = [] if wire.cuts == 1 else ["nothing was cut"]
    kept = is_done(board.store.read())
    if told != kept:
        found.append(f"told {told}, kept {kept}")
    if where != MEANWHILE and kept != (where == AFTER):
        found.append(f"kept {kept}")
    if (len(board.store.events()) > before) != kept:
        found.append("half of it")
    if not told:
        act(board)  # repeating it is the way out
        found += [] if is_done(board.store.read()) else ["repeated, and not done"]
    return [f"{change}, cut {where}: {fault}" for fault in found + drift(board.store)]


@pytest.mark.slow
@pytest.mark.parametrize("where", CUTS)
def test_a_commit_that_is_cut_is_kept_or_refused_and_nothing_between(new_wire, where, figure):
    plays = [(change, warm) for change in CHANGES for warm in (0, 4)]
    bad = [fault for change, warm in plays for fault in cut_faults(new_wire(), change, where, warm)]
    figure(f"PostgreSQL: a COMMIT cut {where}", tried=len(plays), bad=bad)


@pytest.mark.parametrize(("belief", "where"), [(False, AFTER), (True, BEFORE)])
def test_a_client_that_does_not_ask_what_became_of_its_commit_is_found(new_wire, monkeypatch, belief, where):
    monkeypatch.setattr(Session, "_was_kept", lambda *_: belief)
    assert cut_faults(new_wire(), "complete", where, 0), "the detector sees nothing"


@pytest.mark.parametrize(("verb", "most"), [("claim", 4), ("beat", 3), ("complete", 8)])
def test_a_verb_asks_the_server_so_often_and_no_more(new_wire, verb, most):
    wire = new_wire()
    board = board_through(wire)
    board.create([Draft(f"task {n}", id=f"t{n}", blocked_by=(f"t{n - 1}",) if n % 2 else ()) for n in range(6)])
    acts = {
        "claim": board.claim,
        "beat": lambda: board.beat([token], ttl=15),
        "complete": lambda: board.complete(token),
    }
    token = board.claim(ttl=15).row.task.token
    before = wire.exchanges
    acts[verb]()
    assert wire.exchanges - before <= most


def begun(database):
    session = database.begin(f"{WRITE}; SELECT pg_current_xact_id()::text")
    return session, session.first[0]


def is_there(database, name):
    with database.session(READ) as session:
        return bool(session.rows("SELECT 1 FROM taskwall.boards WHERE name = %s", name))


MAKE = "INSERT INTO taskwall.boards (name) VALUES (%s)"


def test_what_fails_after_a_commit_takes_nothing_back():
    store = open_postgres()
    session, transaction = begun(store.database)
    with session.keeping(transaction, "SELECT 1 / 0"):
        session.run(MAKE, f"{store.name} too")
    assert is_there(store.database, f"{store.name} too")


def test_a_statement_that_is_refused_before_the_commit_takes_all_back_at_once():
    store = open_postgres()
    session, transaction = begun(store.database)
    started = time.monotonic()
    with pytest.raises(Unwritable, match="division by zero"), session.keeping(transaction):
        session.run(MAKE, f"{store.name} too")
        session.run("SELECT 1 / 0")
    session.close()
    assert time.monotonic() - started < store.database.patience
    assert not is_there(store.database, f"{store.name} too")


def numbers_that_mislead(database):
    """That of another transaction, which was kept, and one that the server has not given yet."""
    session, transaction = begun(database)
    with session.keeping(transaction):
        pass
    session.close()
    return transaction, str(int(transaction) + 10**6)


@pytest.mark.parametrize("which", [0, 1], ids=["given again", "not given yet"])
@pytest.mark.parametrize("where", [BEFORE, AFTER])
def test_a_server_that_forgot_a_transactions_number_is_asked_for_what_it_left(new_wire, where, which):
    wire = new_wire()
    store = board_through(wire).store
    number = numbers_that_mislead(store.database)[which]
    event = {"at": "2026", "by": "a", "session": "s", "verb": "note", "task": "t"}
    session, _ = begun(store.database)
    wire.armed = where
    told = True
    try:
        with session.keeping(number, store._trace([event])):
            store._log(session, [event])
    except Outdated:
        told = False
    assert wire.cuts == 1
    assert told == (where == AFTER) == bool(store.events())


# Many that are cut at random


class Host:
    """An agent on a host of its own: what was acknowledged to it."""

    def __init__(self, board, seed):
        self.board, self.random, self.claimed, self.done, self.unknown = board, random.Random(seed), [], [], []

    def work(self, over):
        while not over.is_set():
            try:
                token = self._run("claim_task", ttl=0.02).row.task.token
            except NothingActionable:
                over.wait(0.05)
                continue
            except Refused:
                continue
            self.claimed.append(token)
            with contextlib.suppress(Refused):
                if not self._run("complete_task", token, result=token).already:
                    self.done.append(token)

    def _run(self, verb, *args, **more):
        names = dict(zip(("task_id",), args))
        return registry.VERBS[verb].run(self.board, **names, **more)


def graph_of(number):
    chance = random.Random(number)
    names = [f"n{n:03}" for n in range(number)]
    waits = {name: chance.sample(names[:at], min(at, chance.choice((0, 1, 2)))) for at, name in enumerate(names)}
    return waits, [Draft(name, id=name, blocked_by=tuple(blockers)) for name, blockers in waits.items()]


def disturbed(boards, disturb, tasks, seconds=90):
    """Let hosts do a graph of tasks while somebody disturbs them; what was tried, and what is wrong afterwards."""
    waits, drafts = graph_of(tasks)
    boards[0].create(drafts)
    hosts = [Host(board, n) for n, board in enumerate(boards)]
    over, until, chance = threading.Event(), time.monotonic() + seconds, random.Random(5)
    threads = [threading.Thread(target=host.work, args=(over,)) for host in hosts]
    [thread.start() for thread in threads]
    watched = open_postgres(name=boards[0].store.name)
    try:
        while any(not t.closed for t in watched.read()) and time.monotonic() < until:
            time.sleep(chance.uniform(0.02, 0.2))
            disturb(chance)
    finally:
        over.set()
        [thread.join(60) for thread in threads]
    return sum(len(h.claimed) + len(h.done) for h in hosts), faults(watched, waits, hosts)


def faults(store, waits, hosts):
    """What is wrong with a board that hosts say they have done."""
    view, events = store.read(), store.events()
    found = [f"{t.id} is {t.status}" for t in view if t.status != "completed"]
    claims = Counter(token for host in hosts for token in host.claimed)
    done = Counter(token.partition("#")[0] for host in hosts for token in host.done)
    found += [f"{token} was granted {n} times" for token, n in claims.items() if n > 1]
    found += [f"{task} was done {n} times" for task, n in done.items() if n > 1]
    for host in hosts:
        found += [
            f"{token} was done, and is not" for token in host.done if view.get(token.partition("#")[0]).result != token
        ]
    logged = Counter((e["task"], e["verb"]) for e in events)
    for task in view:
        if (logged[task.id, "claim"], logged[task.id, "complete"]) != (task.epoch, 1):
            found.append(f"{task.id}: {task.epoch} claims, logged {logged[task.id, 'claim']}")
        ended = [view.get(b).completed_at or "~" for b in waits[task.id]]
        early = [b for b, end in zip(waits[task.id], ended) if end > (task.started_at or "~")]
        found += [f"{task.id} was begun before {b} was done" for b in early]
    return found + drift(store)


def cut_hosts(new_wire, tasks):
    wires = [new_wire(), new_wire()]
    boards = [board_through(wires[0], "h0")]
    boards += [board_through(wires[n % 2], f"h{n}", boards[0].store.name) for n in range(1, 4)]

    def disturb(chance):
        wire = chance.choice(wires)
        match chance.randrange(4):
            case 0:
                wire.cut_all()
            case 1:
                wire.down = not wire.down
            case _:
                wire.armed = chance.choice(CUTS)

    tried, bad = disturbed(boards, disturb, tasks)
    return tried, bad, sum(wire.cuts for wire in wires)


def test_two_hosts_whose_connections_are_cut_do_every_task_once(new_wire, figure):
    tried, bad, cuts = cut_hosts(new_wire, 30)
    figure(f"PostgreSQL: two hosts, {cuts} cuts, quick", tried=tried, bad=bad, at_least=60)


@at_length
def test_two_hosts_whose_connections_are_cut_do_every_task_once_at_length(new_wire, figure):
    tried, bad, cuts = cut_hosts(new_wire, 600)
    figure(f"PostgreSQL: two hosts, {cuts} cuts", tried=tried, bad=bad, at_least=1_200)


def ended_by_the_server(tasks):
    boards = [open_board(open_postgres(settings=RULES), "h0", clock=time.time_ns)]
    same = {"settings": RULES, "name": boards[0].store.name, "database": boards[0].store.database}
    boards += [open_board(open_postgres(**same), f"h{n}", clock=time.time_ns) for n in range(1, 4)]
    killed = []

    def disturb(chance):
        query = (
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name LIKE 'taskwall%%' AND xact_start IS NOT NULL ORDER BY random() LIMIT 2) busy"
        )
        with psycopg.connect(database_url(), autocommit=True) as connection:
            killed.extend(connection.execute(query).fetchall())

    tried, bad = disturbed(boards, disturb, tasks)
    return tried, bad, len(killed)


def test_sessions_that_the_server_ends_within_verbs_lose_nothing(figure):
    tried, bad, killed = ended_by_the_server(30)
    figure(f"PostgreSQL: {killed} sessions ended by the server, quick", tried=tried, bad=bad, at_least=60)


@at_length
def test_sessions_that_the_server_ends_within_verbs_lose_nothing_at_length(figure):
    tried, bad, killed = ended_by_the_server(600)
    figure(f"PostgreSQL: {killed} sessions ended by the server", tried=tried, bad=bad, at_least=1_200)
