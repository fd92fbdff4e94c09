"""What an import promises whatever the format: no twins, nothing overwritten, no ring closed, all of it or nothing."""

import json
import re
import subprocess
import sys
import threading

import pytest
from conftest import Clock, open_board
from hypothesis import given, settings
from hypothesis import strategies as st

from importing import Project, lines, told
from taskwall.core.model import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, Actor, Task, id_flaw
from taskwall.core.rules.incoming import Incoming
from taskwall.core.state import find_cycle
from taskwall.interop.importers import FORMATS
from taskwall.interop.importers.source import Text
from taskwall.render import text
from taskwall.wording import UNSAFE
from taskwall.stores.files.strict import parse
from taskwall.stores.memory import MemoryStore


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def issue(id, *blockers, **more):
    told = {"id": id, "title": f"issue {id}", "status": "open", "priority": 2, "issue_type": "task", "labels": ["x"]}
    edges = [{"issue_id": id, "depends_on_id": b, "type": "blocks"} for b in blockers]
    return told | {"created_at": "2026-01-06T18:00:00Z", "dependencies": edges, "content_hash": "c"} | more


def test_a_second_import_of_an_unchanged_source_changes_no_byte(project):
    source = project.write(
        "b.jsonl", lines(issue("bd-1", "bd-2", "bd-9"), issue("bd-2", "bd-1"), issue("x y", status="in_progress"))
    )
    first = project.bring(source)
    before = project.texts
    again = project.bring(source)
    assert (len(first.created), again.created, again.updated, again.unchanged) == (3, (), (), 3)
    assert project.texts == before
    assert source.read_text() == lines(
        issue("bd-1", "bd-2", "bd-9"), issue("bd-2", "bd-1"), issue("x y", status="in_progress")
    )


def test_a_second_import_updates_what_was_not_changed_here_and_reports_the_rest(project):
    project.bring_text("b.jsonl", lines(issue("bd-1"), issue("bd-2")))
    project.edit("bd-1", subject="mine", priority=0)
    changed = issue("bd-1", "bd-2", title="theirs", priority=1, description="new", status="closed", content_hash="d")
    answer = project.bring_text("b.jsonl", lines(changed, issue("bd-2"), issue("bd-3")))
    task = project.tasks["bd-1"]
    assert (answer.created, answer.updated, answer.unchanged) == (("bd-3",), ("bd-1",), 1)
    assert (task["subject"], task["priority"], task["description"]) == ("mine", 0, "new")
    assert (task["status"], task["blockedBy"], task["rev"]) == ("completed", ["bd-2"], 2)
    assert task["metadata"]["source"]["kept"] == {"content_hash": "d"}
    assert told(answer, "changed here") == ["b.jsonl:1: bd-1: its subject", "b.jsonl:1: bd-1: its priority"]
    before = project.texts
    assert project.bring(project.folder / "b.jsonl").updated == ()
    assert project.texts == before


def test_what_somebody_claimed_here_stays_theirs(project):
    project.bring_text("b.jsonl", lines(issue("bd-1")))
    project.edit("bd-1", status="in_progress", owner="ann", epoch=1)
    answer = project.bring_text("b.jsonl", lines(issue("bd-1", status="closed", labels=["y"])))
    task = project.tasks["bd-1"]
    assert (task["status"], task["owner"], task["labels"]) == ("in_progress", "ann", ["y"])
    assert told(answer, "changed here") == ["b.jsonl:1: bd-1: its status"]


def test_a_task_claimed_and_given_back_is_unchanged_here(project):
    project.bring_text("b.jsonl", lines(issue("bd-1")))
    project.edit("bd-1", status="pending", owner=None, epoch=1, startedAt="2026-01-07T00:00:00Z", attempts=1)
    project.bring_text("b.jsonl", lines(issue("bd-1", status="closed")))
    assert project.tasks["bd-1"]["status"] == "completed"


def test_notes_written_here_and_comments_written_there_both_stay(project):
    def comments(*texts):
        return [{"author": "ann", "text": text, "created_at": "2026-01-07T00:00:00Z"} for text in texts]

    project.bring_text("b.jsonl", lines(issue("bd-1", comments=comments("one"))))
    mine = {"at": "2026-01-08T00:00:00Z", "by": "me", "text": "mine"}
    project.edit("bd-1", notes=[*project.tasks["bd-1"]["notes"], mine])
    project.bring_text("b.jsonl", lines(issue("bd-1", comments=comments("one", "two"))))
    assert [note["text"] for note in project.tasks["bd-1"]["notes"]] == ["one", "mine", "two"]


def test_ids_that_are_taken_or_impossible_become_others_and_the_same_ones_each_time(project, tmp_path):
    odd = ["own", "OWN", "a/b", "..", "con", "-x", "x" * 300, "a b", "e\u0301", "任务"]
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        one = Project(tmp_path / str(number))
        one.write("here/.tasks/own.json", json.dumps({"id": "own", "subject": "own", "status": "pending", "rev": 1}))
        answer = one.bring_text("b.jsonl", lines(*(issue(name, "own") for name in odd)))
        found = {t["metadata"]["source"]["id"]: t["id"] for t in one.tasks.values() if "metadata" in t}
        assert list(found.values()).count("own") == 0
        assert set(found) == set(odd)
        assert all(id_flaw(i) is None for i in found.values())
        assert len({i.casefold() for i in (*found.values(), "own")}) == len(odd) + 1
        # `own` means the task of the source, not the one that was here before.
        assert {tuple(t["blockedBy"]) for t in one.tasks.values() if t["id"] != "own"} <= {(found["own"],), ()}
        if number == 1:
            first = found
    assert found == first
    assert found["任务"] == "任务"
    assert len(told(answer, "renamed")) == len(odd) - 1


def test_a_missing_blocker_that_comes_later_takes_its_place(project):
    project.bring_text("b.jsonl", lines(issue("bd-1", "bd/2")))
    named = project.tasks["bd-1"]["blockedBy"]
    project.bring_text("b.jsonl", lines(issue("bd-1", "bd/2"), issue("bd/2")))
    assert named == project.tasks["bd-1"]["blockedBy"] == [project.tasks["bd-2"]["id"]]


def test_boards_with_the_same_numbers_are_not_taken_for_each_other(project):
    for shop in ("a", "b"):
        task = {"id": 1, "title": f"task of {shop}", "status": "pending"}
        project.write(f"{shop}/.taskmaster/tasks/tasks.json", json.dumps({"master": {"tasks": [task]}}))
        project.bring(project.folder / shop)
    assert sorted(t["subject"] for t in project.tasks.values()) == ["task of a", "task of b"]
    assert project.bring(project.folder / "b").unchanged == 1


def test_an_imported_task_whose_file_cannot_be_read_gets_no_twin(project):
    source = project.write("b.jsonl", lines(issue("bd-1"), issue("bd-2", "bd-1")))
    project.bring(source)
    broken = project.here / ".tasks" / "bd-1.json"
    broken.write_text("<<<<<<< HEAD\n" + broken.read_text())
    before = project.texts
    answer = project.bring(source)
    assert project.texts == before
    assert "bd-1 cannot be read" in told(answer, "changed here")[0]


def test_a_dry_run_tells_what_would_happen_and_writes_nothing(project):
    source = project.write("b.jsonl", lines(issue("bd-1", "bd-2"), issue("bd-2", "bd-1"), issue("bd-3", "gone")))
    trial = project.bring(source, dry_run=True)
    assert not (project.here / ".tasks").exists()
    done = project.bring(source)
    assert trial.replace(dry_run=False) == done
    before = project.texts
    project.write("b.jsonl", lines(issue("bd-1", title="new")))
    assert project.bring(source, dry_run=True).updated == ("bd-1",)
    assert project.texts == before
    assert "would be updated" in text(project.bring(source, dry_run=True))


def test_an_edge_that_would_close_a_ring_is_dropped_told_and_kept(project):
    answer = project.bring_text("b.jsonl", lines(issue("a", "b"), issue("b", "c"), issue("c", "a"), issue("d", "d")))
    tasks = project.tasks
    dropped = {i: t["metadata"]["source"]["dropped"] for i, t in tasks.items() if "dropped" in t["metadata"]["source"]}
    assert dropped == {"c": {"blockedBy": ["a"]}, "d": {"blockedBy": ["d"]}}
    assert [tasks[i]["blockedBy"] for i in "abcd"] == [["b"], ["c"], [], []]
    assert [line.partition(":")[0] for line in told(answer, "cyclic")] == ["b.jsonl"] * 2


def test_a_child_that_waits_for_its_own_parent_stays_its_child(project):
    child = issue("c", "p")
    child["dependencies"].append({"issue_id": "c", "depends_on_id": "p", "type": "parent-child"})
    project.bring_text("b.jsonl", lines(child, issue("p")))
    assert (project.tasks["c"]["parent"], project.tasks["c"]["blockedBy"]) == ("p", [])


def test_a_ring_with_an_edge_that_was_made_here_loses_the_imported_one(project):
    project.bring_text("b.jsonl", lines(issue("a"), issue("b")))
    project.edit("a", blockedBy=["b"])
    answer = project.bring_text("b.jsonl", lines(issue("a"), issue("b", "a")))
    assert (project.tasks["a"]["blockedBy"], project.tasks["b"]["blockedBy"]) == (["b"], [])
    assert len(told(answer, "cyclic")) == 1


def test_a_ring_of_finished_tasks_is_opened_too_for_they_may_be_reopened(project):
    done = (issue("a", "b", status="closed"), issue("b", "a", status="closed"))
    assert len(told(project.bring_text("b.jsonl", lines(*done)), "cyclic")) == 1
    project.bring_text("b.jsonl", lines(issue("a", "b"), issue("b", "a")))
    assert [project.tasks[i]["blockedBy"] for i in "ab"] == [["b"], []]


NAMES = [f"t{n}" for n in range(7)]


@st.composite
def sources(draw):
    """Tasks of another board with edges every way."""
    some = st.lists(st.sampled_from([*NAMES, "gone"]), max_size=4)
    return [
        Incoming(
            name,
            Task(
                name,
                name,
                status=draw(st.sampled_from([PENDING, PENDING, PENDING, IN_PROGRESS, COMPLETED, CANCELLED])),
                blocked_by=tuple(draw(some)),
                parent=draw(st.sampled_from([None, *NAMES])),
            ),
            f"f:{number}",
        )
        for number, name in enumerate(draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)), 1)
    ]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(sources(), min_size=2, max_size=3))
def test_no_import_closes_a_ring_and_repeating_it_changes_nothing(imports):
    """I7, over imports that change each other's edges."""
    board = open_board(MemoryStore(), clock=Clock())
    for items in imports:
        brought = board.bring_in(items, format="f", board="")
        view = board.store.read()
        assert find_cycle(view, [task.id for task in view]) is None
        again = board.bring_in(items, format="f", board="")
        assert not again.put
        assert len(brought.created) + len(brought.updated) + brought.unchanged == len(items)


def test_large_rings_are_broken_in_linear_time():
    count = 1000
    items = [
        Incoming(f"n{i}", Task(f"n{i}", "s", blocked_by=(f"n{(i + 1) % count}", f"n{(i + 7) % count}")), "f:1")
        for i in range(count)
    ]
    board = open_board(MemoryStore(), clock=Clock())
    board.bring_in(items, format="f", board="")
    assert find_cycle(board.store.read(), [item.source for item in items]) is None


HOSTILE = "\x1b[31m\x00\u202e</script>=1+1`$(x)`\ud800 任务" + "\u2028line"


def test_hostile_text_in_every_field_is_stored_readably_and_shown_escaped(project):
    def value(key):
        return HOSTILE + key

    names = "title description design acceptance_criteria notes assignee close_reason created_by external_ref"
    record = {name: value(name) for name in names.split()}
    record |= {"labels": [HOSTILE], "comments": [{"author": HOSTILE, "text": HOSTILE, "created_at": HOSTILE}]}
    record |= {"deep": json.loads("[" * 20 + "1" + "]" * 20), HOSTILE: HOSTILE, "status": HOSTILE, "priority": 9}
    answer = project.bring_text("b.jsonl", json.dumps(issue("bd-1") | record | {"id": HOSTILE}) + "\n")
    (task,) = (parse(text.decode()) for text in project.texts.values())
    assert not re.search("[\x00-\x1f\u2028]", task["subject"])
    assert not re.search(UNSAFE, text(answer))
    assert project.bring(project.folder / "b.jsonl").unchanged == 1


def test_what_is_too_long_goes_on_elsewhere_and_what_is_far_too_large_is_named(project):
    long = issue("bd-1", title="长" * 300, description="d" * 200_000)
    answer = project.bring_text(
        "b.jsonl", lines(long, issue("bd-2", description="e" * 600_000), issue("bd-3", description="f" * 53_000))
    )
    task = project.tasks["bd-1"]
    assert (len(task["subject"]), task["description"][:300]) == (200, "长" * 300)
    told_in_notes = "".join(note["text"].removeprefix("description, continued: ") for note in task["notes"])
    assert task["description"][302:] + told_in_notes == "d" * 200_000
    assert set(project.tasks) == {"bd-1", "bd-3"}
    assert told(answer, "unreadable") == ["b.jsonl:2: bd-2 has 589 KiB, at most 512"]
    assert len(told(answer, "fitted")) == 3
    before = project.texts
    project.bring(project.folder / "b.jsonl")
    assert project.texts == before


def test_a_task_is_as_large_as_its_file(project):
    texts = {"bd-1": "长" * 160_000, "bd-2": "长" * 180_000}
    answer = project.bring_text("b.jsonl", lines(*(issue(i, description=text) for i, text in texts.items())))
    assert answer.created == ("bd-1",)
    assert told(answer, "unreadable") == ["b.jsonl:2: bd-2 has 528 KiB, at most 512"]


def test_a_long_item_is_cut_in_the_report_so_that_what_is_said_of_it_is_seen(project):
    mark, long = "?", "长" * 1000
    answer = project.bring_text("a.md", f"# {long}\n- [{mark}] {long}\n- [] {long}\n- [~] ~ {long}\n- [/] / {long}\n")
    assert {finding.kind for finding in answer.findings} >= {"guessed", "fitted", "skipped", "in progress", "renamed"}
    assert max(len(finding.text) for finding in answer.findings) < 220
    assert "; all of it stands in the description" in text(answer)


def test_two_imports_at_once_make_no_twins(project):
    source = project.write("b.jsonl", lines(*(issue(f"bd-{n}") for n in range(30))))
    answers = []
    both = [threading.Thread(target=lambda: answers.append(project.bring(source))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(len(answer.created) for answer in answers) == [0, 30]
    assert len(project.tasks) == 30


@pytest.mark.slow
@pytest.mark.parametrize("seen", ["journal", "task file"])
def test_an_import_that_is_killed_is_whole_or_not_at_all(project, seen):
    source = project.write("b.jsonl", lines(*(issue(f"bd-{n}") for n in range(150))))
    command = [sys.executable, "-m", "taskwall", "--board", str(project.here), "import", str(source)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    board = project.here / ".tasks"
    mark = board / ".local" / "journal" if seen == "journal" else board / "bd-7.json"
    while process.poll() is None and not mark.exists():
        pass
    process.kill()
    process.wait()
    listed = [*command[:5], "--json", "list", "--all"]
    total = json.loads(subprocess.run(listed, capture_output=True, text=True).stdout)["data"]["total"]
    assert total in (0, 150)
    assert (len(project.bring(source).created), len(project.tasks)) == (150 - total, 150)


def test_what_is_remembered_may_have_been_edited(project):
    source = project.write("b.jsonl", lines(issue("bd-1", "bd-1"), issue("bd-2")))
    project.bring(source)
    for wild in (
        {"seen": 5, "dropped": [1]},
        {"seen": {"subject": {}}, "dropped": {"blockedBy": 5, "parent": ["x", 1]}},
    ):
        for name in ("bd-1", "bd-2"):
            told = project.tasks[name]["metadata"]["source"]
            project.edit(name, metadata={"source": told | wild})
        assert len(project.bring(source).updated) + project.bring(source).unchanged >= 2
    assert set(project.tasks) == {"bd-1", "bd-2"}


def test_a_promise_that_leads_outside_is_no_product(project):
    task = {
        "id": "a",
        "subject": "s",
        "status": "pending",
        "rev": 0,
        "products": ["../x", "ok/*.txt"],
        "checks": ["a\nb"],
    }
    answer = project.bring_text("a.jsonl", lines(task))
    (found,) = project.tasks.values()
    assert (found["products"], found["metadata"], found["rev"]) == (["ok/*.txt"], {"left_out": ["../x", "a\nb"]}, 1)
    assert len(told(answer, "fitted")) == 2


# Items of a checklist, which have no ids


def done(project, task_id):
    project.edit(task_id, status="completed", owner="ann", result="well")


def test_items_whose_heading_or_parent_was_renamed_are_the_same_tasks(project):
    project.bring_text("plan.md", "# One\n- [ ] bricks\n- [ ] wall\n  - [ ] test\n- [ ] roof\n  - [ ] test\n")
    done(project, "bricks")
    done(project, "test")
    renamed = "# One (May)\n- [ ] bricks\n- [ ] wall\n  - [ ] test\n- [ ] the roof\n  - [ ] test\n"
    answer = project.bring_text("plan.md", renamed)
    tasks = project.tasks
    assert (answer.created, len(answer.updated), len(tasks)) == (("the-roof",), 4, 6)
    assert {i for i, task in tasks.items() if task["status"] == "completed"} == {"bricks", "test"}
    assert (tasks["test"]["parent"], tasks["checklist-test"]["parent"]) == ("wall", "the-roof")
    assert tasks["bricks"]["labels"] == ["One (May)"]
    assert told(answer, "gone") == ["plan.md: roof: roof [pending]"]
    before = project.texts
    assert project.bring(project.folder / "plan.md").unchanged == 5
    assert project.texts == before


def test_a_finished_item_that_went_to_the_archive_is_still_known(project):
    project.bring_text("plan.md", "# One\n- [x] bricks\n- [x] bricks\n- [x] sand\n- [ ] wall\n")
    archive = project.here / ".tasks/archive/2026-01"
    archive.mkdir(parents=True)
    for name in ("bricks", "checklist-bricks", "sand"):
        (project.here / f".tasks/{name}.json").rename(archive / f"{name}.json")
    assert project.bring(project.folder / "plan.md").unchanged == 4
    answer = project.bring_text("plan.md", "# One\n- [x] bricks\n- [x] bricks\n# Two\n- [x] sand\n- [ ] wall\n")
    assert (answer.created, answer.updated, answer.unchanged) == ((), ("sand", "wall"), 2)


def test_of_two_items_of_one_name_the_finished_one_is_not_reopened_by_its_removal(project):
    project.bring_text("plan.md", "# One\n- [x] test\n- [ ] test\n")
    for _ in range(2):
        answer = project.bring_text("plan.md", "# One\n- [ ] test\n")
        statuses = [project.tasks[i]["status"] for i in ("test", "checklist-test")]
        assert (statuses, answer.updated) == (["completed", "pending"], ())
        assert told(answer, "gone") == ["plan.md: test: test [completed]"]
        assert told(answer, "guessed") == [
            "plan.md:2: One/test is taken for checklist-test; another of its text is gone from there"
        ]


def test_what_is_reopened_below_one_of_several_of_one_name_is_told(project):
    project.bring_text("plan.md", "- [ ] room\n  - [x] paint\n- [ ] room\n  - [ ] paint\n")
    answer = project.bring_text("plan.md", "- [ ] room\n  - [ ] paint\n")
    assert project.tasks["paint"]["status"] == "pending"
    assert any("paint was completed and is open again" in line for line in told(answer, "guessed"))


def test_what_is_reopened_among_items_of_one_name_is_told(project):
    project.bring_text("plan.md", "- [x] test\n- [ ] test\n")
    answer = project.bring_text("plan.md", "- [ ] test\n- [ ] test\n")
    assert project.tasks["test"]["status"] == "pending"
    assert told(answer, "guessed") == [
        "plan.md:1: test was completed and is open again; another of its text may be meant"
    ]


@pytest.mark.parametrize(
    ("after", "created", "guess"),
    [
        ("# C\n- [ ] t\n# D\n- [ ] t\n", 2, "may be t or checklist-t; that is not certain, so it is a new task"),
        ("# C\n- [ ] t\n- [ ] t\n- [ ] t\n", 3, "may be t or checklist-t; that is not certain, so it is a new task"),
        ("# A\n- [ ] t\n# C\n- [ ] u\n  - [ ] t\n", 1, "is taken for checklist-t, which is completed here"),
    ],
)
def test_which_of_several_alike_an_item_is_that_stands_elsewhere_is_told(project, after, created, guess):
    project.bring_text("plan.md", "# A\n- [ ] t\n# B\n- [ ] t\n")
    done(project, "checklist-t")
    answer = project.bring_text("plan.md", after)
    assert len(answer.created) == created
    assert any(guess in line for line in told(answer, "guessed"))
    assert project.tasks["checklist-t"]["status"] == "completed"
    assert project.bring(project.folder / "plan.md").updated == ()


def test_what_is_no_longer_in_a_source_is_told_where_that_is_certain(project):
    for name in ("1", "2"):
        project.write(f"b/tasks/{name}.md", f"---\nid: task-{name}\ntitle: t{name}\nstatus: Done\n---\n")
    project.bring(project.folder / "b", "backlog")
    project.write("b/tasks/1.md", b"\xff")
    assert told(project.bring(project.folder / "b", "backlog"), "gone") == []
    (project.folder / "b/tasks/1.md").unlink()
    assert told(project.bring(project.folder / "b", "backlog"), "gone") == ["b: task-1: t1 [completed]"]
    for name in ("1", "2"):
        assert told(project.bring_text(f"{name}.jsonl", lines(issue(f"bd-{name}"))), "gone") == []


checklists = st.lists(
    st.tuples(st.sampled_from(["# A", "# B", "- [ ] ", "- [x] ", "  - [ ] ", "  - [x] "]), st.sampled_from("tu")),
    min_size=1,
    max_size=7,
).map(lambda told: "".join(f"{mark}{text * mark.endswith(' ')}\n" for mark, text in told))


@settings(max_examples=200)
@given(st.lists(checklists, min_size=2, max_size=4))
def test_however_a_checklist_is_edited_each_item_is_one_task_and_the_next_import_agrees(texts):
    board = open_board(MemoryStore(), clock=Clock())
    for written in texts:
        items = FORMATS["checklist"].read([Text("f.md", written)]).items
        before = {task.id: task for task in board.store.read()}
        brought = board.bring_in(items, format="checklist", board="f.md")
        after = {task.id: task for task in board.store.read()}
        assert len(brought.created) + len(brought.updated) + brought.unchanged == len(items)
        assert len(after) == len(before) + len(brought.created)
        ids = [task.metadata["source"]["id"] for task in after.values()]
        assert len(set(ids)) == len(ids)
        again = board.bring_in(items, format="checklist", board="f.md")
        assert not again.put
        alike = {name.removesuffix("~2") for name in (*ids, *(item.source for item in items)) if name.endswith("~2")}
        for i in brought.updated:
            if before[i].closed and not after[i].closed:
                was, now = (tasks[i].metadata["source"]["id"] for tasks in (before, after))
                is_certain = was == now and was.partition("~")[0] not in alike
                assert is_certain or any(i in finding.text.replace(",", " ").split() for finding in brought.findings)
