"""I4 in time: the order of a task's epochs is an order in which its claims may really have happened."""

from __future__ import annotations

from collections import defaultdict

import pytest
from crowd import claim_hot, crowd, make_board

TASKS, PROCESSES = 12, 8


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
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), 4, 240)
    figure("linearizability: epochs against the clock, quick", tried=len(done), bad=violations(done), at_least=240)


@pytest.mark.slow
def test_epochs_follow_the_clock_in_twenty_thousand_operations(tmp_path, figure):
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), PROCESSES, 20_000)
    figure("linearizability: epochs against the clock", tried=len(done), bad=violations(done), at_least=20_000)


def test_without_the_lock_epochs_contradict_each_other(tmp_path):
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), 4, 400, bug="no-lock")
    assert violations(done), "the detector sees nothing"


@pytest.mark.slow
def test_without_the_lock_epochs_contradict_the_clock_by_the_hundreds(tmp_path):
    done, _ = crowd(claim_hot, make_board(tmp_path / "board", TASKS), PROCESSES, 4_000, bug="no-lock")
    found = violations(done)
    assert len(found) > 100 and {kind for _, kind, _ in found} >= {"epochs", "time"}, len(found)
