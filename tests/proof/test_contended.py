"""I4 under contention: of however many processes, one holds a task under an epoch, and epochs grow by one a claim."""

from __future__ import annotations

from collections import Counter

import pytest
from crowd import board_of, claim_best, crowd, make_board

TASKS, INDEXED = 40, 120
"""How many there are, and so many that they are chosen ahead of the lock."""


def faults(operations, place):
    """What no sound board does: two holders of one epoch, a claim ended by two, an epoch lost or skipped."""
    found = []
    for verbs in (("claim",), ("complete", "release")):
        ends = Counter((o.task, o.epoch) for o in operations if o.verb in verbs)
        found += [f"{task}#{epoch}: {n} times {verbs}" for (task, epoch), n in ends.items() if n > 1]
    holders = {(o.task, o.epoch): o.who for o in operations if o.verb == "claim"}
    for o in operations:
        if o.verb != "claim" and holders.get((o.task, o.epoch)) != o.who:
            found.append(f"{o.task}#{o.epoch}: {o.verb} by {o.who}, which never held it")
    claims = Counter(o.task for o in operations if o.verb == "claim")
    for task in board_of(place).store.read():
        if task.epoch != claims[task.id]:
            found.append(f"{task.id}: {claims[task.id]} claims granted, epoch {task.epoch}")
    return found


def contend(place_of, figure, shares, kind="", tasks=TASKS):
    for processes, operations in shares.items():
        board = make_board(place_of(processes), tasks)
        done, seconds = crowd(claim_best, board, processes, operations)
        claims = sum(o.verb == "claim" for o in done) / seconds
        name = f"contended claims{kind}: {processes} process{'es' * (processes > 1)}, {claims:.0f} claims a second"
        figure(name, tried=len(done), bad=faults(done, board), at_least=operations)


def test_contended_claims_are_granted_once_quickly(tmp_path, figure):
    contend(lambda n: tmp_path / f"board-{n}", figure, {2: 60, 8: 80})


@pytest.mark.slow
def test_contended_claims_ahead_of_the_lock_are_granted_once(tmp_path, figure):
    contend(lambda n: tmp_path / f"board-{n}", figure, {2: 3_000, 8: 3_000, 32: 2_000}, " ahead of the lock", INDEXED)


@pytest.mark.slow
def test_contended_claims_are_granted_once_in_twenty_thousand_operations(tmp_path, figure):
    contend(lambda n: tmp_path / f"board-{n}", figure, {1: 3_000, 2: 10_000, 8: 5_000, 32: 2_000})


def test_without_the_lock_two_processes_hold_one_task(tmp_path):
    board = make_board(tmp_path / "board", TASKS)
    done, _ = crowd(claim_best, board, 4, 240, bug="no-lock")
    assert [fault for fault in faults(done, board) if "'claim'" in fault], "the detector sees nothing"
