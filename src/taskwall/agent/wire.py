"""What a protocol of models must offer, so that one client can speak it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..core.record import Record
from .answers import Answer, Schemas
from .messages import Message


class Assembly(Protocol):
    """An answer that comes in pieces."""

    def add(self, event: dict[str, Any]) -> str:
        """Take one event; the words in it, to be shown at once."""

    def answer(self) -> Answer:
        """What has come. Raises ValueError when that is nothing."""


class Wire(Record):
    """A protocol at an endpoint. sdk: its module. create: the function of it that sends a request and lets us read.

    request: the body for a model, its name with the place, a conversation and tools. assembly: begins a streamed
    answer. whole: the answer in a body that did not stream. streaming: what a body says more to have it stream.
    """

    sdk: Any
    create: Callable[..., Any]
    request: Callable[[str, str, Sequence[Message], Schemas], dict[str, Any]]
    assembly: Callable[[], Assembly]
    whole: Callable[[Any], Answer]
    streaming: dict[str, Any]
