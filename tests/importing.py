"""What the tests of imports share: a board to import to, sources made of texts, and what a report says."""

import json

from taskwall.config import find_board
from taskwall.core.model import Actor
from taskwall.interop.importing import import_board


def lines(*records):
    """JSON Lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


class Project:
    """A folder with a board in `here/.tasks`, and other programs' files beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.here = folder / "here"
        self.here.mkdir()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def bring(self, path, format="", *, dry_run=False):
        location = find_board(str(self.here), {}, str(self.here))
        return import_board(location, Actor("mover", "mover"), path=str(path), format=format, dry_run=dry_run)

    def bring_text(self, name, text, format=""):
        return self.bring(self.write(name, text), format)

    @property
    def texts(self):
        """The bytes of every task file."""
        return {path.name: path.read_bytes() for path in (self.here / ".tasks").glob("*.json")}

    @property
    def tasks(self):
        """Every task file's object, by id."""
        found = [json.loads(text) for text in self.texts.values()]
        return {task["id"]: task for task in found}

    def edit(self, task_id, **fields):
        """Change a task file by hand."""
        path = self.here / ".tasks" / f"{task_id}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields, ensure_ascii=False, indent=2) + "\n")


def told(answer, kind):
    """The findings of a kind as `where: text`."""
    return [f"{finding.where}: {finding.text}" for finding in answer.findings if finding.kind == kind]
