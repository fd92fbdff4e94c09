"""The open work as a picture that Markdown shows."""

from __future__ import annotations

import re

from .wording import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .overviews import Graph


def mermaid(answer: Graph) -> str:
    """The open work as a Mermaid flowchart."""
    rows = {step.row.task.id: step.row for step in answer.steps}
    name = {task_id: f"n{number}" for number, task_id in enumerate(rows)}
    lines = ["flowchart TD"]
    for task_id, row in rows.items():
        label = re.sub(r'["<>&#;`]', lambda m: f"#{ord(m[0])};", f"{task_id}: {safe(row.task.subject)}")
        lines.append(f'  {name[task_id]}["{label}<br/>{row.state}"]')
    lines += [f"  {name[a]} --> {name[b]}" for a, b in answer.edges if a in name and b in name]
    lines += [f'  more["… {answer.more} more tasks"]'] if answer.more else []
    return safe("\n".join(lines), lines=True)
