"""How long a text is for a model or on a terminal, and how it is made shorter."""

from __future__ import annotations

from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def tokens(text: str) -> float:
    """About how many tokens a model takes for a text: 3.5 bytes each, but one a Chinese character."""
    return sum(len(c.encode()) / 3.5 if c < "\u1100" else 1 + (c > "\uffff") for c in text)


def clipped(text: str, most: int) -> str:
    """One line of about so many tokens."""
    short = text[: 4 * most]
    while tokens(short) > most:
        short = short[: len(short) * 9 // 10]
    return text if short == text else f"{short.rstrip()}…"


def shortened(text: str, most: int, where: str = "") -> str:
    """Text of at most `most` characters, with its beginning and its end. where: what to say of the rest."""
    if len(text) <= most:
        return text
    note = f"\n… {len(text) - most} characters and more are left out here{where} …\n"
    head = (most - len(note)) * 2 // 3
    return text[:head] + note + text[len(text) - (most - len(note) - head) :]


def leveled(parts: Sequence[str], most: int, way: str) -> str:
    """These texts, a line or more each, in at most `most` bytes: the longest are cut, all to one length.

    Where there are too many for that, the last of them are left out. way: how to see all.
    """
    kept = parts[: most // LEAST]
    left_out = [f"… {len(parts) - len(kept)} more ({way})"] if len(kept) < len(parts) else []
    room = most - LEAST * len(left_out)
    for done, size in enumerate(sorted(len(part.encode()) + 1 for part in kept)):
        share = room // (len(kept) - done)
        if size > share:
            kept = [_cut_to(part, share - 1, way) for part in kept]
            break
        room -= size
    return "\n".join([*kept, *left_out])


LEAST = 80
"""How many bytes each of very many texts may have."""


def _cut_to(text: str, most: int, way: str) -> str:
    data = text.encode()
    if len(data) <= most:
        return text
    note = f"… {len(data) - most} bytes more ({way})" if most >= 3 * LEAST else "…"
    return data[: max(0, most - len(note.encode()))].decode(errors="ignore") + note


def columns(line: str) -> list[int]:
    """How many columns of a terminal each character takes: wide ones two, combining ones none."""
    import unicodedata  # imported late: only a terminal needs it

    return [0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line]


def cut(line: str, width: int) -> str:
    """A line that fits in so many columns."""
    widths = columns(line)
    if sum(widths) <= width:
        return line
    return "".join(c for c, end in zip(line, accumulate(widths), strict=True) if end < width) + "…"


def filled(line: str, width: int) -> str:
    """A line that takes just so many columns."""
    short = cut(line, width)
    return short + " " * (width - sum(columns(short)))
