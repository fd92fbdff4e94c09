"""The sessions at work in lines: what each holds, with its lease, and a lane for each from claim to end."""

from __future__ import annotations

from functools import partial
from typing import Any

from rich.cells import set_cell_size

from ...fleet import seconds
from ..words import span
from .drawing import Line, Part, fitted, lease_bar, named, one_line
from .items import Item
from .sight import Row, Sight

HOURS = 8
"""How far a lane reaches back."""
NAME = 20
"""Columns for the name of a lane."""
ENDS = {
    "open": ("█", "in_progress"),
    "done": ("█", "ready"),
    "released": ("▓", "soft"),
    "held": ("▓", "held"),
    "cancelled": ("▓", "soft"),
    "stolen": ("░", "alert"),
    "expired": ("░", "stale"),
    "lost": ("░", "soft"),
}
"""How a claim looks in its lane by how it ended, in shade and in colour."""


def session_lines(sight: Sight, rows: list[Row]) -> list[Item]:
    """A session by its tasks: who it is and whether it lives, then a line for each task that it holds."""
    first: Item = (rows[0]["id"], partial(_session, sight, rows))
    return [first, *((row["id"], partial(_held, sight, row)) for row in rows)]


def _session(sight: Sight, rows: list[Row], width: int) -> Line:
    t, claim = sight.t, rows[0].get("claim", {})
    lease, owner = claim.get("lease", "by hand"), rows[0].get("owner")
    parts: list[Part] = [(str(owner or "?"), "strong"), (t(f"agents.{lease}"), _tone(lease))]
    if claim and claim["session"] != owner:
        parts.append((t("agents.session", name=claim["session"]), "soft"))
    kept_up = [row["claim"] for row in rows if row.get("claim", {}).get("until")]
    beats = [claim["until"] / 1000 - 60 * claim["ttl"] for claim in kept_up]
    since = seconds(claim.get("since"))
    if beats:
        parts.append((t("agents.beat", time=span(t, sight.clock() - max(beats))), "soft"))
    elif since is not None:
        parts.append((t("time.ago", time=span(t, sight.clock() - since)), "soft"))
    return fitted(parts, width)


def _tone(lease: str) -> str:
    return {"live": "ready", "lapsed": "stale"}.get(lease, "soft")


def _held(sight: Sight, row: Row, width: int) -> Line:
    t, claim = sight.t, row.get("claim", {})
    until, lease = claim.get("until"), claim.get("lease", "by hand")
    told = t("lease.live", time=span(t, until / 1000 - sight.clock())) if until else t(f"lease.{lease}")
    bar: list[Part] = [(lease_bar(sight, row), row["state"])] if until else []
    return (("  ", ""), *named(row, row["id"], width - 2, [*bar, (told, "soft")]))


def lane_lines(sight: Sight, lanes: list[dict[str, Any]]) -> list[Item]:
    """Who worked when: a lane for each session, and what its shades mean."""
    t, now = sight.t, sight.clock()
    since = now - 3600 * HOURS
    shown = [lane for lane in lanes if any(_end(one, now) >= since for one in lane["spans"])]
    head = _fixed((t("agents.lanes"), "strong"), (f"  {span(t, 3600 * HOURS)}", "soft"))
    if not shown:
        return [_fixed(), head, _fixed((t("agents.nolanes"), "soft"))]
    drawn: list[Item] = [("", partial(_lane, lane, since, now)) for lane in shown]
    return [_fixed(), head, *drawn, ("", partial(_legend, sight))]


def _fixed(*parts: Part) -> Item:
    return "", lambda _: parts


def _end(one: dict[str, Any], now: float) -> float:
    return seconds(one.get("to")) or now


def _lane(lane: dict[str, Any], since: float, now: float, width: int) -> Line:
    """One session from left to right; where claims overlap, the later one is seen."""
    room = max(10, width - NAME - 1)
    cells: list[Part] = [("─", "soft")] * room
    for one in lane["spans"]:
        began = seconds(one.get("from"))
        if began is None or (end := _end(one, now)) < since:
            continue
        first, last = (max(0, min(room - 1, int(room * (at - since) / (now - since)))) for at in (began, end))
        cells[first : last + 1] = [ENDS.get(one["end"], ENDS["lost"])] * (last - first + 1)
    name = one_line(str(lane["actor"]), NAME)
    return ((set_cell_size(name, NAME + 1), ""), *cells)


def _legend(sight: Sight, width: int) -> Line:
    shades = ((ENDS[end], sight.t(f"end.{end}")) for end in ("open", "done", "released", "expired", "stolen"))
    return (
        (" " * (NAME + 1), ""),
        *fitted([(f"{sign} {words}", kind) for (sign, kind), words in shades], width - NAME - 1),
    )
