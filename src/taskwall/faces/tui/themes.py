"""The colours of the page, for a terminal: dark and light, with a colour for each state."""

from __future__ import annotations

from textual.theme import Theme


def _theme(name: str, *, dark: bool, colours: str) -> Theme:
    names = "paper card sunk ink soft accent ready active person blocked stale done danger"
    found = dict(zip(names.split(), colours.split(), strict=True))
    return Theme(
        name,
        primary=found["accent"],
        accent=found["accent"],
        error=found["danger"],
        background=found["paper"],
        surface=found["card"],
        panel=found["sunk"],
        foreground=found["ink"],
        dark=dark,
        variables={f"wall-{name}": colour for name, colour in found.items()},
    )


DARK = _theme(
    "taskwall-dark",
    dark=True,
    colours="#14171a #262c32 #191c20 #e6e7e8 #a4acb6 #8ab8f5 #67c593 #8ab8f5 #e2b35c #9ba4ae #f0936b #8fa296 #f08a8a",
)
LIGHT = _theme(
    "taskwall-light",
    dark=False,
    colours="#f5f4f1 #dcdad3 #ecebe6 #1f2429 #59616b #2459a9 #17724a #2459a9 #8a5400 #5f6670 #a63d14 #5b6a60 #a32020",
)
THEMES = (DARK, LIGHT)
