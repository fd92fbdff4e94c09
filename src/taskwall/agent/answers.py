"""What a model is asked and answers, and in what ways that can fail.

ModelError        no answer, and asking again would not help; it ends the run
├── Transient     asking again later may help
└── Overflow      the conversation is longer than the model can read
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..core.record import Record
from .messages import Message

Schemas = Sequence[dict[str, Any]]
"""What a model is told of its tools."""
Say = Callable[[str], None]
"""Is told the words of an answer as they come."""


class Model(Protocol):
    """Whatever answers a conversation."""

    def answer(self, messages: Sequence[Message], tools: Schemas, *, deadline: float, say: Say) -> Answer:
        """The next answer; its words are said as they come. deadline: on the monotonic clock.

        Raises ModelError.
        """


class Answer(Record):
    """What a model answered. message: as it came, in the shape of chat completions. cut: it ended before its end.

    refused: the model or its provider declined to answer. tokens_in and tokens_out: read and written; 0 when not told.
    """

    message: Message
    cut: bool = False
    refused: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


def count(usage: Any, *keys: str) -> int:
    """The sum of these counts of tokens, as far as an endpoint tells them."""
    told = [usage.get(key) for key in keys] if isinstance(usage, dict) else []
    return sum(number for number in told if isinstance(number, int))


class ModelError(Exception):
    """The endpoint gave no answer, and asking again would not help; the message says why."""

    status = 0


class Transient(ModelError):
    """It may answer later. after: seconds that it asked us to wait. overloaded: it has too much to do."""

    def __init__(self, text: str, *, after: float | None = None, overloaded: bool = False) -> None:
        super().__init__(text)
        self.after, self.overloaded = after, overloaded


class Overflow(ModelError):
    """The conversation is longer than the model can read."""


TOO_LONG = re.compile(
    r"context.{0,12}(length|window|size|limit)|maximum context|(prompt|input|request)( is|s are)? too (long|large)"
    r"|too many (input )?tokens|reduce the length|input token count|exceed_context_size",
    re.IGNORECASE | re.DOTALL,
)
SPENT = re.compile(
    r"insufficient (balance|credit|fund)|spend(ing)? ?limit|credit balance|out of credit|billing.hard.limit"
    r"|current quota",
    re.IGNORECASE,
)
SOON = re.compile(r"(try again|retry) in|per.?minute", re.IGNORECASE)
"""Of a 429: words of a limit that no waiting lifts, unless the second ones stand beside them."""


def fault(status: int, text: str, after: float | None = None) -> ModelError:
    """What an error of an endpoint means. after: its Retry-After in seconds."""
    error: ModelError
    if status == 413 or (status in (400, 422, 429, 500) and TOO_LONG.search(text)):
        error = Overflow(text)
    elif status == 429 and _is_spent(text, after):
        error = ModelError(text)
    elif status in (408, 409, 429) or status >= 500:
        error = Transient(text, after=after, overloaded=status in (429, 503, 529))
    else:
        error = ModelError(text)
    error.status = status
    return error


def _is_spent(text: str, after: float | None) -> bool:
    return "insufficient_quota" in text or (after is None and bool(SPENT.search(text)) and not SOON.search(text))
