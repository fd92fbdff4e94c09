"""Making a conversation shorter that a model can no longer read, without parting a call from its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..lengths import shortened, tokens
from .messages import Message, user_message

OPENING = 2
"""Messages at the beginning that stay: the system prompt, and the goal with the task."""
MAX_RESULT = 1_000
"""Characters of each result of a last turn that is too long by itself."""


def compacted(messages: Sequence[Message], note: str) -> list[Message]:
    """The opening, the note about what is left out, and as many of the last turns as make half of the whole.

    Only whole turns are left out: an answer with all results of its calls. When the last turn alone is longer than
    that, its results are shortened. Returns the same conversation when nothing can be made shorter.
    """
    opening, turns = list(messages[:OPENING]), _turns(messages[OPENING:])
    room = sum(map(_size, messages)) / 2 - sum(map(_size, opening))
    kept: list[Message] = []
    while turns and (not kept or room >= sum(map(_size, turns[-1]))):
        turn = turns.pop()
        room -= sum(map(_size, turn))
        kept = [*turn, *kept]
    if room < 0:
        kept = [*map(_short, kept)]
    return [*opening, *([user_message(note)] if turns else []), *kept]


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Each answer with what follows it; what comes before the first one goes with that."""
    turns: list[list[Message]] = [[]]
    for message in messages:
        if message["role"] == "assistant" and any(m["role"] == "assistant" for m in turns[-1]):
            turns.append([])
        turns[-1].append(message)
    return turns if turns != [[]] else []


def _size(message: Message) -> float:
    return size([message])


def size(messages: Sequence[Message]) -> float:
    """About how many tokens these are."""
    return tokens(json.dumps(messages, ensure_ascii=False))


def _short(message: Message) -> Message:
    content = message.get("content")
    if message["role"] != "tool" or not isinstance(content, str):
        return message
    return {**message, "content": shortened(content, MAX_RESULT)}
