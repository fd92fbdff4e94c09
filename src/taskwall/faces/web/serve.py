"""`taskwall web`: bind a port, say the link, and serve until a signal ends it."""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
from contextlib import suppress

from ... import config
from ...core.errors import Invalid
from ...envelope import dumps, envelope
from ...results import Answer
from ...wording import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...config import Location
    from .security import Guard

LOOPBACK = "127.0.0.1"
PORTS = range(7420, 7520)
"""Tried in turn when no port is given, so that several boards can be open at once."""

RISK = """\
warning: the board is open to the network on {address}. Whoever has the link reads every task and acts as {actor}, and
the connection is not encrypted: anyone on the way can read the link. `ssh -L {port}:127.0.0.1:{port} HOST` is safer."""


class Served(Answer):
    """A wall that is open. url: with the token, which the page takes out of the address bar.

    A token of the environment's is named and not told: it outlives this server, and so do logs.
    """

    url: str
    board: str
    actor: str
    writable: bool


def serve(
    location: Location,
    *,
    actor: str | None = None,
    port: int | None = None,
    open: bool = False,
    read_only: bool = False,
    remote: str | None = None,
    as_json: bool = False,
) -> int:
    """Serve the board of a location until interrupted. remote: the address to bind instead of loopback."""
    from .app import Wall

    given = _given_token()
    who = config.find_actor(actor or "user", {})
    wall = Wall(lambda: config.open_board(location, who), location.path, location.local, writable=not read_only)
    bound = _bind(remote or LOOPBACK, port)
    number = bound.getsockname()[1]
    token = given or secrets.token_urlsafe(24)
    name = f"[{remote}]" if remote and ":" in remote else remote or LOOPBACK
    link = f"http://{name}:{number}/#token="
    served = Served(link + (f"${TOKEN}" if given else token), location.path, who.name, not read_only)
    if remote:
        print(RISK.format(address=safe(remote), actor=safe(who.name), port=number), file=sys.stderr)
    _announce(served, as_json=as_json)
    if open:
        import webbrowser

        webbrowser.open(link + token)
    _answer(wall.app(token, remote=bool(remote), name=remote or ""), bound)
    return 0


def _answer(app: Guard, bound: socket.socket) -> None:
    """Answer requests on a bound socket until interrupted."""
    import uvicorn

    options = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    with suppress(KeyboardInterrupt), bound:
        uvicorn.Server(options).run(sockets=[bound])


TOKEN, SHORTEST = "TASKWALL_WEB_TOKEN", 16


def _given_token() -> str:
    """The token that the environment sets, for whoever cannot learn a new one at each start. Raises Invalid."""
    given = os.environ.pop(TOKEN, "")  # nothing that is run from here on needs it
    if given and not re.fullmatch(rf"[A-Za-z0-9_-]{{{SHORTEST},}}", given):
        told = f"${TOKEN} must be at least {SHORTEST} letters, digits, `-` and `_`"
        raise Invalid(told, next="make one: `openssl rand -hex 24`")
    return given


def _bind(host: str, port: int | None) -> socket.socket:
    """A socket on this port, or on the first free one. Raises Invalid."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in PORTS if port is None else (port,):
        try:
            return socket.create_server((host, number), family=family)
        except (OSError, OverflowError) as error:
            told = error
    where = f"{host}:{port}" if port is not None else f"{host}, ports {PORTS.start} to {PORTS.stop - 1}"
    raise Invalid(f"{where} cannot be bound: {told}", next="choose another: --port N; 0 takes any free one")


def _announce(served: Served, *, as_json: bool) -> None:
    if as_json:
        print(dumps(envelope(served)), flush=True)
        return
    does = f"acts as {safe(served.actor)}" if served.writable else "for reading only"
    print(f"The wall of {safe(served.board)}, {does}:\n\n  {served.url}\n\nCtrl-C ends it.", flush=True)
