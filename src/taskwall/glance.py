"""The board at a glance as text: for an agent that begins, goes on, or has lost its context."""

from __future__ import annotations

from .core.state import STALE
from .lengths import clipped, tokens
from .wording import LAPSED, line, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .core.state import Waiting
    from .overviews import Digest
    from .results import Row


def digest(answer: Digest) -> str:
    """Whatever the board holds, at most about 550 tokens."""
    counts = ", ".join(f"{number} {name}" for name, number in answer.counts)
    held = [f"- {row.task.token}: {safe(row.task.subject)}{_lapsed(row)}" for row in answer.held]
    lines = [f"The board now: {counts or 'no tasks'}."]
    lines += _bounded("You hold:", held, 180, 0) or ["You hold nothing."]
    lines += [f"Others hold {answer.others}."] if answer.others else []
    if answer.counts:
        lines += _bounded("Next:", [*map(line, answer.next)], 160, answer.more) or ["Next: nothing is actionable."]
    lines += _bounded("Who must act:", [f"- {safe(end)}" for end in _by_holder(answer.waiting).lines()], 120, 0)
    return safe("\n".join(lines), lines=True)


def _by_holder(waiting: Waiting) -> Waiting:
    """With one line for all that somebody holds."""
    held: dict[str, list[str]] = {}
    for who, name in waiting.holders:
        held.setdefault(who, []).append(name)
    more = {who: f" and {len(names) - 3} more" if len(names) > 3 else "" for who, names in held.items()}
    return waiting.replace(holders=tuple((who, ", ".join(names[:3]) + more[who]) for who, names in held.items()))


def _lapsed(row: Row) -> str:
    return f" [{LAPSED}]" if row.state == STALE else ""


def _bounded(title: str, items: Sequence[str], most: int, more: int) -> list[str]:
    """A section of at most so many tokens, each line at most half of them. more: items that were left out before."""
    lines = [clipped(item, most // 2) for item in items]
    while len(lines) > 1 and sum(map(tokens, lines)) > most:
        del lines[-1]
    more += len(items) - len(lines)
    return [title, *lines, *([f"… {more} more"] if more else [])] if items else []
