"""The address of a board in PostgreSQL; reading one needs no driver."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ...core.errors import Invalid

SCHEMES = ("postgresql", "postgres")
HOW = "give it as postgresql://USER@HOST/DATABASE?board=NAME"
SHOWN = ("host", "port", "service")
"""What of a query may be shown: the rest may name keys and passwords."""


class Address:
    """Where a board lies: `postgresql://…/database?board=NAME`, of which everything but `board` is for libpq.

    text: as it was given. shown: without password, for people and logs. Raises Invalid.
    """

    def __init__(self, text: str) -> None:
        try:
            parts = urlsplit(text)
            given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError as error:
            raise Invalid(f"the address of the board is not a URL: {error}", next=HOW) from None
        self.text = text
        self.board = dict(given).get("board", "") or "main"
        others = [(key, value) for key, value in given if key != "board"]
        head = f"{parts.scheme}://"  # where no host is named, `urlunsplit` would leave out the slashes
        self.conninfo = f"{head}{parts.netloc}{parts.path}" + (f"?{_query(others)}" if others else "")
        user, _, host = parts.netloc.rpartition("@")
        who = f"{user.partition(':')[0]}@" if user else ""
        kept = [(key, value) for key, value in others if key in SHOWN]
        self.shown = f"{head}{who}{host}{parts.path}?{_query([*kept, ('board', self.board)])}"

    def of(self, board: str) -> str:
        """The address of another board in the same database."""
        return f"{self.conninfo}{'&' if '?' in self.conninfo else '?'}{_query([('board', board)])}"

    def without_secrets(self, text: object) -> str:
        """What somebody else said of it, on one line, for people."""
        told = " ".join(str(text).split())
        password = urlsplit(self.text).password or dict(parse_qsl(urlsplit(self.text).query)).get("password")
        return told.replace(password, "***") if password else told


def _query(pairs: list[tuple[str, str]]) -> str:
    return urlencode(pairs, quote_via=quote)
