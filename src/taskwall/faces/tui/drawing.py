"""How a task looks in lines of a terminal: parts of text, each of a kind that has a colour. All text is made safe."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells

from ...fleet import seconds
from ...lengths import cut
from ...wording import safe
from ..words import span
from .sight import CLOSED, Branch, Row, Sight

Part = tuple[str, str]
"""Text and its kind: one of KINDS, or nothing for plain text."""
Line = tuple[Part, ...]

STATES = ("ready", "in_progress", "stale", "waiting", "blocked", "held", "broken", "completed", "cancelled", "missing")
KINDS = (*STATES, "soft", "strong", "accent", "alert")

MARKS = dict(zip(STATES, "○◐◌◆·‖✗●−?", strict=True))
"""A sign beside the colour, for whoever sees none; one column each."""
LEASE = 5
"""How many cells a lease is long."""
DEEPEST = 12
"""From which depth on the tree tells the depth as a number, that long chains stay in sight."""


def wrapped(text: str, width: int, most: int = 0) -> list[str]:
    """Safe text in lines of so many columns, broken at blanks where it can be. most: how many, with an ellipsis."""
    lines: list[str] = []
    for paragraph in safe(text, lines=True).expandtabs(4).split("\n"):
        lines += _broken(paragraph, max(2, width))
    if most and len(lines) > most:
        lines[most - 1 :] = [cut(lines[most - 1] + " " + lines[most], width)]
    return lines


def _broken(text: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for n, word in enumerate(text.split(" ")):
        joined = f"{line} {word}" if n else word
        if cell_len(joined) > width:
            if line.strip() and cell_len(word) <= width:
                lines.append(line)
                joined = word
            *full, joined = chop_cells(joined, width) or [""]
            lines += full
        line = joined
    return [*lines, line]


def one_line(text: str, width: int) -> str:
    """Safe text, cut to so many columns."""
    return cut(safe(text), max(1, width))


def fitted(parts: list[Part], width: int) -> Line:
    """As many of these parts as fit, with blanks between them; the first of them is cut when it alone is too wide."""
    line: list[Part] = []
    left = width
    for text, kind in parts:
        shown = one_line(text, left) if not line else safe(text)
        need = cell_len(shown) + bool(line)
        if need <= left:
            line += [(" ", ""), (shown, kind)] if line else [(shown, kind)]
            left -= need
    return tuple(line)


def card(sight: Sight, row: Row, width: int) -> list[Line]:
    """A task on the board: its subject in two lines, and the facts; the fourth line parts it from the next card."""
    bar: Part = ("▌", row["state"])
    loud = "soft" if row["state"] in CLOSED else "strong"
    lines = wrapped(str(row["subject"]).replace("\n", " "), width - 2, most=2)
    reason = one_line(why(sight, row), width - 2) if len(lines) == 1 else ""
    inner: list[Line] = [((line, loud),) for line in lines]
    inner += [fitted(_facts(sight, row), width - 2), *([((reason, "soft"),)] if len(lines) == 1 else [])]
    return [(bar, (" ", ""), *line) for line in inner]


def _facts(sight: Sight, row: Row) -> list[Part]:
    t, state = sight.t, row["state"]
    total = len(row.get("blockers", ()))
    parts: list[Part] = []
    if row["priority"] != 2:
        parts.append((f"P{row['priority']}", "alert" if row["priority"] < 2 else "soft"))
    if state in ("stale", "held", "broken", "cancelled"):
        parts.append((t(f"state.{state}"), state))
    if state in ("in_progress", "stale", "completed") and row.get("owner"):
        parts.append((str(row["owner"]), state))
    elif row.get("reserved"):
        parts.append((t("card.for", name=row["reserved"]), "soft"))
    if state == "blocked":
        parts.append((f"{total - len(row.get('waits', ()))}/{total}", state))
    if bar := lease_bar(sight, row):
        parts.append((bar, state))
    if row.get("frees"):
        parts.append((f"↳{row['frees']}", "accent"))
    parts += [(age, "soft")] if (age := _age(sight, row)) else []
    return parts + [(f"#{label}", "soft") for label in row.get("labels", ())]


def lease_bar(sight: Sight, row: Row) -> str:
    """How much of a lease is left, as a bar; nothing where there is none."""
    claim = row.get("claim", {})
    if not claim.get("until"):
        return ""
    left = max(0.0, claim["until"] / 1000 - sight.clock()) / 60
    full: int = min(LEASE, round(LEASE * left / claim["ttl"]))
    return "▰" * full + "▱" * (LEASE - full)


def _age(sight: Sight, row: Row) -> str:
    then = seconds(row.get("completedAt") or row.get("startedAt") or row.get("createdAt"))
    return "" if then is None else span(sight.t, sight.clock() - then)


def named(row: Row | None, task_id: str, width: int, after: list[Part] | None = None) -> Line:
    """A task in one line: the sign of its state, its subject, then what fits of the rest."""
    state = row["state"] if row else "missing"
    tail = fitted(after or [], width // 2)
    room = width - 2 - sum(cell_len(text) for text, _ in tail) - 2 * bool(tail)
    subject = one_line(str(row["subject"]) if row else task_id, room)
    gap: Line = (("  ", ""),) if tail else ()
    return ((f"{MARKS[state]} ", state), (subject, "soft" if state in CLOSED else ""), *gap, *tail)


def branch(sight: Sight, one: Branch, width: int) -> list[Line]:
    """A task in the tree of open work."""
    t, row = sight.t, one.row
    deep = f"{one.depth} " if one.depth > DEEPEST else ""
    guide = "  " * (min(one.depth, DEEPEST) - 1) + "└ " + deep if one.depth else ""
    path = ("┃ ", "accent") if row["id"] in sight.critical and not one.again else ("  ", "")
    if one.again:
        parts: list[Part] = [(f"({t('graph.above')})", "soft")]
    else:
        said: Part = (t(f"state.{row['state']}"), row["state"])
        folded = [(f"+ {t('graph.folded', n=one.folded)}", "accent")] if one.folded else []
        parts = [*folded, said, *(part for part in _facts(sight, row)[:3] if part != said)]
    return [(path, (guide, "soft"), *named(row, row["id"], width - 2 - cell_len(guide), parts))]


def matter(sight: Sight, row: Row, width: int) -> list[Line]:
    """What waits on a person: what it is, what is asked, and what it keeps waiting."""
    t = sight.t
    waiting = [i for i in sight.behind.get(row["id"], ()) if i in sight.rows]
    question = row.get("question")
    asked = question if question and question != row["subject"] else why(sight, row)
    choices = "  ".join(f"[{option}]" for option in row.get("options", ()))
    second = "  ".join(filter(None, [asked, choices]))
    third = t("inbox.unblocks", names=sight.named(waiting)) if waiting else ""
    state: list[Part] = [(t(f"state.{row['state']}"), row["state"]), (_age(sight, row), "soft")]
    lines = [named(row, row["id"], width - 2, state), *(((one_line(text, width - 4), kind),) for text, kind in
             ((second, ""), (third, "soft")) if text)]  # fmt: skip
    return [(("▌ ", row["state"]), *(() if n == 0 else (("  ", ""),)), *line) for n, line in enumerate(lines)]


def why(sight: Sight, row: Row) -> str:
    """The first reason for a state that needs one."""
    reason = row.get("why")
    if row["state"] == "broken":
        return f"{reason['text']}. {sight.t('inbox.mend')}" if reason else ""
    if not reason:
        return ""
    if reason["kind"] == "lapsed":
        return sight.t("why.stale", name=row.get("owner"))
    if reason["kind"] == "attempts":
        return sight.t("why.attempts", n=row.get("attempts"))
    return str(reason["text"])
