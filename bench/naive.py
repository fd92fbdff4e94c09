"""What a task board is at its simplest: read every file, look, write one back. No lock, no cycle check, no index."""

import json
import sys
from pathlib import Path


def load(folder):
    return {task["id"]: task for path in folder.glob("*.json") for task in [json.loads(path.read_text())]}


def main(verb, folder, task_id=None):
    folder = Path(folder)
    if verb == "next":
        tasks = load(folder)
        done = {i for i, task in tasks.items() if task["status"] == "completed"}
        ready = [t for t in tasks.values() if t["status"] == "pending" and done.issuperset(t["blockedBy"])]
        for task in sorted(ready, key=lambda t: t["id"])[:10]:
            print(f"[ ] {task['id']}: {task['subject']}")
    elif verb == "claim":
        path = folder / f"{task_id}.json"
        task = json.loads(path.read_text())
        waits = [
            i for i in task["blockedBy"] if json.loads((folder / f"{i}.json").read_text())["status"] != "completed"
        ]
        if waits:
            sys.exit(f"blocked by {waits}")
        path.write_text(json.dumps(task | {"status": "in_progress", "owner": "naive"}, indent=2))
        print(f"Claimed {task_id}")


main(*sys.argv[1:])
