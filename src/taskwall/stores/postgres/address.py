"""The address of a board in PostgreSQL; reading one needs no driver."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ...core.errors import Invalid, Refused
from ...core.model import checked_line

SCHEMES = ("postgresql", "postgres")
HOW = "give it as postgresql://USER@HOST/DATABASE?board=NAME"
SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
"""What of a query is never shown."""


class Address:
    """Where a board lies: `postgresql://…/database?board=NAME`, of which everything but `board` is for libpq.

    text: as it was given. shown: without password, for people and logs; server: without the board, too; anybody:
    without the user, so that others may go there. Raises Invalid, which repeats nothing of what may be a password.
    """

    def __init__(self, text: str) -> None:
        try:
            parts = urlsplit(text)
            given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            _ = parts.port  # raises when what stands there is no number, but the rest of a password
            boards = [value for key, value in given if key == "board"] or ["main"]
            [board] = boards
            self.board = checked_line(board or "main", "the board's name")
            [_, *rest] = f"{parts.path}#{parts.fragment}".rstrip("#").replace("#", "@").split("@")
            [] = rest  # of a password that was not quoted
        except (ValueError, Refused):
            told = "the address of the board is no URL that can be read, or names no board or several"
            way = f"{HOW}; in user and password write % and two digits for # / ? @ : and the like"
            raise Invalid(told, next=way) from None
        self.text = text
        others = [(key, value) for key, value in given if key != "board"]
        head = f"{parts.scheme}://"  # where no host is named, `urlunsplit` would leave out the slashes
        self.conninfo = f"{head}{parts.netloc}{parts.path}" + (f"?{_query(others)}" if others else "")
        user, _, host = parts.netloc.rpartition("@")
        who = f"{user.partition(':')[0]}@" if user else ""
        kept = [(key, value) for key, value in others if key not in SECRETS]
        where, named = f"{host}{parts.path}", _query([*kept, ("board", self.board)])
        self.server = f"{head}{who}{where}" + (f"?{_query(kept)}" if kept else "")
        self.shown, self.anybody = f"{head}{who}{where}?{named}", f"{head}{where}?{named}"

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
