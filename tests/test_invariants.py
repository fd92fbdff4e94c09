"""The invariants of the design, each with the tests that prove it. A test that is renamed or lost is missed here."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from boardfiles import Files
from conftest import add
from taskwall import verbs  # noqa: F401 - importing verbs registers them
from taskwall.core.errors import Refused
from taskwall.registry import VERBS, call

TESTS = Path(__file__).parent

PROVED = {
    "I1 a reader sees each file whole": [
        "test_a_reader_sees_each_file_whole",
        "test_readers_see_whole_transactions",
        "test_no_power_loss_tears_a_change_or_takes_back_an_acknowledged_one",
    ],
    "I2 a transaction is all or nothing, after any crash and for readers": [
        "test_a_board_killed_at_any_operation_has_all_of_a_change_or_nothing",
        "test_a_command_killed_at_any_call_is_all_or_nothing",
        "test_readers_see_whole_transactions",
        "test_a_reader_sees_all_or_nothing_of_a_transaction_whose_writer_was_killed",
        "test_the_model_with_kills",
    ],
    "I3 exit 0 survives power loss": [
        "test_no_power_loss_tears_a_change_or_takes_back_an_acknowledged_one",
    ],
    "I4 at most one holder per task and epoch; epochs grow": [
        "test_I4_epochs_grow_and_an_epoch_has_one_holder",
        "test_contended_claims_are_granted_once_in_twenty_thousand_operations",
        "test_epochs_follow_the_clock_in_twenty_thousand_operations",
        "test_no_early_steal_and_no_zombie_write_whatever_the_clocks_do",
    ],
    "I5 nothing done under a superseded epoch changes the task": [
        "test_a_superseded_holder_is_told_its_successor_and_changes_nothing",
        "test_no_early_steal_and_no_zombie_write_whatever_the_clocks_do",
        "test_outside_edits_of_every_kind_while_claims_are_held",
    ],
    "I6 when a claim was granted or a task completed, every blocker was completed": [
        "test_I6_when_a_claim_is_granted_or_a_task_completed_every_blocker_is_completed",
        "test_agents_killed_at_random_for_half_a_minute_do_every_task_once",
    ],
    "I7 no accepted edge closes a cycle": [
        "test_I7_no_accepted_request_closes_a_cycle",
        "test_I7_exactly_the_edges_that_close_a_cycle_are_refused_for_one",
    ],
    "I8 unblocked is exact": [
        "test_I8_unblocked_is_exact",
    ],
    "I9 what cannot be parsed is never written, moved or ignored": [
        "test_bad_files_in_many_thousand_pairs",
        "test_no_verb_changes_a_bad_file",
        "test_a_bad_file_is_named_with_its_line_and_the_rest_goes_on",
    ],
    "I10 what a verb does not concern stays byte for byte": [
        "test_only_the_values_of_the_named_keys_change",
        "test_bad_files_in_many_thousand_pairs",
    ],
    "I11 reading writes nothing outside .local": [
        "test_I11_reading_writes_nothing",
    ],
    "I12 recovery is idempotent and never overwrites a newer edit": [
        "test_a_board_killed_at_any_operation_has_all_of_a_change_or_nothing",
        "test_an_edit_made_after_the_crash_is_kept_and_ours_lies_beside_it",
        "test_the_model_with_kills_and_an_editor",
    ],
    "I13 no dead process blocks the board": [
        "test_a_killed_holder_lets_the_next_one_in",
        "test_processes_killed_at_random_moments_leave_every_file_whole_and_no_lock",
        "test_a_forked_child_does_not_keep_the_lock",
    ],
    "I14 no id or content leads outside the board": [
        "test_names_at_every_parameter_of_every_verb",
        "test_names_in_planted_files",
        "test_links_that_lead_out",
        "test_the_name_of_a_run_leads_nowhere",
        "test_hostile_text_in_every_field_reaches_no_output",
    ],
    "I15 kept = acknowledged under N processes": [
        "test_notes_of_many_processes_are_all_kept",
        "test_two_thousand_creations_by_eight_processes_are_two_thousand_files",
        "test_agents_killed_at_random_for_half_a_minute_do_every_task_once",
    ],
}


@cache
def names():
    """Every test function there is."""
    trees = [ast.parse(path.read_text()) for path in TESTS.rglob("test_*.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_invariant_is_proved_by_a_test():
    assert [invariant.split()[0] for invariant in PROVED] == [f"I{n}" for n in range(1, 16)]


@pytest.mark.slow
@pytest.mark.parametrize("invariant", PROVED)
def test_the_tests_of_an_invariant_exist(invariant):
    assert PROVED[invariant]
    assert [name for name in PROVED[invariant] if name not in names()] == []


def state_of(folder):
    """Every file and folder with its content and times."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino, path.read_bytes() if path.is_file() else None)
        for path in [folder, *folder.rglob("*")]
    }


def test_I11_reading_writes_nothing(tmp_path):
    files = Files(tmp_path, {"bad.json": "{", "theirs.json": '{"id": 7, "subject": "s", "status": "doing"}'})
    add(files.board(), "t")
    files.board().claim("t", ttl=1)
    files.clock.sleep(minutes=5)  # a lapsed lease is seen by readers and stored by the next write
    before = state_of(tmp_path)
    for name, verb in VERBS.items():
        if not verb.writes:
            for task in ("t", "bad", "7"):
                needed = {p.public: task for p in verb.params if p.name == "task_id"}
                call(files.board(), name, needed)
                files.reread()
    assert state_of(tmp_path) == before
    for name in ("claim_task", "complete_task", "cancel"):
        with pytest.raises(Refused):
            call(files.board("bob"), name, {"task_id": "bad"})
    outside = {path: found for path, found in state_of(tmp_path).items() if ".local" not in path}
    assert outside == {path: found for path, found in before.items() if ".local" not in path}, "refusing writes nothing"


def test_that_a_read_which_writes_is_found(tmp_path):
    files = Files(tmp_path, {"t.json": '{"id": "t", "subject": "s", "status": "pending"}'})
    before = state_of(tmp_path)
    files.board().claim("t")
    assert state_of(tmp_path) != before
