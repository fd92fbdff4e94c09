"""What comes before every request, because a server on loopback is open to every page in every browser here.

Host: a name that an attacker points at this address (DNS rebinding) is not ours. Origin: another page is not ours.
Token: another user of this machine is not ours. It travels in a header, never in a cookie: cookies are shared by all
ports of a host, and sent by any page. The page itself (markup, scripts) holds no data and needs no token.
"""

from __future__ import annotations

import ipaddress
import secrets
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...core.record import Record

MAX_BODY = 1024 * 1024
"""Bytes of a request: sixteen of the longest descriptions."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types taskwall"
)
"""Nothing inline, nothing from elsewhere, and no text that becomes markup or script in any way."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
WAY_OUT = "open the link that `taskwall web` printed"


class Guard(Record):
    """Lets a request through to `app`, or refuses it. name: a host name to which the server was bound on purpose."""

    app: ASGIApp
    token: str
    remote: bool = False
    name: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for key, value in HEADERS.items():
                    headers[key] = value
            await send(message)

        if wrong := self._wrong(scope["path"], Headers(scope=scope)):
            status, code, text = wrong
            told: dict[str, Any] = {"code": code, "message": text, "task": None, "by": [], "next": WAY_OUT}
            await JSONResponse({"v": 1, "ok": False, "error": told}, status)(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)

    def _wrong(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        """Why a request is refused: status, code and words."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 421, "wrong_host", "this server does not go by that name"
        if headers.get("origin", f"http://{host}") not in (f"http://{host}", f"https://{host}"):
            return 403, "wrong_origin", "a page of another origin may not use this board"
        if not path.startswith(("/api/", "/metrics")):  # a link to the page may stand anywhere
            return None
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return 403, "wrong_origin", "a page of another site may not use this board"
        if not self._knows(headers.get("authorization", "")):
            return 401, "no_token", "this needs the token of the running server"
        return None

    def _is_ours(self, host: str) -> bool:
        """An address is what it says; a name may be pointed anywhere, so that only `localhost` and `name` pass."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in {"localhost", self.name} - {""}:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.remote or address.is_loopback

    def _knows(self, authorization: str) -> bool:
        return secrets.compare_digest(authorization.encode(), f"Bearer {self.token}".encode())
