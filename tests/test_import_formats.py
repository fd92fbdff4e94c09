"""Each format that other programs keep tasks in, with the oddities that real files have."""

import json
import subprocess
import time

import pytest

from importing import Project, lines, told
from taskwall.core.errors import Invalid, Refused, Unreadable
from taskwall.interop.importers import FORMATS
from taskwall.interop.importers.source import Text


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def issue(id, **more):
    told = {"id": id, "title": f"issue {id}", "status": "open", "priority": 2, "issue_type": "task"}
    return told | {"created_at": "2026-01-06T18:51:48.633692523+01:00", "updated_at": "2026-01-06T18:00:00Z"} | more


def edge(source, target, type="blocks"):
    return {"issue_id": source, "depends_on_id": target, "type": type, "created_at": "2026-01-06T18:51:48Z"}


# beads


@pytest.mark.parametrize("name", [".beads/issues.jsonl", ".beads/beads.jsonl"])
def test_beads_are_found_in_a_project_under_both_names(project, name):
    project.write(name, lines(issue("bd-1")))
    assert project.bring(project.folder).created == ("bd-1",)


def test_only_blocks_gates_in_beads_and_parent_child_groups(project):
    edges = [edge("bd-3", "bd-1"), edge("bd-3", "bd-2", "parent-child"), edge("bd-3", "bd-2", "discovered-from")]
    guess = edge("bd-3", "bd-2", "blocked-by")
    answer = project.bring_text(
        "b.jsonl", lines(issue("bd-1"), issue("bd-2"), issue("bd-3", dependencies=[*edges, guess]))
    )
    task = project.tasks["bd-3"]
    assert (task["blockedBy"], task["parent"]) == (["bd-1"], "bd-2")
    assert task["metadata"]["source"]["kept"]["dependencies"] == [edges[2], guess]
    assert told(answer, "guessed") == [
        "b.jsonl:3: bd-3: the dependency 'blocked-by' on 'bd-2' does not gate; kept in metadata"
    ]


def test_beads_fields_find_their_place(project):
    comment = {"id": 1, "author": "ann", "text": "思い出した", "created_at": "2026-01-08T07:46:32Z"}
    more = {"design": "D", "acceptance_criteria": "A", "close_reason": "done", "assignee": "bob", "comments": [comment]}
    project.bring_text(
        "b.jsonl",
        lines(
            issue("bd-1", status="closed", description="text", closed_at="2026-01-09T00:00:00Z", labels=["x"], **more)
        ),
    )
    task = project.tasks["bd-1"]
    assert task["description"] == "text\n\n## Design\n\nD\n\n## Acceptance criteria\n\nA"
    assert (task["status"], task["owner"], task["result"], task["labels"]) == ("completed", "bob", "done", ["x"])
    assert (task["createdAt"], task["completedAt"]) == ("2026-01-06T17:51:48.633692Z", "2026-01-09T00:00:00.000000Z")
    assert task["notes"] == [{"at": "2026-01-08T07:46:32.000000Z", "by": "ann", "text": "思い出した"}]


@pytest.mark.parametrize(
    ("status", "stored", "hold"),
    [
        ("open", "pending", None),
        ("closed", "completed", None),
        ("tombstone", "cancelled", None),
        ("cancelled", "cancelled", None),
        ("hooked", "pending", None),  # somebody's there, nobody's here
        ("in_progress", "pending", None),
        ("blocked", "pending", "blocked when it was imported"),
        ("deferred", "pending", "deferred when it was imported"),
        ("in_review", "pending", "in review when it was imported"),
        ("pinned", "pending", "pinned when it was imported"),
        ("wobbly", "pending", "its status was 'wobbly'"),
    ],
)
def test_every_status_of_beads_is_one_of_ours(project, status, stored, hold):
    answer = project.bring_text("b.jsonl", lines(issue("bd-1", status=status)))
    task = project.tasks["bd-1"]
    assert (task["status"], task.get("hold")) == (stored, hold)
    assert len(told(answer, "guessed")) == (status == "wobbly")


def test_work_in_progress_elsewhere_is_held_by_nobody_here_and_says_who_had_it(project):
    answer = project.bring_text("b.jsonl", lines(issue("bd-1", status="in_progress", assignee="ann")))
    task = project.tasks["bd-1"]
    assert (task["status"], task["owner"]) == ("pending", None)
    assert task["notes"][0]["text"] == "was in progress by ann when it was imported"
    assert told(answer, "in progress") == ["b.jsonl:1: bd-1 was in progress by ann when it was imported"]


def test_nothing_waits_for_a_deleted_issue_and_a_missing_one_still_blocks(project):
    gone = issue("bd-1", status="tombstone", delete_reason="twin")
    waits = issue("bd-2", dependencies=[edge("bd-2", "bd-1"), edge("bd-2", "bd-9")])
    answer = project.bring_text("b.jsonl", lines(gone, waits))
    assert project.tasks["bd-2"]["blockedBy"] == ["bd-9"]
    assert told(answer, "dangling") == [
        "b.jsonl:2: bd-2 names bd-1, which is deleted there; kept in metadata",
        "b.jsonl:2: bd-2 names bd-9, which is not there",
    ]


def test_of_two_records_with_one_id_the_later_counts(project):
    old, new = issue("bd-1", title="old"), issue("bd-1", title="new", updated_at="2026-02-01T00:00:00Z")
    answer = project.bring_text("b.jsonl", lines(new, old, new))
    assert project.tasks["bd-1"]["subject"] == "new"
    assert told(answer, "duplicate") == [
        "b.jsonl:2: bd-1 is left out for the later one at b.jsonl:1",
        "b.jsonl:3: bd-1 stands the same at b.jsonl:1",
    ]


def test_a_bad_line_is_named_and_the_others_are_imported(project):
    text = lines(issue("bd-1")) + '{"id": "bd-2", \n[1]\n' + lines({"_type": "config", "key": "k"}, issue("bd-3"))
    answer = project.bring_text("b.jsonl", text)
    assert (answer.records, answer.created, answer.exit) == (5, ("bd-1", "bd-3"), 8)
    assert [line[:10] for line in told(answer, "unreadable")] == ["b.jsonl:2:"]
    assert told(answer, "skipped") == [
        "b.jsonl:3: a list, not an object",
        "b.jsonl:4: config without id, title and status",
    ]


# Task Master


def test_task_master_subtasks_are_children_and_all_spellings_of_ids_are_understood(project):
    subtasks = [
        {"id": 1, "title": "a", "status": "done"},
        {"id": "3.2", "title": "b", "status": "pending", "dependencies": [1, "1.1"]},
        {
            "id": 3.3,
            "title": "c",
            "status": "pending",
            "dependencies": ["3.2", 2.0],
            "subtasks": [{"id": "3.3.1", "title": "d"}],
        },
    ]
    first = {"id": "1", "title": "one", "status": "done", "subtasks": [{"id": 1, "title": "one one", "status": "done"}]}
    board = {
        "tasks": [
            first,
            {"id": 3, "title": "three", "status": "in-progress", "dependencies": ["1"], "subtasks": subtasks},
        ]
    }
    text = json.dumps(board, indent=1)
    answer = project.bring_text("tasks.json", text)
    tasks = project.tasks
    assert set(tasks) == {"1", "1.1", "3", "3.1", "3.2", "3.3", "3.3.1"}
    assert {i: t.get("parent") for i, t in tasks.items() if "." in i} == {
        "1.1": "1", "3.1": "3", "3.2": "3", "3.3": "3", "3.3.1": "3.3",
    }  # fmt: skip
    assert (tasks["3.2"]["blockedBy"], tasks["3.3"]["blockedBy"]) == (["3.1", "1.1"], ["3.2"])
    line = {title: text[: text.index(f'"title": "{title}"')].count("\n") + 1 for title in "cd"}
    assert told(answer, "guessed") == [
        f"tasks.json:{line['c']}: the id 3.3 is a number: 3.3.0 and 3.30 would be the same",
        f"tasks.json:{line['d']}: 3.3.1 has no status: pending",
    ]


def test_the_line_of_a_task_is_found_however_its_title_is_spelled(project):
    text = (
        '{"tasks": [\n{"id": 1, "title" : "a\\/b", "details": "\\"title\\": \\"c\\""},\n'
        '{"id": 2, "title": "\\u5237漆"},\n{"id": 3, "title": 5},\n{"id": 4, "title": "c"}]}'
    )
    answer = project.bring_text("tasks.json", text, "taskmaster")
    places = [finding.where for finding in answer.findings if finding.text.endswith("has no status: pending")]
    assert places == ["tasks.json:2", "tasks.json:3", "tasks.json:3", "tasks.json:5"]


def test_task_master_text_and_priority(project):
    task = {"id": 1, "title": "t", "description": "d", "details": "e", "testStrategy": "f", "priority": "critical"}
    project.bring_text("tasks.json", json.dumps({"tasks": [task | {"status": "review", "complexity": 7}]}))
    found = project.tasks["1"]
    assert found["description"] == "d\n\n## Details\n\ne\n\n## Test strategy\n\nf"
    assert (found["priority"], found["hold"]) == (0, "review when it was imported")
    assert found["metadata"]["source"]["kept"] == {"complexity": 7}


def test_tags_keep_their_tasks_apart(project):
    task = {"id": 1, "title": "t", "status": "pending", "dependencies": []}
    after = {"id": 2, "title": "u", "status": "pending", "dependencies": [1]}
    board = {"master": {"tasks": [task, after], "metadata": {"created": "c"}}, "v2": {"tasks": [task, after]}}
    answer = project.bring_text("tasks.json", json.dumps(board))
    assert {i: t["blockedBy"] for i, t in project.tasks.items()} == {"1": [], "2": ["1"], "v2-1": [], "v2-2": ["v2-1"]}
    assert project.tasks["v2-1"]["labels"] == ["v2"]
    assert told(answer, "skipped") == ["tasks.json:1: created of master, which are of no task"]


def test_a_leaked_board_is_read_once(project):
    master = {"tasks": [{"id": 1, "title": "t", "status": "done"}]}
    board = {"master": master, "tag": "master", "_rawTaggedData": {"master": master}}
    assert project.bring_text("tasks.json", json.dumps(board)).created == ("1",)
    inner = {"tag": "master", "_rawTaggedData": {"master": {"tasks": [{"id": 2, "title": "u", "status": "done"}]}}}
    assert project.bring_text("other.json", json.dumps(inner), "taskmaster").created == ("2",)


def test_a_sibling_comes_before_a_task_of_the_same_number(project):
    sub = {"id": 1, "title": "s", "status": "pending", "dependencies": [2, 4]}
    board = {
        "tasks": [{"id": 2, "title": "t", "status": "pending", "subtasks": [sub, sub | {"id": 4, "dependencies": []}]}]
    }
    answer = project.bring_text("tasks.json", json.dumps(board))
    assert project.tasks["2.1"]["blockedBy"] == ["2.4"]  # and not 2, its parent, which waits for it
    assert len(told(answer, "guessed")) == len(told(answer, "cyclic")) == 1


# Backlog.md

CONFIG = 'project_name: "p"\ntask_prefix: "task"\n'


def markdown(id, title, status="To Do", more="", body=""):
    return f"---\nid: {id}\ntitle: {title}\nstatus: {status}\n{more}---\n{body}"


def test_in_backlog_the_folder_decides(project):
    for folder, status in [
        ("tasks", "To do"),
        ("drafts", "Draft"),
        ("completed", "To Do"),
        ("archive/tasks", "To Do"),
        ("archive/old", "Done"),
    ]:
        number = len(folder)
        project.write(f"p/backlog/{folder}/task-{number} - 標題 — x.md", markdown(f"task-{number}", folder, status))
    project.write("p/backlog/config.yml", CONFIG)
    project.write("p/backlog/docs/doc-1 - note.md", "# no task, and not looked at\n")
    answer = project.bring(project.folder / "p")
    assert not told(answer, "guessed"), "a word that does not count needs no guess"
    found = {t["subject"]: (t["status"], t.get("hold")) for t in project.tasks.values()}
    assert found == {
        "tasks": ("pending", None),
        "drafts": ("pending", "a draft when it was imported"),
        "completed": ("completed", None),
        "archive/tasks": ("cancelled", None),
        "archive/old": ("completed", None),
    }


CHINESE = {
    "pending": "待办 未开始 待处理 进行中 处理中",
    "completed": "已完成 完成",
    "cancelled": "已取消 取消",
    "held": "阻塞 已阻塞 暂停 搁置 评审中 待评审",
}


def test_a_team_names_its_statuses_in_chinese(project):
    meant = {word: status for status, words in CHINESE.items() for word in words.split()}
    for number, word in enumerate(meant):
        project.write(f"p/backlog/tasks/task-{number} - x.md", markdown(f"task-{number}", word, word))
    answer = project.bring(project.folder / "p")
    found = {t["subject"]: "held" if "hold" in t else t["status"] for t in project.tasks.values()}
    assert found == meant
    assert (told(answer, "guessed"), len(told(answer, "in progress"))) == ([], 2)
    assert {t["hold"] for t in project.tasks.values() if t["subject"] == "评审中"} == {"评审中 when it was imported"}


def test_backlog_yaml_as_people_write_it(project):
    more = "assignee: @codex\nlabels: [a, b]\ncreated_date: '2026-01-02 23:14'\ndependencies:\n  - task-2\npriority: high\n"
    body = (
        "\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\n说明\n\n## Goals\n<!-- SECTION:DESCRIPTION:END -->\n\n"
        "## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 works\n<!-- AC:END -->\n"
        "## Final Summary\n<!-- SECTION:FINAL_SUMMARY:BEGIN -->\nall done\n<!-- SECTION:FINAL_SUMMARY:END -->\n"
    )
    project.write("backlog/tasks/a.md", markdown("task-1", "one", "Completed", more, body))
    project.write(
        "backlog/tasks/b.md", markdown("task-2", "two", "In-Progress", "created_date: 2026-01-02\nassignee: [@x, y]\n")
    )
    answer = project.bring(project.folder / "backlog")
    one, two = project.tasks["task-1"], project.tasks["task-2"]
    assert (one["owner"], one["labels"], one["blockedBy"], one["priority"]) == ("codex", ["a", "b"], ["task-2"], 1)
    assert one["description"] == "说明\n\n## Goals\n\n## Acceptance Criteria\n\n- [ ] #1 works"
    assert (one["result"], one["createdAt"]) == ("all done", "2026-01-02T23:14:00.000000Z")
    assert two["createdAt"] == "2026-01-02T00:00:00.000000Z"
    assert told(answer, "guessed") == [
        f"tasks/{name}.md:1: its front matter is invalid YAML; read with `@name` as text" for name in "ab"
    ]
    assert told(answer, "early") == ["tasks/a.md:1: task-1 is completed, and task-2 is pending: two"]


def test_backlog_dependencies_whose_prefix_was_renamed_are_matched_by_number(project):
    project.write("backlog/tasks/a.md", markdown("BACK-7", "seven"))
    project.write("backlog/tasks/b.md", markdown("back-8", "eight", more="dependencies: [task-7, back-7, task-99]\n"))
    answer = project.bring(project.folder)
    assert project.tasks["back-8"]["blockedBy"] == ["BACK-7", "task-99"]
    assert told(answer, "guessed") == ["tasks/b.md:1: back-8 names task-7: taken for BACK-7 by its number"]
    assert told(answer, "dangling") == ["tasks/b.md:1: back-8 names task-99, which is not there"]


def test_two_backlog_tasks_with_one_id_are_both_imported(project):
    project.write("backlog/completed/a.md", markdown("task-1", "old"))
    project.write("backlog/tasks/b.md", markdown("task-1", "new"))
    answer = project.bring(project.folder)
    assert sorted(t["subject"] for t in project.tasks.values()) == ["new", "old"]
    assert project.tasks["task-1"]["subject"] == "new"
    assert len(told(answer, "duplicate")) == len(told(answer, "renamed")) == 1


def test_markdown_that_cannot_be_read_is_named_and_the_rest_is_imported(project):
    project.write("backlog/tasks/a.md", markdown("task-1", "one"))
    project.write("backlog/tasks/b.md", "# no front matter\n")
    project.write("backlog/tasks/c.md", "---\nid: [\n---\n")
    project.write("backlog/tasks/d.md", markdown("task-4", "four") + "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n")
    project.write("backlog/tasks/e.md", b"\xff\xfe")
    project.write("backlog/tasks/f.md", "---\nid: &a [x]\nb: *a\n---\n")
    (project.folder / "backlog/tasks/g.md").symlink_to("/etc/passwd")
    answer = project.bring(project.folder)
    assert answer.created == ("task-1",)
    assert answer.records == 7
    assert [line.partition(" ")[0] for line in told(answer, "unreadable")] == [
        "tasks/e.md:1:", "tasks/g.md:1:", "tasks/d.md:6:", "tasks/c.md:2:", "tasks/f.md:1:",
    ]  # fmt: skip
    assert told(answer, "skipped") == ["tasks/b.md:1: no front matter"]


# Taskwarrior

UUID = "b393b777-1131-4f11-a6e5-ec1c26a2d9f{}"


def warrior(number, **more):
    return {
        "uuid": UUID.format(number),
        "description": f"t{number}",
        "status": "pending",
        "entry": "20261130T133017Z",
    } | more


@pytest.mark.parametrize("layout", ["array", "lines", "indented", "lines with commas"])
def test_taskwarrior_in_every_layout(project, layout):
    annotation = {"entry": "20261130T133017Z", "description": "看 https://x.y"}
    records = [
        warrior(1, depends=[UUID.format(2)], tags=["home"], project="api", priority="H", annotations=[annotation]),
        warrior(2, depends=f"{UUID.format(3)},{UUID.format(4)}", status="waiting"),
        warrior(3, status="completed", end="20261130T140000Z", estimate=3),
        warrior(4, status="recurring"),
        warrior(5, status="deleted"),
    ]
    texts = {
        "array": json.dumps(records),
        "lines": lines(*records),
        "indented": json.dumps(records, indent=1),
        "lines with commas": ",\n".join(map(json.dumps, records)) + "\n",
    }
    answer = project.bring_text("export.json", texts[layout])
    assert (answer.format, answer.records) == ("taskwarrior", 5)
    one, two, three, four, five = (project.tasks[UUID.format(n)] for n in range(1, 6))
    assert (one["labels"], one["priority"], one["blockedBy"]) == (["home", "project:api"], 1, [two["id"]])
    assert one["notes"] == [{"at": "2026-11-30T13:30:17.000000Z", "by": "import", "text": "看 https://x.y"}]
    assert (two["blockedBy"], two["hold"]) == ([three["id"], four["id"]], "waiting when it was imported")
    assert (three["status"], three["completedAt"]) == ("completed", "2026-11-30T14:00:00.000000Z")
    assert three["metadata"]["source"]["kept"] == {"estimate": 3}
    assert (four["hold"], five["status"]) == ("a template of recurring tasks", "cancelled")


def test_a_uuid_that_stands_twice_is_one_task(project):
    later = warrior(1, description="later", modified="20261201T000000Z")
    answer = project.bring_text("export.json", json.dumps([warrior(1, modified="20261130T000000Z"), later]))
    assert [t["subject"] for t in project.tasks.values()] == ["later"]
    assert len(told(answer, "duplicate")) == 1


# ticket, Claude Code, dialects


def test_tickets(project):
    text = "---\nid: t-1\nstatus: closed\ndeps: [t-2]\nlinks: [t-9]\ncreated: 2026-01-26T06:43:41Z\ntype: bug\npriority: 0\n"
    text += "assignee: Ann B\nparent: t-2\ntags: [x]\n---\n# The title\n\nbody\n\n## Notes\n\n**2026-01-26T06:45:59Z**\n\n## Why\n\nso\n"
    project.write(".tickets/t-1.md", text)
    project.write(".tickets/t-2.md", "---\nid: t-2\nstatus: open\ndeps: []\nparent: null\nassignee: ~\n---\n# Two\n")
    project.bring(project.folder)
    assert "parent" not in project.tasks["t-2"]
    assert "kept" not in project.tasks["t-2"]["metadata"]["source"]
    task = project.tasks["t-1"]
    assert (task["subject"], task["description"], task["owner"]) == ("The title", "body", "Ann B")
    assert task["notes"] == [{"at": "2026-01-26T06:45:59.000000Z", "by": "import", "text": "## Why\n\nso"}]
    assert (task["priority"], task["labels"], task["parent"]) == (0, ["x"], "t-2")
    assert task["metadata"]["source"]["kept"] == {"links": ["t-9"], "type": "bug"}


def test_a_task_list_of_claude_code(project):
    for name in (".lock", ".highwatermark"):
        project.write(f"lists/a/{name}", "3")
    task = {
        "id": "1",
        "subject": "one",
        "status": "in_progress",
        "owner": "sub",
        "blocks": ["2", "9"],
        "blockedBy": [],
        "activeForm": "Doing",
    }
    project.write("lists/a/1.json", json.dumps(task))
    project.write(
        "lists/a/2.json",
        json.dumps(
            {"id": "2", "subject": "two", "status": "done", "blocks": [], "blockedBy": [], "metadata": {"k": 1}}
        ),
    )
    project.write("lists/a/3.json", json.dumps({"tid": "x", "prompt": "p"}))
    project.write("lists/a/4.json", "")
    answer = project.bring(project.folder / "lists" / "a", "claude")
    assert (project.tasks["1"]["status"], project.tasks["2"]["blockedBy"]) == ("pending", ["1"])
    assert project.tasks["2"]["metadata"]["source"]["kept"] == {"metadata": {"k": 1}}
    assert told(answer, "guessed") == ["1.json:1: 2 waits for 1, which only `blocks` there says"]
    assert told(answer, "dangling") == ["1.json:1: 1 blocks 9, which is not there; kept in metadata"]
    assert told(answer, "skipped") == ["3.json:1: not a task: it has no id and subject"]
    assert told(answer, "unreadable") == ["4.json:1: the file is empty"]


def test_the_dialects_that_are_never_written_come_to_the_board_they_lie_in(project):
    arm = {
        "task_id": "1",
        "name": "grasp",
        "status": "pending",
        "blocked_by": [],
        "blocks": [2],
        "assigned_arm": "left",
    }
    nested = {"id": 2, "TaskPayload": {"subject": "inner", "status": "completed", "block_by": [], "blocking": []}}
    ours = {
        "id": "own",
        "subject": "own",
        "description": "",
        "status": "pending",
        "owner": None,
        "blockedBy": [],
        "rev": 1,
    }
    for name, task in (("a", arm), ("n", nested), ("own", ours)):
        project.write(f"here/.tasks/{name}.json", json.dumps(task))
    before = project.texts
    answer = project.bring(project.here / ".tasks")
    assert answer.created == ("tasks-1", "tasks-2")
    new = {name: json.loads(text) for name, text in project.texts.items() if name not in before}
    assert new["tasks-1.json"]["owner"] == "left"
    assert new["tasks-2.json"]["blockedBy"] == ["tasks-1"]
    assert {name: text for name, text in project.texts.items() if name in before} == before


def test_a_board_in_one_file(project):
    board = {
        "next_id": 3,
        "tasks": {
            "1": {"id": 1, "subject": "one", "status": "pending"},
            "2": {"id": 2, "subject": "two", "status": "completed"},
        },
    }
    assert project.bring_text("board.json", json.dumps(board)).created == ("1", "2")


# Markdown checklists

CHECKLIST = """# 工地

- [ ] 走水电
  on both floors
  - [x] kitchen
  - [ ] bath
    1. [-] sauna
- [ ] 封墙

## Later

* [ ] lamps
- [ ] lamps
```
- [ ] code, no task
```
"""


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("taskmaster", json.dumps({"tasks": [{"id": n, "title": f"/{n}"} for n in range(8000)]}).replace("/", "\\/")),
        ("checklist", "- [ ] an item\n" + "  and more of it\n" * 200_000),
    ],
)
def test_a_source_takes_time_by_its_size_and_not_by_its_square(format, text):
    began = time.process_time()
    assert FORMATS[format].read([Text("file", text)]).items
    assert time.process_time() - began < 5  # it takes a fraction of a second, and took minutes


def test_checklists(project):
    answer = project.bring_text("todo.md", CHECKLIST)
    tasks = project.tasks
    assert answer.records == 7
    assert set(tasks) == {"走水电", "kitchen", "bath", "sauna", "封墙", "lamps", "checklist-lamps"}
    assert [(tasks[i]["parent"], tasks[i]["status"]) for i in ("kitchen", "sauna")] == [
        ("走水电", "completed"), ("bath", "cancelled"),
    ]  # fmt: skip
    assert (tasks["走水电"]["description"], tasks["lamps"]["labels"]) == ("on both floors", ["Later"])


BOXES = """- [ ] a
- [　] b
- [x] c
- [V] d
- [✓] e
- [✔\ufe0f] f
- [√]g
- [/] h
- [-] i
- [>] j
  - [ ] j1
- [!] k
- [?] l
- [o] m
- [~] n
1. [x] o
   and more of it
   * [☑] o1
"""


def test_whatever_mark_stands_in_the_box_it_is_an_item(project):
    answer = project.bring_text("todo.md", BOXES)
    tasks = project.tasks
    assert answer.records == len(tasks) == len(BOXES.splitlines()) - 1
    assert {i for i, task in tasks.items() if task["status"] == "completed"} == {"c", "d", "e", "f", "g", "o", "o1"}
    assert {i for i, task in tasks.items() if task["status"] == "cancelled"} == {"i", "n"}
    assert {i: task["hold"] for i, task in tasks.items() if "hold" in task} == {
        "j": "deferred when it was imported", "l": "its status was '?'", "m": "its status was 'o'",
    }  # fmt: skip
    assert [(tasks[i]["parent"], tasks[i[0]].get("description")) for i in ("j1", "o1")] == [
        ("j", ""), ("o", "and more of it"),
    ]  # fmt: skip
    assert (tasks["k"]["priority"], len(told(answer, "in progress"))) == (1, 1)
    assert [line.partition(": ")[0] for line in told(answer, "guessed")] == ["todo.md:13", "todo.md:14", "todo.md:15"]
    assert told(answer, "skipped") == []


def test_a_box_that_makes_no_item_is_told_and_a_link_is_none(project):
    boxes = "- [] none\n- [  ] wide\n- [WIP] word\n- [1] Knuth\n- [q]uit\n- [ ]\n> - [ ] quoted\n"
    links = "- [x](url)\n- [x]: http://url\n- [text](url)\n- [text][ref]\n- [^1]: note\n- [@knuth]\n- [[page]]\n"
    answer = project.bring_text("todo.md", f"- [ ] item\n\n{boxes}{links}")
    assert (answer.created, answer.records) == (("item",), 1)
    assert [line.partition(" is no item")[0] for line in told(answer, "skipped")] == [
        f"todo.md:{number}: {line!r}" for number, line in enumerate(boxes.splitlines(), 3)
    ]


def test_code_begins_and_ends_where_markdown_says_and_what_it_swallows_is_told(project):
    code = "````\n- [ ] no\n```\n- [ ] no\n```` x\n- [ ] no\n`````\n"
    text = f"- [ ] one\n```js``` inline\n- [ ] two\n{code}- [ ] three\n> ~~~\n- [ ] four\n"
    answer = project.bring_text("todo.md", f"{text}- ```\n  - [ ] no\n  ```\n- [ ] five\n~~~\n- [ ] six\n")
    assert answer.created == ("one", "two", "three", "four", "five")
    assert told(answer, "skipped") == ["todo.md:18: code begins here and never ends, with 1 line with a box in it"]


# Whatever it is


def test_sources_that_hold_no_board_are_refused_by_name_and_make_none(project):
    project.write("empty.json", "  \n")
    project.write(
        "conflict.jsonl", lines(issue("bd-1")) + "<<<<<<< HEAD\n" + lines(issue("bd-2")) + "=======\n>>>>>>> x\n"
    )
    project.write("foreign.json", '{"2025-07-21":["测试"],"2025-07-22":[]}')
    project.write("two.json", '{"tasks": []}\n{"tasks": []}\n')
    project.write("lone.md", "# only words\n")
    project.write("binary.json", b"\xff\xfe\x00")
    project.write("none.json", '{"tasks": []}')
    for name in ("empty.json", "conflict.jsonl", "foreign.json", "two.json", "lone.md", "binary.json", "absent.json"):
        with pytest.raises(Refused, match=name):
            project.bring(project.folder / name)
    for name, text in (
        ("foreign.json", "another program's file"),
        ("two.json", "2: a second JSON document begins here"),
        ("none.json", "no task in .*none.json"),
    ):
        with pytest.raises(Refused, match=text):
            project.bring(project.folder / name, "taskmaster")
    with pytest.raises(Invalid, match="no task in .*lone.md"):
        project.bring(project.folder / "lone.md", "checklist")
    with pytest.raises(Unreadable, match="git conflict markers"):
        project.bring(project.folder / "conflict.jsonl", "beads")
    assert not (project.here / ".tasks").exists()


@pytest.mark.parametrize("codec", ["GB18030", "UTF-16"])
def test_a_text_in_another_encoding_is_refused_with_its_conversion(project, codec):
    plain = "# 验收\n- [ ] 买砖\n"
    for format in ("", "checklist"):
        with pytest.raises(Refused, match="not UTF-8 text") as refused:
            project.bring(project.write("a.md", plain.encode(codec)), format)
        assert (command := f"iconv -f {codec} -t UTF-8 FILE > NEW") in refused.value.next
    words = command.replace("FILE", "a.md").replace("NEW", "b.md")
    subprocess.run(words, shell=True, cwd=project.folder, check=True)
    assert project.bring(project.folder / "b.md").created == ("买砖",)


def test_a_text_that_cannot_be_chinese_is_not_said_to_be(project):
    with pytest.raises(Invalid) as refused:
        project.bring_text("a.md", b"- [ ] caf\xe9\n")
    assert "iconv -f ENCODING -t UTF-8 FILE > NEW" in refused.value.next


def test_a_project_with_boards_of_two_programs_asks_which(project):
    project.write(".beads/issues.jsonl", lines(issue("bd-1")))
    project.write(".tickets/t-1.md", "---\nid: t-1\nstatus: open\ndeps: []\n---\n# One\n")
    with pytest.raises(Invalid) as refused:
        project.bring(project.folder)
    assert f"taskwall import beads {project.folder}" in refused.value.next
    assert f"taskwall import ticket {project.folder}" in refused.value.next
    assert project.bring(project.folder, "tk").created == ("t-1",)


def test_a_second_file_of_one_format_is_named(project):
    project.write(".beads/issues.jsonl", lines(issue("bd-1")))
    project.write(".beads/beads.jsonl", lines(issue("bd-2")))
    answer = project.bring(project.folder / ".beads")
    assert answer.created == ("bd-1",)
    assert "beads.jsonl lies beside it" in told(answer, "skipped")[0]


def test_an_unknown_format_is_refused_with_those_there_are(project):
    with pytest.raises(Invalid) as refused:
        project.bring(project.folder, "jira")
    assert "taskmaster" in refused.value.next


def test_a_format_of_which_a_folder_holds_nothing_is_refused(project):
    (project.folder / "plain").mkdir()
    for format in ("backlog", "tasks", "beads", "checklist", ""):
        with pytest.raises(Invalid, match="no board was found"):
            project.bring(project.folder / "plain", format)
    assert not (project.here / ".tasks").exists()


def test_a_line_of_equal_signs_is_no_conflict(project):
    answer = project.bring_text("todo.md", "Title\n=======\n\n- [ ] say <<<<<<< what\n")
    assert answer.created == ("say-what",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b.jsonl", lines(issue("1", description={"a": 1}, labels=[["x"]], priority="urgent", closed_at="soon", comments=["c"]))),
        ("t.json", json.dumps({"tasks": [{"id": 1, "title": "t", "description": ["a"], "priority": "urgent", "status": "done"}]})),
        ("w.json", json.dumps([warrior(1, priority="urgent", tags=[{}], end="soon", annotations=["c"])])),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_than_expected_is_kept(project, name, text):
    given = json.loads(text)
    record = (
        given["tasks"][0]
        if isinstance(given, dict) and "tasks" in given
        else given[0]
        if isinstance(given, list)
        else given
    )
    project.bring_text(name, text)
    (task,) = project.tasks.values()
    kept = task["metadata"]["source"]["kept"]
    for key in ("description", "labels", "tags", "priority", "closed_at", "end", "comments", "annotations"):
        if key in record and not isinstance(record[key], str) or key in record and record[key] in ("urgent", "soon"):
            assert kept[key] == record[key], key


def test_the_archive_of_a_folder_comes_too_but_for_what_lies_in_the_folder_again(project):
    theirs = project.folder / "theirs/.tasks"
    lies = [
        ("", "b", "y"),
        ("archive/2026-09", "a", "x"),
        ("archive/2025-01", "a", "older"),
        ("archive/undated", "b", "-"),
    ]
    for place, task_id, subject in lies:
        (theirs / place).mkdir(parents=True, exist_ok=True)
        text = {"id": task_id, "subject": subject, "description": "", "status": "completed", "owner": None}
        (theirs / place / f"{task_id}.json").write_text(
            json.dumps(text | {"blockedBy": ["a"] * (task_id == "b"), "rev": 1})
        )
    answer = project.bring(theirs)
    assert sorted(answer.created) == ["a", "b"] and answer.findings == ()
    assert (project.tasks["b"]["subject"], project.tasks["b"]["blockedBy"]) == ("y", ["a"])
    assert project.tasks["a"]["subject"] == "x"
    (theirs / "archive").rename(project.folder / "elsewhere")
    (theirs / "archive").symlink_to(project.folder / "elsewhere")
    assert project.bring(theirs, dry_run=True).records == 1
