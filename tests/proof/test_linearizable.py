"""I4 in time: the order of a task's epochs is an order in which its claims may really have happened."""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest
from crowd import claim_hot, crowd, make_board

TASKS = 6


def violations(operations):
    """Pairs of operations on one task whose epochs contradict the clock, and epochs that do not follow each other."""
    claims, ends, found = defaultdict(list), {}, []
    for o in operations:
        if o.verb == "claim":
            claims[o.task].append(o)
        elif o.verb != "reopen":
            ends[o.task, o.epoch] = o
    for task, granted in claims.items():
        granted.sort(key=lambda o: o.epoch)
        if [o.epoch for o in granted] != list(range(1, len(granted) + 1)):
            found += [(task, "epochs", b.epoch) for a, b in zip(granted, granted[1:]) if b.epoch != a.epoch + 1]
        latest_start = 0.0
        for o in granted:
            # A greater epoch was had before a smaller one was asked for, or before its claim was given up.
            if o.end < latest_start:
                found.append((task, "time", o.epoch))
            end = ends.get((task, o.epoch))
            if end and end.end < o.start:
                found.append((task, "end before claim", o.epoch))
            latest_start = max(latest_start, o.start, end.start if end else 0.0)
    return found


def test_epochs_follow_the_clock_quickly(tmp_path, figure):
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), 4, 120)
    figure("linearizability: epochs against the clock, quick", tried=len(done), bad=violations(done), at_least=120)


@pytest.mark.slow
def test_epochs_follow_the_clock_in_twenty_thousand_operations(tmp_path, figure):
    # Several boards at once, because the processes of one wait for each other most of the time.
    with ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(crowd, claim_hot, make_board(tmp_path / f"board-{processes}", TASKS), processes, operations)
            for processes, operations in ((2, 8_000), (3, 7_000), (6, 5_000))
        ]
    histories = [run.result()[0] for run in runs]
    bad = [violation for done in histories for violation in violations(done)]
    figure("linearizability: epochs against the clock", tried=sum(map(len, histories)), bad=bad, at_least=20_000)


def test_without_the_lock_epochs_contradict_each_other(tmp_path):
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), 4, 240, bug="no-lock")
    assert violations(done), "the detector sees nothing"


@pytest.mark.slow
def test_without_the_lock_epochs_contradict_the_clock_by_the_dozens(tmp_path):
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), 8, 3_000, bug="no-lock")
    found = Counter(kind for _, kind, _ in violations(done))
    assert found["epochs"] > 50 and found["time"], found
