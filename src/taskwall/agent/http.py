"""One request to an endpoint over HTTP, with the SDK of its protocol: sent, read as it comes, its errors told apart.

The SDKs' own retries are off: they would not keep to our deadline.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .answers import Answer, ModelError, Say, Schemas, Transient, fault
from .messages import Message
from .models import Endpoint

CONNECT, SILENCE = 10.0, 600.0
"""Seconds until a connection stands, and for which an endpoint may say nothing (local models read long)."""
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer."""
NAMED = {
    "overloaded_error": 529, "rate_limit_error": 429, "timeout_error": 504, "invalid_request_error": 400,
    "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
    "request_too_large": 413, "insufficient_quota": 429, "context_length_exceeded": 400,
}  # fmt: skip
"""The status of errors that come by name inside a 200."""


class HTTPModel:
    """A model behind an endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        # Imported late: an SDK takes a second, and only a run needs it.
        if endpoint.wire == "anthropic":
            from .anthropic_wire import wire
        else:
            from .openai_wire import wire
        self.name = endpoint.name
        self._model = endpoint.model
        self._wire = wire(endpoint)
        self._streams = True

    def answer(self, messages: Sequence[Message], tools: Schemas, *, deadline: float, say: Say) -> Answer:
        """The next answer, every field of it as it came. Raises ModelError."""
        body = self._wire.request(self._model, self.name, messages, tools)
        try:
            answer = self._ask(body, deadline, say)
        except ModelError as error:
            if not self._streams or error.status not in (400, 422, 500, 501) or not _STREAM.search(str(error)):
                raise
            # Some servers cannot stream, or not with tools.
            self._streams = False
            answer = self._ask(body, deadline, say)
        return answer.replace(message={**answer.message, "from": self.name})

    def _ask(self, body: dict[str, Any], deadline: float, say: Say) -> Answer:
        import httpx2

        left = deadline - time.monotonic()
        timeout = httpx2.Timeout(max(0.1, min(left, SILENCE)), connect=max(0.1, min(left, CONNECT)))
        more = self._wire.streaming if self._streams else {}
        with self._errors(), self._wire.create(**body, **more, timeout=timeout) as response:
            chunks = self._bounded(response.iter_bytes(), deadline)
            if "text/event-stream" not in response.headers.get("content-type", ""):
                whole = json.loads(b"".join(chunks))
                self._require_sound(whole)
                return self._wire.whole(whole)
            assembly = self._wire.assembly()
            for event in events(chunks):
                self._require_sound(event)
                say(assembly.add(event))
            return assembly.answer()

    def _bounded(self, chunks: Iterator[bytes], deadline: float) -> Iterator[bytes]:
        """What comes until the deadline: bytes that say nothing keep silence from being noticed. Raises Transient."""
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if time.monotonic() > deadline:
                raise Transient(f"{self.name} was still answering when its time was over")
            if size > MAX_ANSWER:
                raise Transient(f"{self.name} answered more than {MAX_ANSWER} bytes")
            yield chunk

    def _require_sound(self, body: Any) -> None:
        """Raises the error that a body with status 200 holds."""
        error = body.get("error") if isinstance(body, dict) else None
        choices = body.get("choices") if isinstance(body, dict) else None
        if not error and isinstance(choices, list) and choices and isinstance(choices[0], dict):
            error = choices[0].get("error")
        if not error and isinstance(body, dict) and isinstance(body.get("message"), str):
            error = body  # vLLM and some gateways
        if error:
            raise fault(_status(error), f"{self.name} answered with an error: {_told(error, str(error))}")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Whatever the SDK and the connection raise becomes a ModelError."""
        import httpx2

        sdk = self._wire.sdk
        try:
            yield
        except sdk.APIStatusError as error:
            told = f"{self.name} answered {error.status_code}: {_told(error.body, error.message)}"
            after = retry_after(error.response.headers)
            raise fault(error.status_code, told, after) from None
        except (sdk.APIConnectionError, httpx2.HTTPError) as error:
            told = str(error.__cause__ or error) or type(error).__name__
            raise Transient(f"{self.name} cannot be reached: {told}") from None
        except (sdk.APIError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            # A proxy's page in place of an answer, or half of one.
            raise Transient(f"{self.name} did not answer as it should: {error}") from None


_STREAM = re.compile(r"\bstream", re.IGNORECASE)


def events(chunks: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects that a stream of server-sent events carries. Raises ValueError for what is none."""
    for line in _lines(chunks):
        data = line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
        if data and data != b"[DONE]":
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Only a line feed ends a line here; the SDKs' lines end at U+2028 too, which JSON may hold."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    yield rest


def retry_after(headers: Any) -> float | None:
    """Seconds that an endpoint asks us to wait, given as such or as a date."""
    given = headers.get("retry-after")
    with contextlib.suppress(TypeError, ValueError):
        return float(headers.get("retry-after-ms")) / 1000
    with contextlib.suppress(TypeError, ValueError):
        return float(given)
    from email.utils import parsedate_to_datetime

    with contextlib.suppress(TypeError, ValueError):
        return parsedate_to_datetime(given).timestamp() - time.time()
    return None


def _status(error: Any) -> int:
    """The HTTP status that an error in a 200 stands for; that of a server's slip when it does not say."""
    if not isinstance(error, dict):
        return 500
    for key in ("code", "status", "type"):
        value = error.get(key)
        if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
            return int(value)
        if value in NAMED:
            return NAMED[value]
    return 500


def _told(body: Any, otherwise: str) -> str:
    """The endpoint's own words about an error."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return str(error or otherwise)[:MAX_TOLD]
    names = [str(error[key]) for key in ("type", "code") if isinstance(error.get(key), str)]
    return ": ".join([*dict.fromkeys(names), str(error.get("message") or otherwise)])[:MAX_TOLD]


MAX_TOLD = 600
