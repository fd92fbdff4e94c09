"""Task files merged by their fields: at random, two sides of one base in every dialect; and by git itself.

With a seeded bug in the rules, the laws must find it.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shlex
import subprocess
import sys

import pytest

from conftest import Clock
from taskwall.config import find_board
from taskwall.core.rules import Edit
from taskwall.interop import merge as merging
from taskwall.interop.doctor import doctor
from taskwall.interop.gitconf import set_up_git
from taskwall.interop.merge import merge
from taskwall.stores.files.dialects import DIALECTS, read
from taskwall.stores.files.patch import spans
from taskwall.stores.files.strict import parse
from test_outside_edits import Clone, git, made, pulled, refused

# At random

BASES = {
    "taskwall": {
        "id": "t", "subject": "s", "description": "d", "status": "pending", "owner": None, "blockedBy": ["a", "b"],
        "priority": 1, "labels": ["x"], "notes": [{"at": "2026-01-01T00:00:00.000001Z", "by": "p", "text": "n"}],
        "metadata": {"k": 1}, "createdAt": "2026-01-01T00:00:00.000000Z", "updatedAt": "2026-01-01T00:00:00.000000Z",
        "epoch": 2, "rev": 3,
    },
    "research": {"id": "t", "title": "标题", "state": "pending", "blocked_by": ["a"], "products": ["t.rtf"], "note": "n"},
    "numbered": {"id": 7, "subject": "s", "status": "pending", "owner": "", "blockedBy": [1, 2], "createdAt": 1.77e9},
    "claude-code": {"id": "t", "subject": "s", "status": "pending", "activeForm": "doing", "blockedBy": [], "blocks": ["z"]},
    "lesson": {"id": "t", "subject": "s", "description": "", "status": "pending", "owner": None, "blockedBy": ["a"]},
}  # fmt: skip
LAYOUTS = (
    {"indent": 2, "ensure_ascii": False},
    {"indent": 4},
    {"separators": (",", ":")},
    {"indent": 1, "separators": (",", " : ")},
)
TEXTS = ("one", "two", "三", 'a "quoted" \\ line\nand another', "é\u2028", "")
TIMES = [f"2026-01-02T00:00:0{n}.000000Z" for n in range(6)]


def edited(rng, raw, dialect):
    """One side: a few changes such as verbs, editors and other programs make."""
    key, side = DIALECTS[dialect].key, copy.deepcopy(raw)
    for _ in range(rng.randint(0, 4)):
        rng.choice((_text, _list, _progress, _scalar, _unknown, _order))(rng, side, key, dialect)
    if dialect == "taskwall":
        if rng.random() < 0.5:
            side.setdefault("notes", []).append({"at": rng.choice(TIMES), "by": "q", "text": rng.choice(TEXTS)})
        side["rev"] += rng.randint(0, 3)
        side["updatedAt"] = rng.choice(TIMES)
        if rng.random() < 0.4:
            side["metadata"] = {**side.get("metadata", {}), rng.choice("km"): rng.choice([2, [3], {"deep": None}])}
    if rng.random() < 0.1:  # a key of ours that another program uses for something else
        side[rng.choice(("labels", "notes", "metadata", "attempts", "hold", "updatedAt"))] = rng.choice(
            ("x", 3.5, [1], {"y": 1})
        )
    return side


def _text(rng, side, key, dialect):
    side[key(rng.choice(("subject", "description", "question", "hold")))] = rng.choice(TEXTS[:-1])


def _list(rng, side, key, dialect):
    number = dialect == "numbered"
    name = key("blockedBy") if number else rng.choice([key("blockedBy"), "labels", "options"])
    items = side.get(name, [])
    if items and rng.random() < 0.4:
        items.remove(rng.choice(items))
    else:
        items = [*items, rng.choice([3, 4, "5"] if number else ["c", "d", "e"])]
    if items or dialect != "research":
        side[name] = items


def _order(rng, side, key, dialect):
    rng.shuffle(side.get(key("blockedBy"), []))


def _progress(rng, side, key, dialect):
    status = rng.choice(("pending", "in_progress", "completed", "cancelled"))
    side[key("status")] = DIALECTS[dialect].statuses.get(status, status)
    side["owner"] = rng.choice(("alice", "bob"))
    if dialect == "taskwall":
        side["epoch"] += rng.randint(0, 2)
        side["startedAt"] = rng.choice(TIMES)
    if status == "completed":
        side["result"] = rng.choice(TEXTS[:-1])


def _scalar(rng, side, key, dialect):
    name = rng.choice(("priority", "parent", "key"))
    side[name] = rng.choice((0, 3, 4)) if name == "priority" else rng.choice("pq")
    if rng.random() < 0.3:
        side.pop(name)


def _unknown(rng, side, key, dialect):
    side["colour"] = rng.choice((None, 1, 1.0, True, "red", ["x"], {"y": 1e300}))


def sides(seed):
    """(dialect, base, ours, theirs) as texts."""
    rng = random.Random(seed)
    dialect = rng.choice(list(BASES))
    base = BASES[dialect]
    objects = [base, edited(rng, base, dialect), edited(rng, base, dialect)]
    has_base = rng.random() >= 0.05
    for side in objects[1:]:
        if not has_base and "createdAt" not in base:  # else nothing tells that these are one task
            side[DIALECTS[dialect].key("subject")] = base[DIALECTS[dialect].key("subject")]
    texts = [json.dumps(each, **rng.choice(LAYOUTS)) + rng.choice(("", "\n")) for each in objects]
    return dialect, (texts[0] if has_base else ""), *texts[1:]


def broken_laws(seed):
    """What a merge of these sides did that it must not."""
    dialect, base, ours, theirs = sides(seed)
    try:
        one, two = merge(base, ours, theirs), merge(base, theirs, ours)
        merged, other = parse(one.text), parse(two.text)
        found = read(merged)
    except Exception as error:  # noqa: BLE001 - any at all breaks the first law
        return [f"{seed}: {error!r}"]
    raws = [json.loads(text) for text in (base or "{}", ours, theirs)]
    laws = {
        "is still the task, in its dialect": (found.id, found.dialect) == (str(BASES[dialect]["id"]), dialect),
        "commutes": _typed(_without(merged, one.parked)) == _typed(_without(other, one.parked)),
        "parks the other of the two": _pairs(one.parked) == _pairs(two.parked),
        "loses nothing": all(_kept(key, side[key], raws, merged, one.parked) for side in raws[1:] for key in side),
        "grows": dialect != "taskwall" or all(merged[k] == max(r.get(k, 0) for r in raws) for k in ("epoch", "rev")),
        "is one side's status and owner": _unit(merged) in (_unit(raws[1]), _unit(raws[2])),
        "keeps our bytes": all(_span(ours, k) == _span(one.text, k) for k in raws[1] if _typed(raws[1][k]) == _typed(merged.get(k))),
        "of a side with itself is that side": merge(base, ours, ours).text == ours,
        "with an unchanged side is the other": not base or _typed(parse(merge(base, base, theirs).text)) == _typed(raws[2]),
    }  # fmt: skip
    return [f"{seed}: not so: a merge {law}" for law, holds in laws.items() if not holds]


def _typed(value):
    return json.dumps(value, sort_keys=True)


def _without(raw, parked):
    """Without the texts of which ours was kept: there the two orders differ, and say so."""
    return {key: value for key, value in raw.items() if key not in parked or not isinstance(value, str)}


def _pairs(parked):
    return {key: sorted(map(_typed, pair.values())) for key, pair in parked.items()}


def _unit(raw):
    return _typed([raw.get("status", raw.get("state")), raw.get("owner")])


def _span(text, key):
    span = spans(text)[key]
    return text[span.start : span.end]


def _kept(key, value, raws, merged, parked):
    """Whether what a side wrote is in the merged file or parked, where it is no bookkeeping and no part of a list."""
    base, ours, theirs = raws
    if value in (None, "", [], {}) or _typed(value) in (_typed(base.get(key)), _typed(merged.get(key))):
        return True
    if key == "notes" and all(isinstance(each, list) for each in (value, merged["notes"])) and key not in parked:
        return all(note in merged["notes"] for note in value)
    if isinstance(value, list) and isinstance(merged.get(key, []), list) and key != "colour" and key not in parked:
        other = theirs if value is ours.get(key) else ours
        gone = {str(i) for i in base.get(key, [])} - {str(i) for i in other.get(key, [])}
        return {str(item) for item in value} - gone <= {str(item) for item in merged.get(key, [])}
    if key in ("status", "state", "owner", "startedAt", "completedAt", "epoch", "rev", "updatedAt"):
        return True
    if key == "metadata" and key not in parked:
        told = [*merged.get("metadata", {}).items(), *((k.partition(".")[2], v["parked"]) for k, v in parked.items())]
        return all(_typed(v) == _typed(base.get(key, {}).get(k)) or (k, v) in told for k, v in value.items())
    return key in parked and _typed(value) == _typed(parked[key]["parked"])


def faults(seeds):
    return [fault for seed in seeds for fault in broken_laws(seed)]


def test_merges_at_random_quickly(figure):
    figure("random merges, quick", tried=300, bad=faults(range(300)), at_least=300)


@pytest.mark.slow
def test_merges_at_random(figure):
    figure("random three-way merges", tried=2_500, bad=faults(range(2_500)), at_least=2_000)


def _ours_first(merge_, key, base, ours, theirs):
    return [*ours, *(item for item in theirs if item not in ours)]


BUGS = {
    "status by who asks": ("_rank", lambda task, unit: 0),
    "lists of both, without what was taken out": ("_list", _ours_first),
    "our notes alone": ("_notes", lambda merge_, key, base, ours, theirs: ours),
    "the last text wins unseen": ("_text", lambda merge_, key, base, ours, theirs: theirs),
    "epoch by who changed it": ("_largest", lambda merge_, key, base, ours, theirs: theirs),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_rules_is_found(monkeypatch, bug):
    name, wrong = BUGS[bug]
    right = getattr(merging, name)
    monkeypatch.setattr(merging, name, wrong)
    monkeypatch.setattr(merging, "_RULES", {k: wrong if rule is right else rule for k, rule in merging._RULES.items()})
    assert faults(range(200))


# By git


def with_driver(clone):
    assert set_up_git(str(clone.path / ".tasks"), yes=True).done
    clone.commit("set up")
    return clone


def fixed(clone, *expected):
    """Let doctor repair, then tell git what it repaired, as it says."""
    location = find_board(str(clone.path), {}, str(clone.path))
    answer = doctor(location, fix=True, yes=True)
    for name in git(clone.path, "diff", "--name-only", "--diff-filter=U").split():
        git(clone.path, "add", name)
    for code in expected:
        assert code in [each.code for each in answer.findings], answer.lines()
    return answer


def two_sides(folder, here, there, driver=True, task="t"):
    """A repository with one commit on each of two branches, `main` checked out."""
    clone = made(folder)
    if driver:
        with_driver(clone)
    git(clone.path, "branch", "side")
    here(clone)
    clone.commit("here")
    git(clone.path, "switch", "-q", "side")
    there(clone)
    clone.commit("there")
    git(clone.path, "switch", "-q", "main")
    return clone


def held(clone, task_id="t"):
    return json.loads(clone.file(task_id).read_text())


def claims(name):
    return lambda clone: clone.board(name).claim("t")


def edits(**changes):
    return lambda clone: clone.edit("t", **changes)


def merged_quietly(folder):
    """Both sides change one task in different ways, notes too: git does not stop."""
    clone = two_sides(folder, edits(subject="ours", labels=["a"]), edits(priority=0, labels=["b"], blockedBy=["u"]))
    git(clone.path, "merge", "-q", "--no-edit", "side")
    found = held(clone)
    assert (found["subject"], found["priority"], found["blockedBy"]) == ("ours", 0, ["u"])
    assert sorted(found["labels"]) == ["a", "b"]


def merged_the_other_way(folder):
    clone = two_sides(folder, edits(subject="ours"), edits(priority=0, labels=["b"]))
    git(clone.path, "switch", "-q", "side")
    git(clone.path, "merge", "-q", "--no-edit", "main")
    assert (held(clone)["subject"], held(clone)["priority"]) == ("ours", 0)


def rebased(folder):
    clone = two_sides(folder, edits(subject="ours"), edits(priority=0, subject="theirs"))
    git(clone.path, "switch", "-q", "side")
    git(clone.path, "rebase", "-q", "main")
    assert (held(clone)["subject"], held(clone)["priority"]) == ("ours", 0), "upstream is our side of a rebase"
    assert [each["parked"] for each in parked(clone)] == ["theirs"]


def cherry_picked(folder):
    clone = two_sides(folder, edits(subject="ours"), edits(priority=0))
    git(clone.path, "cherry-pick", "side")
    assert (held(clone)["subject"], held(clone)["priority"]) == ("ours", 0)


def reverted(folder):
    clone = made(folder)
    with_driver(clone)
    edits(priority=0)(clone)
    clone.commit("urgent")
    edits(subject="better")(clone)
    clone.commit("words")
    git(clone.path, "revert", "--no-edit", "HEAD~1")
    assert held(clone)["subject"] == "better" and held(clone).get("priority", 2) == 2


def stash_popped(folder):
    clone = with_driver(made(folder))
    edits(subject="unfinished")(clone)
    git(clone.path, "stash", "-q")
    edits(priority=0)(clone)
    clone.commit("meanwhile")
    git(clone.path, "stash", "pop", "-q")
    assert (held(clone)["subject"], held(clone)["priority"]) == ("unfinished", 0)


def parked(clone, board=".tasks"):
    folder = clone.path / board / ".local" / "conflicts"
    found = [json.loads(path.read_text()) for path in sorted(folder.iterdir())] if folder.is_dir() else []
    return [pair for each in found for pair in each["fields"].values()]


def texts_of_both(folder):
    """Ours is kept, theirs parked, and doctor names it."""
    clone = two_sides(folder, edits(description="ours, long"), edits(description="theirs, long"))
    git(clone.path, "merge", "-q", "--no-edit", "side")
    assert held(clone)["description"] == "ours, long"
    assert parked(clone) == [{"kept": "ours, long", "parked": "theirs, long"}]
    assert git(clone.path, "status", "--porcelain") == "", "what is parked is this machine's"
    fixed(clone, "parked")


def completed_over_claimed(folder):
    def completes(clone):
        clone.board("bob").claim("t")
        clone.board("bob").complete("t", result="done by bob")

    clone = two_sides(folder, claims("alice"), lambda clone: None)
    far = Clone(folder / "far", Clock(), clone.path)
    git(far.path, "switch", "-q", "side")
    completes(far)
    far.commit("done")
    git(clone.path, "pull", "-q", "--no-rebase", "--no-edit", str(far.path), "side")
    assert (held(clone)["status"], held(clone)["owner"], held(clone)["result"]) == ("completed", "bob", "done by bob")
    refused("already_resolved", clone.board("alice").complete, "t")


def two_machines_claim(folder, here_name="alice", there_name="bob"):
    """Both machines granted epoch 1: after the merge one holds the task, on both, and the other is refused, on both."""
    here, far = pulled(folder)
    with_driver(here)
    git(here.path, "push", "-q")
    git(far.path, "pull", "-q")
    set_up_git(str(far.path / ".tasks"), yes=True)
    here.board(here_name, "here").claim("t", ttl=15)
    here.commit("claimed here")
    git(here.path, "push", "-q")
    far.clock.sleep(seconds=30)
    far.board(there_name, "there").claim("t", ttl=15)
    far.commit("claimed there")
    git(far.path, "pull", "-q", "--no-rebase", "--no-edit")
    git(far.path, "push", "-q")
    git(here.path, "pull", "-q")
    assert here.file("t").read_bytes() == far.file("t").read_bytes()
    winner, loser = here.board(here_name, "here"), far.board(there_name, "there")
    for given in ("t", "t#1"):
        for act, more in ((loser.complete, {}), (loser.release, {}), (loser.heartbeat, {}), (loser.claim, {})):
            assert refused("already_claimed" if act == loser.claim else "superseded", act, given, **more).task == "t"
    assert loser.beat(["t#1"], ttl=15)[1], "a server that beats is told"
    assert far.board().get("t").claim is None
    far.clock.sleep(minutes=60)
    assert far.state("t") == "in_progress", "the lease of the claim that is over says nothing of the other"
    assert winner.beat(["t#1"], ttl=15) == ({"t#1"}, [])
    winner.update("t", Edit(note="still mine"))
    winner.complete("t#1")
    here.commit("completed")
    git(here.path, "push", "-q")
    git(far.path, "pull", "-q")
    refused("already_resolved", loser.claim, "t")


def two_machines_of_one_actor(folder):
    two_machines_claim(folder, "agent", "agent")


def two_machines_and_a_dialect(folder):
    """A file without epochs: the name in the file decides."""
    clone = made(folder)
    clone.file("x").write_text('{"id": "x", "subject": "theirs", "status": "pending", "owner": null, "blockedBy": []}')
    with_driver(clone)
    far = Clone(folder / "far", Clock(), clone.path)
    set_up_git(str(far.path / ".tasks"), yes=True)
    for each, name in ((clone, "alice"), (far, "bob")):
        each.board(name).claim("x")
        each.commit("claimed")
    git(far.path, "pull", "-q", "--no-rebase", "--no-edit")
    assert list(held(far, "x")) == ["id", "subject", "status", "owner", "blockedBy"], "no bookkeeping comes in"
    assert held(far, "x")["owner"] == "alice"
    refused("superseded", far.board("bob").complete, "x")
    git(clone.path, "pull", "-q", str(far.path))
    clone.board("alice").complete("x")


def added_on_both(folder):
    clone = two_sides(
        folder,
        lambda clone: clone.file("new").write_text('{"id": "new", "subject": "a", "status": "pending", "owner": null, "blockedBy": ["t"]}'),
        lambda clone: clone.file("new").write_text('{"id": "new", "subject": "a", "status": "pending", "owner": null, "blockedBy": ["u"]}'),
    )  # fmt: skip
    git(clone.path, "merge", "-q", "--no-edit", "side")
    assert held(clone, "new")["blockedBy"] == ["t", "u"]


def renamed_and_changed(folder):
    """A file that moved on one side is still the same task."""

    def moves(clone):
        git(clone.path, "mv", ".tasks/t.json", ".tasks/other name.json")

    clone = two_sides(folder, moves, edits(priority=0))
    edits_here = clone.path / ".tasks" / "other name.json"
    git(clone.path, "merge", "-q", "--no-edit", "side")
    assert json.loads(edits_here.read_text())["priority"] == 0 and not clone.file("t").exists()


def another_task_taken_for_it(folder):
    """git takes a new file for a removed one under another name: the changes of one task are not put into another."""

    def replaced(clone):
        data = held(clone)
        clone.file("t").unlink()
        clone.file("w").write_text(json.dumps(data | {"id": "w"}, indent=2) + "\n")

    clone = two_sides(folder, replaced, edits(priority=0))
    git(clone.path, "merge", "-q", "--no-edit", "side", check=False)
    assert "<<<<<<<" in clone.file("w").read_text() or json.loads(clone.file("w").read_text()).get("priority", 2) == 2
    assert "different tasks" in str(fixed(clone).lines())


def one_side_broken(folder):
    """Nothing is guessed: git's own markers, and doctor says what a person can do."""

    def breaks(clone):
        clone.file("t").write_text(
            clone.file("t")
            .read_text()
            .replace(
                '"subject": "task t",',
                '"subject": "task',
            )
        )

    clone = two_sides(folder, edits(subject="ours"), breaks)
    git(clone.path, "merge", "-q", "--no-edit", "side", check=False)
    assert "<<<<<<<" in clone.file("t").read_text() and ">>>>>>>" in clone.file("t").read_text()
    before = clone.file("t").read_bytes()
    fixed(clone, "conflict")
    assert clone.file("t").read_bytes() == before
    assert parked(clone) == []


def removed_and_changed(folder):
    """That is git's to ask about; the changed file stays meanwhile."""
    clone = two_sides(folder, lambda clone: clone.file("t").unlink(), edits(priority=0))
    git(clone.path, "merge", "-q", "--no-edit", "side", check=False)
    assert held(clone)["priority"] == 0
    location = find_board(str(clone.path), {}, str(clone.path))
    (finding,) = [each for each in doctor(location).findings if each.code == "unmerged"]
    assert "one side removed it" in finding.found and "git rm" in finding.fix


def without_the_driver(folder):
    """git stops with markers; doctor merges from its three stages, and says what tells git."""
    clone = two_sides(folder, edits(subject="ours", priority=1), edits(subject="theirs", priority=0), driver=False)
    git(clone.path, "merge", "-q", "--no-edit", "side", check=False)
    marked = clone.file("t").read_bytes()
    assert b"<<<<<<<" in marked
    answer = fixed(clone, "parked", "unmerged")
    assert held(clone)["subject"] == "ours"
    assert sorted(pair["parked"] for pair in parked(clone) if isinstance(pair["parked"], str)) == ["theirs"]
    assert (clone.path / answer.copies / "t.json").read_bytes() == marked
    git(clone.path, "commit", "-q", "--no-edit")
    assert git(clone.path, "status", "--porcelain") == ""


def rebase_without_the_driver(folder):
    clone = two_sides(folder, edits(subject="ours"), edits(priority=0, subject="theirs"), driver=False)
    git(clone.path, "switch", "-q", "side")
    git(clone.path, "rebase", "-q", "main", check=False)
    fixed(clone, "parked")
    git(clone.path, "-c", "core.editor=true", "rebase", "--continue")
    assert (held(clone)["subject"], held(clone)["priority"]) == ("ours", 0)


def cherry_pick_without_the_driver(folder):
    clone = two_sides(folder, claims("alice"), edits(priority=0, owner="bob", epoch=1), driver=False)
    git(clone.path, "cherry-pick", "side", check=False)
    fixed(clone)
    git(clone.path, "-c", "core.editor=true", "cherry-pick", "--continue")
    assert (held(clone)["status"], held(clone)["owner"], held(clone)["priority"]) == ("in_progress", "alice", 0)


def driver_gone(folder):
    """The program that the config names is no longer there: git stops, and leaves our side without a mark."""
    clone = two_sides(folder, edits(subject="ours"), edits(priority=0))
    git(clone.path, "config", "merge.taskwall.driver", "/nowhere/python -P -m taskwall merge-driver -- %O %A %B %P %L")
    git(clone.path, "merge", "-q", "--no-edit", "side", check=False)
    assert "priority" not in held(clone)
    fixed(clone, "driver_inert")
    assert (held(clone)["subject"], held(clone)["priority"]) == ("ours", 0)


def in_a_linked_worktree(folder):
    """What is parked lies at the board that everybody uses, and a hostile module of the worktree is not loaded."""
    clone = two_sides(folder, edits(subject="ours"), edits(subject="theirs"))
    git(clone.path, "worktree", "add", "-q", str(folder / "linked"), "side")
    (folder / "linked" / "json.py").write_text("raise SystemExit('loaded')")
    git(folder / "linked", "merge", "-q", "--no-edit", "main")
    assert json.loads((folder / "linked" / ".tasks" / "t.json").read_text())["subject"] == "theirs"
    assert parked(clone) == [{"kept": "theirs", "parked": "ours"}]
    assert not (folder / "linked" / ".tasks" / ".local").exists()


def hostile_names(folder):
    clone = made(folder)
    name = ".tasks/-x $(touch pwned) 'q\" é.json"
    (clone.path / name).write_text('{"id": "x", "subject": "s", "status": "pending", "blockedBy": [], "owner": null}')
    with_driver(clone)
    git(clone.path, "branch", "side")
    (clone.path / name).write_text((clone.path / name).read_text().replace('"s"', '"ours"'))
    clone.commit("here")
    git(clone.path, "switch", "-q", "side")
    (clone.path / name).write_text((clone.path / name).read_text().replace("[]", '["t"]'))
    clone.commit("there")
    git(clone.path, "switch", "-q", "main")
    git(clone.path, "merge", "-q", "--no-edit", "side")
    found = json.loads((clone.path / name).read_text())
    assert (found["subject"], found["blockedBy"]) == ("ours", ["t"])
    assert "pwned" not in os.listdir(clone.path)


def set_up_and_taken_back(folder):
    """Byte for byte, with a config that does not end in a line break, and attributes of somebody's own."""
    clone = made(folder)
    config, attributes = clone.path / ".git" / "config", clone.path / ".gitattributes"
    config.write_text(config.read_text() + "[user]\n\tname = t")
    attributes.write_bytes(b"*.png binary\r\n* text=auto")
    before = config.read_bytes(), attributes.read_bytes()
    with_driver(clone)
    assert set_up_git(str(clone.path / ".tasks"), check=True).exit == 0
    assert b"merge=taskwall" in attributes.read_bytes()
    assert shlex.split(git(clone.path, "config", "merge.taskwall.driver"))[0] == sys.executable
    assert set_up_git(str(clone.path / ".tasks"), remove=True, yes=True).done
    assert (config.read_bytes(), attributes.read_bytes()) == before
    assert set_up_git(str(clone.path / ".tasks"), check=True).exit == 4


SCENARIOS = (
    merged_quietly, merged_the_other_way, rebased, cherry_picked, reverted, stash_popped, texts_of_both,
    completed_over_claimed, two_machines_claim, two_machines_of_one_actor, two_machines_and_a_dialect, added_on_both,
    renamed_and_changed, another_task_taken_for_it, one_side_broken, removed_and_changed, without_the_driver,
    rebase_without_the_driver, cherry_pick_without_the_driver, driver_gone, in_a_linked_worktree, hostile_names,
    set_up_and_taken_back,
)  # fmt: skip
QUICK = (texts_of_both, without_the_driver, two_machines_claim)


def run(scenario, folder):
    """What went otherwise than it should, None when nothing did."""
    place = folder / scenario.__name__
    place.mkdir()
    try:
        scenario(place)
    except (AssertionError, ValueError, OSError, subprocess.SubprocessError, pytest.fail.Exception) as error:
        return f"{scenario.__name__}: {error!r}"
    return None


def test_git_merges_quickly(tmp_path, figure):
    bad = [fault for each in QUICK if (fault := run(each, tmp_path))]
    figure("git merge, quick", tried=len(QUICK), bad=bad, at_least=3)


@pytest.mark.slow
def test_git_merge_rebase_and_cherry_pick(tmp_path, figure):
    bad = [fault for each in SCENARIOS if (fault := run(each, tmp_path))]
    figure("git merge, rebase, cherry-pick", tried=len(SCENARIOS), bad=bad, at_least=20)


def test_without_the_rule_of_the_claim_in_the_file_two_would_hold_one_task(tmp_path, monkeypatch):
    from taskwall.core.model import Claim

    monkeypatch.setattr(Claim, "is_of", lambda self, task: True)
    assert run(two_machines_claim, tmp_path)
