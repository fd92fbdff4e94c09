"""How long a text is for a model or on a terminal, and how it is made shorter."""

from __future__ import annotations

from itertools import accumulate


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
