"""The rules by which two versions of one task become one, each in words. At random and by git: `proof/test_merges`."""

from __future__ import annotations

import json

import pytest

from taskwall.interop.merge import DifferentTasks, MadeApart, Unmergeable, merge

BASE = {"id": "t", "subject": "s", "description": "d", "status": "pending", "owner": None, "blockedBy": ["a"], "rev": 1}


def text(**changes):
    gone = {key for key, value in changes.items() if value is ...}
    return json.dumps({k: v for k, v in (BASE | changes).items() if k not in gone}, indent=2, ensure_ascii=False) + "\n"


def merged(ours, theirs, base=None):
    """The object, and what is parked by key."""
    found = merge(text(**(base or {})), text(**ours), text(**theirs))
    return json.loads(found.text), {key: pair["parked"] for key, pair in found.parked.items()}


CLAIMED = {"status": "in_progress", "owner": "alice", "epoch": 1, "startedAt": "2026-01-01T00:00:00.000000Z"}
DONE = {"status": "completed", "owner": "bob", "epoch": 1, "result": "by bob"}


@pytest.mark.parametrize(
    ("ours", "theirs", "stays"),
    [
        (CLAIMED, {}, CLAIMED),
        (CLAIMED, DONE, DONE),
        (CLAIMED | {"epoch": 7}, DONE, DONE),
        ({"status": "cancelled"}, CLAIMED, {"status": "cancelled", "owner": None}),
        ({"status": "cancelled"}, DONE, DONE),
        ({"owner": "reserved"}, CLAIMED, CLAIMED),
        (CLAIMED, CLAIMED | {"owner": "bob", "epoch": 2}, {"owner": "bob", "epoch": 2}),
        (CLAIMED, CLAIMED | {"owner": "bob"}, CLAIMED),
        (CLAIMED | {"startedAt": "2026-01-02T00:00:00.000000Z"}, CLAIMED, CLAIMED),
    ],
)
def test_status_and_owner_come_from_one_side(ours, theirs, stays):
    for one, other in ((ours, theirs), (theirs, ours)):
        found, _ = merged(one, other)
        assert {key: found.get(key) for key in stays if key != "epoch"} == {
            k: v for k, v in stays.items() if k != "epoch"
        }
        assert found.get("epoch", 0) == max(ours.get("epoch", 0), theirs.get("epoch", 0))


def test_what_was_given_back_or_reopened_on_one_side_is_free():
    assert merged({"status": "pending", "owner": None}, CLAIMED, base=CLAIMED)[0]["status"] == "pending"
    assert merged(DONE, {}, base=DONE)[0]["status"] == "pending"


def test_the_result_that_does_not_stay_is_parked():
    other = DONE | {"owner": "alice", "result": "by alice"}
    assert merged(DONE, other)[1] == merged(other, DONE)[1] == {"result": "by bob"}


def test_lists_keep_what_nobody_took_out_and_gain_what_anybody_added():
    found, _ = merged({"blockedBy": ["b", "a"]}, {"blockedBy": ["c"]})
    assert found["blockedBy"] == ["b", "c"]
    three = {"blockedBy": ["a", "b", "c"]}
    assert merged({"blockedBy": ["c", "b", "a"]}, three, base=three)[0]["blockedBy"] == ["c", "b", "a"]
    assert "labels" not in merged({"labels": ["y"]}, {"labels": ["x"]}, base={"labels": ["x", "y"]})[0]


def test_an_order_that_one_side_changed_stays_with_what_the_other_added():
    found, _ = merged({"blockedBy": ["b", "a"]}, {"blockedBy": ["a", "b", "c"]}, base={"blockedBy": ["a", "b"]})
    assert found["blockedBy"] == ["b", "a", "c"]


def test_notes_stand_in_the_order_of_their_times_each_once():
    def notes(*days):
        return {"notes": [{"at": f"2026-01-0{day}T00:00:00Z", "by": "p", "text": str(day)} for day in days]}

    assert merged(notes(1, 2, 5), notes(1, 3, 5), base=notes(1))[0]["notes"] == notes(1, 2, 3, 5)["notes"]


def test_a_text_that_both_changed_stays_as_ours_is_and_theirs_is_parked():
    assert merged({"description": "ours"}, {"description": "theirs"})[0]["description"] == "ours"
    assert merged({"description": "ours"}, {"description": "theirs"})[1] == {"description": "theirs"}
    assert merged({"description": ""}, {"description": "theirs"})[0]["description"] == "theirs"


def test_of_two_values_the_one_written_last_stays_whoever_merges():
    early, late = "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"
    ours, theirs = {"priority": 0, "updatedAt": early}, {"priority": 4, "updatedAt": late}
    for one, other in ((ours, theirs), (theirs, ours)):
        found, lost = merged(one, other)
        assert (found["priority"], found["updatedAt"], lost) == (4, late, {"priority": 0})


def test_metadata_is_merged_by_key_and_unknown_keys_like_any_value():
    found, lost = merged(
        {"metadata": {"a": 1, "b": 2}, "colour": "red"}, {"metadata": {"a": 3}}, base={"metadata": {"a": 1}}
    )
    assert (found["metadata"], found["colour"], lost) == ({"a": 3, "b": 2}, "red", {})
    assert merged({"metadata": {"a": 1}}, {"metadata": {"a": 2}})[1] == {"metadata.a": 1}


def test_attempts_follow_who_changed_them_and_are_the_larger_when_both_did():
    assert "attempts" not in merged({}, {"attempts": 2}, base={"attempts": 2})[0], "a person resumed it"
    assert merged({"attempts": 2}, {"attempts": 1})[0]["attempts"] == 2


def test_our_text_is_patched_and_its_layout_stays():
    ours = '{"id" : "t","subject":"s",\r\n "description" : "\\u4e09", "status": "pending", "owner": null, "blockedBy": [ ]}'
    theirs = ours.replace('"s"', '"better"').replace("[ ]", '["a"]').replace(" ", "")
    assert merge(ours, ours.replace("null", '"me"'), theirs).text == ours.replace("null", '"me"').replace(
        '"s"', '"better"'
    ).replace("[ ]", '[\r\n  "a"\r\n ]')


def test_a_dialect_keeps_its_keys_its_values_and_its_kind_of_id():
    base = '{"id": 7, "subject": "s", "status": "pending", "owner": "", "blockedBy": [1], "createdAt": 1.77E9}'
    ours = base.replace("[1]", "[1, 2]")
    theirs = base.replace('"pending"', '"deleted"').replace("[1]", "[]")
    assert merge(base, ours, theirs).text == base.replace('"pending"', '"deleted"').replace("[1]", "[2]")
    research = '{"id": "r", "title": "x", "state": "pending", "blocked_by": ["a"]}'
    done = research.replace('"pending"', '"done"').replace(', "blocked_by": ["a"]', "")
    assert merge(research, research.replace('"x"', '"y"'), done).text == done.replace('"x"', '"y"')


@pytest.mark.parametrize("bad", ["", "{", "<<<<<<<\n", '{"id": "t"}', '{"id": "t", "subject": "s", "blockedBy": "a"}'])
def test_a_side_that_is_no_task_is_never_merged(bad):
    for sides in ((text(), bad, text()), (text(), text(), bad)):
        with pytest.raises(Unmergeable):
            merge(*sides)


def test_different_tasks_and_read_only_formats_are_never_merged():
    with pytest.raises(DifferentTasks):
        merge(text(), text(id="w"), text(priority=0))
    arm = '{"task_id": "t", "name": "n", "status": "pending"}'
    with pytest.raises(Unmergeable, match="arm"):
        merge(arm, arm, arm)


MADE = {"createdAt": "2026-01-01T00:00:00.000000Z", "key": "k", "metadata": {"source": {"format": "tasks", "id": "7"}}}
APART = {"createdAt": "2026-01-02T00:00:00.000000Z", "subject": "another", "priority": 0}


def test_two_tasks_that_were_made_under_one_id_are_no_versions_of_one():
    one, other = text(**MADE), text(**APART)
    for ours, theirs in ((one, other), (other, one), (text(), text(subject="another"))):
        with pytest.raises(MadeApart, match="two tasks were made under the id t: '(s|another)' and '(s|another)'"):
            merge("", ours, theirs)
    assert json.loads(merge(text(**MADE, labels=["x"]), one, other).text)["priority"] == 0, "with a base it is one"


@pytest.mark.parametrize(
    "same", [{"createdAt": MADE["createdAt"]}, {"subject": "s"}, {"key": "k"}, {"metadata": MADE["metadata"]}]
)
def test_what_tells_that_two_sides_without_a_base_are_one_task_lets_them_be_merged(same):
    found = merge("", text(**MADE), text(**APART | same))
    assert json.loads(found.text)["subject"] == "s" and found.task == "t"


def test_what_would_be_too_large_to_be_read_is_not_merged():
    big = {"a": "x" * 600_000}
    with pytest.raises(Unmergeable):
        merge(text(), text(colour=big), text(shape=big))
