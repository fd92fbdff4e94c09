"""What editors, `rm` and git do to a board behind its back, while claims are held: every row of the table, with real git.

Each scenario is a function that asserts. All of them together are one figure; with a seeded bug, the scenario that the
bug concerns must fail.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from conftest import Clock, add, open_board
from taskwall.core import naming as core_naming
from taskwall.core import view as core_view
from taskwall.core.errors import Refused
from taskwall.core.model import Settings
from taskwall.core.rules import Edit, change
from taskwall.stores.files import dialects, folder
from taskwall.stores.files import view as files_view
from taskwall.stores.files.store import FileStore

GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "t"), ("EMAIL", "t@t"))
    },
}


def git(folder, *args, check=True):
    done = subprocess.run(
        ["git", "-C", str(folder), *args], capture_output=True, text=True, env=os.environ | GIT_ENV, timeout=60
    )
    assert not check or done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


class Clone:
    """A working copy with a board in it, on a machine of its own."""

    def __init__(self, path, clock, source=None):
        self.path, self.clock = path, clock
        if source:
            git(path.parent, "clone", "-q", str(source), str(path))
        else:
            (path / ".tasks").mkdir(parents=True)
            git(path, "init", "-q", "-b", "main")

    def file(self, task_id):
        return self.path / ".tasks" / f"{task_id}.json"

    def board(self, name="agent", session=None):
        """The board as a fresh process sees it."""
        store = FileStore(str(self.path / ".tasks"), Settings(durability="fast"), self.clock.monotonic)
        return open_board(store, name, session, clock=self.clock, root=self.path)

    def commit(self, message="a state"):
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "--allow-empty", "-m", message)

    def edit(self, task_id, **changes):
        path = self.file(task_id)
        path.write_text(json.dumps(json.loads(path.read_text()) | changes, indent=2) + "\n")

    def state(self, task_id):
        return self.board().get(task_id).row.state

    def shown(self, task_id):
        return self.board().get(task_id).row.task


@pytest.fixture
def repository(tmp_path):
    return made(tmp_path)


def made(folder, name="work"):
    """A repository with the tasks t, u, v (v waits for u), all committed."""
    clone = Clone(folder / name, Clock())
    for task_id, *blockers in (["t"], ["u"], ["v", "u"]):
        add(clone.board("user"), task_id, *blockers)
    clone.commit()
    return clone


def refused(code, act, *args, **more):
    with pytest.raises(Refused) as refusal:
        act(*args, **more)
    assert refusal.value.code == code, (code, refusal.value.code, refusal.value.message)
    for hint in (refusal.value.message, refusal.value.next):
        assert not any(word in hint for word in ("--force", "reset --hard", "checkout -f", "clean", "rm ")), hint
    return refusal.value


# By hand


def edited_by_hand(folder):
    here = made(folder)
    here.board().claim("t")
    here.edit("t", subject="better words", colour="red")
    here.edit("u", priority=0, blockedBy=["nowhere"])
    assert here.shown("t").subject == "better words"
    here.board().update("t", Edit(note="so it is"))
    assert here.shown("t").extra == {"colour": "red"}
    here.board().complete("t")
    assert json.loads(here.file("t").read_text())["colour"] == "red"
    assert "nowhere" in refused("blocked", here.board().claim, "u").message


def renamed_by_hand(folder):
    here = made(folder)
    here.board().claim("t")
    here.file("t").rename(here.path / ".tasks" / "other name.json")
    here.board().complete("t")
    assert json.loads((here.path / ".tasks" / "other name.json").read_text())["status"] == "completed"
    assert not here.file("t").exists()


def copied_by_hand(folder):
    here = made(folder)
    here.board().claim("t")
    copy = here.path / ".tasks" / "t copy.json"
    copy.write_bytes(here.file("t").read_bytes())
    both = (copy.read_bytes(), here.file("t").read_bytes())
    refusal = refused("unreadable", here.board().complete, "t")
    assert "t copy.json" in refusal.message and "t.json" in refusal.message
    assert both == (copy.read_bytes(), here.file("t").read_bytes())
    copy.unlink()
    here.board().complete("t")


BROKEN = {
    "truncated": lambda data: data[:40],
    "empty": lambda _: b"",
    "zeros": lambda data: b"\0" * len(data),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "bad UTF-8": lambda data: data.replace(b"task u", b"task \xff"),
    "conflict markers": lambda data: data.replace(b'  "owner"', b'<<<<<<< HEAD\n=======\n>>>>>>> x\n  "owner"'),
}


def broken_by_hand(folder):
    here = made(folder)
    here.board().claim("u")
    good = here.file("u").read_bytes()
    for kind, damage in BROKEN.items():
        bad = damage(good)
        assert bad != good
        here.file("u").write_bytes(bad)
        for act in (here.board().complete, here.board().release, here.board("user").cancel):
            assert "u.json" in refused("unreadable", act, "u").message
        assert "u.json" in refused("blocked", here.board().claim, "v").message, kind
        assert here.board().next().rows[0].task.id == "t", "the rest goes on"
        assert here.file("u").read_bytes() == bad, kind
        here.file("u").write_bytes(good)
        assert here.state("u") == "in_progress"
    here.board().complete("u")
    here.board().claim("v")


def blocker_deleted(folder):
    here = made(folder)
    here.file("u").unlink()
    assert "u does not exist" in refused("blocked", here.board().claim, "v").message
    assert [row.task.id for row in here.board().next(9).rows] == ["t"]
    here.board().complete(here.board().claim().row.task.token)
    assert ("u", "v") in here.board().next().waiting.missing


def blocker_deleted_while_its_dependent_is_held(folder):
    here = made(folder)
    here.board().claim("u")
    here.board().complete("u")
    here.board().claim("v")
    here.file("u").unlink()
    assert here.state("v") == "in_progress"
    assert "u does not exist" in refused("blocked", here.board().complete, "v").message
    git(here.path, "restore", ".tasks/u.json")
    here.edit("u", status="completed")
    here.board().complete("v")


def deleted_while_claimed(folder):
    here = made(folder)
    here.board().claim("t")
    here.file("t").unlink()
    for name in ("t", "t#1"):
        for act in (here.board().complete, here.board().release, here.board("bob").claim):
            refusal = refused("unknown_task", act, name)
            assert "removed while agent held it" in refusal.message
            assert "git restore .tasks/t.json" in refusal.next
    assert not here.file("t").exists(), "nothing is written back of itself"
    git(here.path, "restore", ".tasks/t.json")
    assert here.state("t") == "in_progress", "the claim is of the ledger"
    here.board().complete("t#1")
    assert (here.shown("t").status, here.shown("t").epoch) == ("completed", 1)


# By git


def branch_switched(folder):
    here = made(folder)
    git(here.path, "branch", "before")
    here.board().claim("t")
    here.commit("claimed")
    git(here.path, "switch", "-q", "before")
    told = here.shown("t")
    assert (told.status, told.owner, told.epoch) == ("in_progress", "agent", 1)
    assert any("taken back" in notice for notice in told.notices)
    refused("already_claimed", here.board("bob").claim, "t")
    assert "t" not in [row.task.id for row in here.board("bob").next(9).rows]
    here.board().update("t", Edit(note="on the other branch"))
    here.board().complete("t")
    assert json.loads(here.file("t").read_text())["epoch"] == 1
    here.commit("completed there")
    git(here.path, "switch", "-q", "main")  # where it is still in progress, at the same epoch: the file says so
    assert here.state("t") == "in_progress"
    here.board().complete("t")


def released_then_switched_back(folder):
    """A checkout that brings back the file of a claim that has ended gives nobody the task."""
    here = made(folder)
    here.board().claim("t")
    here.commit("claimed at 1")
    here.board().release("t")
    here.board("bob").claim("t")
    here.board("bob").release("t")
    git(here.path, "restore", ".tasks/t.json")
    assert (here.shown("t").status, here.shown("t").epoch, here.shown("t").owner) == ("pending", 2, None)
    refused("superseded", here.board().complete, "t#1")
    assert here.board("bob").claim("t").row.task.epoch == 3


def stashed_and_popped(folder):
    here = made(folder)
    here.board().claim("t")
    git(here.path, "stash", "-q")
    assert json.loads(here.file("t").read_text())["status"] == "pending"
    assert here.state("t") == "in_progress"
    refused("already_claimed", here.board("bob").claim, "t")
    git(here.path, "stash", "pop", "-q")
    assert here.shown("t").notices == ()
    here.board().complete("t")


def cleaned(folder):
    here = made(folder)
    here.board().claim("t", ttl=15)
    here.board("bob").claim("u")
    here.commit("claimed")
    git(here.path, "clean", "-fdxq")
    assert not (here.path / ".tasks" / ".local").exists()
    here.clock.sleep(minutes=60)
    assert [here.state(i) for i in ("t", "u", "v")] == ["in_progress", "in_progress", "blocked"]
    refused("already_claimed", here.board("bob").claim, "t")
    refused("not_owner", here.board("bob").complete, "t")
    here.board().complete("t#1")
    here.board("bob").complete("u")
    assert here.board("bob").claim("v").row.task.epoch == 1


def merged_with_markers(folder):
    here = made(folder)
    git(here.path, "branch", "side")
    here.board().claim("u")
    here.commit("claimed here")
    git(here.path, "switch", "-q", "side")
    here.edit("u", status="completed", owner="bob", epoch=1)
    here.commit("completed there")
    git(here.path, "switch", "-q", "main")
    git(here.path, "merge", "side", check=False)
    marked = here.file("u").read_bytes()
    assert b"<<<<<<<" in marked
    refusal = refused("unreadable", here.board().complete, "u")
    assert "u.json:" in refusal.message and "conflict markers" in refusal.message
    assert "conflict markers" in refused("blocked", here.board().claim, "v").message
    here.board("bob").claim("t")
    here.board("bob").complete("t")
    assert here.file("u").read_bytes() == marked
    git(here.path, "checkout", "-q", "--theirs", ".tasks/u.json")
    assert here.state("u") == "completed", "finished in the file wins"
    here.board().claim("v")


def pulled(folder):
    """Two machines, the second with what the first pushed."""
    here = made(folder)
    git(folder, "init", "-q", "--bare", "-b", "main", "hub.git")
    git(here.path, "remote", "add", "origin", str(folder / "hub.git"))
    git(here.path, "push", "-q", "-u", "origin", "main")
    return here, Clone(folder / "far", Clock(), folder / "hub.git")


def cycle_pulled(folder):
    here, far = pulled(folder)
    add(far.board("user"), "w", "v")
    far.edit("u", blockedBy=["w"])
    far.commit("a cycle, by hand")
    git(far.path, "push", "-q")
    here.board().claim("u")
    git(here.path, "stash", "-q")
    git(here.path, "pull", "-q")
    git(here.path, "stash", "pop", "-q", check=False)
    git(here.path, "checkout", "-q", "HEAD", "--", ".tasks/u.json")
    git(here.path, "reset", "-q")
    assert here.state("u") == "in_progress"
    refused("blocked", here.board().complete, "u")
    here.board().release("u")
    assert [here.state(i) for i in ("u", "v", "w")] == ["blocked"] * 3
    (path,) = here.board().why("v").waiting.cycles
    assert path[0] == path[-1] and set(path) == {"u", "v", "w"}
    assert here.board().claim().row.task.id == "t", "the rest goes on"
    refused("nothing_actionable", here.board("bob").claim)
    here.board("user").update("u", Edit(remove_blocked_by=("w",)))
    assert here.state("u") == "ready"


def blocker_deletion_pulled(folder):
    here, far = pulled(folder)
    far.file("u").unlink()
    far.commit("u is gone")
    git(far.path, "push", "-q")
    here.board().claim("t")
    git(here.path, "pull", "-q")
    assert "u does not exist" in refused("blocked", here.board("bob").claim, "v").message
    here.board().complete("t")


def deletion_of_a_claimed_task_pulled(folder):
    here, far = pulled(folder)
    here.board().claim("t")
    here.commit("claimed")
    far.file("t").unlink()
    far.commit("t is gone")
    git(far.path, "push", "-q")
    git(here.path, "pull", "-q", "--no-rebase", "--no-edit", "-X", "theirs", check=False)
    git(here.path, "rm", "-q", ".tasks/t.json", check=False)
    git(here.path, "commit", "-q", "-m", "merged", check=False)
    assert not here.file("t").exists()
    refusal = refused("unknown_task", here.board().complete, "t")
    assert "git log -1 --diff-filter=D -- .tasks/t.json" in refusal.next
    commit = git(here.path, "log", "-1", "-m", "--format=%H", "--diff-filter=D", "--", ".tasks/t.json").split()[0]
    git(here.path, "restore", f"--source={commit}^", ".tasks/t.json")
    here.board().complete("t")
    assert here.shown("t").status == "completed"


def two_machines(folder, name="far-agent"):
    """A pull brings a larger epoch: the claim here is superseded, whatever the holder there is called."""
    here, far = pulled(folder)
    here.board().claim("t")
    here.commit("claimed here")
    git(here.path, "push", "-q")
    git(far.path, "pull", "-q")
    refused("already_claimed", far.board("bob").claim, "t")
    assert far.board(name).claim("t", steal=True, reason="the other machine is off").row.task.epoch == 2
    far.commit("taken over there")
    git(far.path, "push", "-q")
    git(here.path, "pull", "-q")
    before = here.file("t").read_bytes()
    for given in ("t", "t#1"):
        for act, more in (
            (here.board().complete, {}),
            (here.board().release, {}),
            (here.board().heartbeat, {}),
            (here.board().update, {"edit": Edit(subject="mine")}),
        ):
            assert refused("superseded", act, given, **more).by == (name,)
    assert here.file("t").read_bytes() == before
    far.board(name).complete("t")
    far.commit("completed there")
    git(far.path, "push", "-q")
    git(here.path, "pull", "-q")
    assert here.state("t") == "completed"


def two_machines_of_one_name(folder):
    here, far = pulled(folder)
    here.board().claim("t")
    here.commit("claimed here")
    git(here.path, "push", "-q")
    git(far.path, "pull", "-q")
    far.board("user").update("t", Edit(note="stuck"))
    far.edit("t", status="pending", owner=None)
    far.board().claim("t")
    assert far.shown("t").epoch == 2
    far.commit("claimed anew there")
    git(far.path, "push", "-q")
    git(here.path, "pull", "-q")
    for given in ("t", "t#1"):
        refused("superseded", here.board().complete, given)
    far.board().complete("t")


def dialect_file_reverted(folder):
    """A file of another program has no epoch: a beating claim outlives a checkout of it."""
    here = made(folder)
    here.file("x").write_text('{"id": "x", "subject": "theirs", "status": "pending", "blockedBy": []}')
    here.commit("theirs")
    here.board().claim("x", ttl=15)
    git(here.path, "restore", ".tasks/x.json")
    assert here.shown("x").owner == "agent"
    refused("already_claimed", here.board("bob").claim, "x")
    here.board().complete("x#1")
    assert json.loads(here.file("x").read_text())["status"] == "completed"


SCENARIOS = (
    edited_by_hand, renamed_by_hand, copied_by_hand, broken_by_hand, blocker_deleted,
    blocker_deleted_while_its_dependent_is_held, deleted_while_claimed, branch_switched, released_then_switched_back,
    stashed_and_popped, cleaned, merged_with_markers, cycle_pulled, blocker_deletion_pulled,
    deletion_of_a_claimed_task_pulled, two_machines, two_machines_of_one_name, dialect_file_reverted,
)  # fmt: skip
QUICK = (edited_by_hand, broken_by_hand, deleted_while_claimed, branch_switched, stashed_and_popped, cleaned)


def fault(scenario, folder):
    """What went otherwise than the table says, None when nothing did."""
    place = folder / scenario.__name__
    place.mkdir()
    try:
        scenario(place)
    except (AssertionError, Refused, pytest.fail.Exception) as error:
        return f"{scenario.__name__}: {error!r}"
    return None


def faults(scenarios, folder):
    return [found for scenario in scenarios if (found := fault(scenario, folder))]


def test_outside_edits_quickly(tmp_path, figure):
    figure("outside edits and git, quick", tried=len(QUICK), bad=faults(QUICK, tmp_path), at_least=6)


@pytest.mark.slow
def test_outside_edits_of_every_kind_while_claims_are_held(tmp_path, figure):
    figure(
        "outside edits and git while claims are held",
        tried=len(SCENARIOS),
        bad=faults(SCENARIOS, tmp_path),
        at_least=18,
    )


# The same scenarios find each of these when it is put in


def without_ledger(monkeypatch):
    monkeypatch.setattr(files_view, "settle", lambda task, *_: task)


def epochs_of_files_alone(monkeypatch):
    monkeypatch.setattr(change, "was_mine", lambda *_: False)


def one_name_one_holder(monkeypatch):
    monkeypatch.setattr(change, "is_mine", lambda view, task, actor, epoch: task.owner == actor.name)


def broken_files_are_skipped(monkeypatch):
    tasks = folder.Folder.tasks

    def healthy(self, pending):
        found, names = tasks(self, pending)
        return {i: task for i, task in found.items() if not task.flaw}, names

    monkeypatch.setattr(folder.Folder, "tasks", healthy)


def missing_blockers_do_not_block(monkeypatch):
    monkeypatch.setattr(
        core_view.View, "blockers", lambda self, task: tuple(i for i in task.blocked_by if self.get(i) is not None)
    )


def unknown_keys_are_dropped(monkeypatch):
    monkeypatch.setattr(files_view.View, "__init__", _forgetful(files_view.View.__init__))


def _forgetful(init):
    def __init__(self, tasks, claims, settings):
        init(self, (task.replace(extra={}) for task in tasks), claims, settings)

    return __init__


def removed_tasks_are_merely_unknown(monkeypatch):
    monkeypatch.setattr(core_naming, "removed", lambda _: core_naming.UnknownTask("no such task"))


SEEDED = {
    without_ledger: branch_switched,
    epochs_of_files_alone: two_machines,
    one_name_one_holder: two_machines_of_one_name,
    broken_files_are_skipped: broken_by_hand,
    missing_blockers_do_not_block: blocker_deleted,
    unknown_keys_are_dropped: edited_by_hand,
    removed_tasks_are_merely_unknown: deleted_while_claimed,
}


@pytest.mark.parametrize("bug", SEEDED, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(tmp_path, monkeypatch, bug):
    bug(monkeypatch)
    assert fault(SEEDED[bug], tmp_path), "the scenario sees nothing"
