"""Which model answers, and how it is asked: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import json

from ..core.errors import Invalid
from ..core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from .messages import Message

    class Model(Protocol):
        """Whatever answers a conversation."""

        def answer(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Message:
            """The next assistant message, as it came. Raises ModelError."""


DEEPSEEK, OPENAI = "https://api.deepseek.com", "https://api.openai.com/v1"
DEEPSEEK_MODEL, OPENAI_MODEL = "deepseek-chat", "gpt-5-mini"
NO_KEY = "none"
"""Sent where no key is configured: the SDK insists on one, local servers ignore it."""

HOW = (
    "set DEEPSEEK_API_KEY or OPENAI_API_KEY; or name any compatible endpoint: --base-url URL --model NAME "
    "(OPENAI_BASE_URL, TASKWALL_MODEL), for Ollama --base-url http://127.0.0.1:11434/v1"
)


class ModelError(Exception):
    """The endpoint gave no answer, and asking again now would not help; the message says why."""


class Endpoint(Record):
    """Where a model is asked, with which key."""

    base_url: str
    key: str
    model: str


def choose(model: str | None, base_url: str | None, env: Mapping[str, str]) -> Endpoint:
    """The endpoint that flags and environment configure. Raises Invalid, saying what to set, when none is."""
    model = model or env.get("TASKWALL_MODEL") or ""
    url = base_url or env.get("OPENAI_BASE_URL") or ""
    openai_key, deepseek_key = env.get("OPENAI_API_KEY") or "", env.get("DEEPSEEK_API_KEY") or ""
    if not url and deepseek_key and (not openai_key or model.startswith("deepseek") or not model):
        url = DEEPSEEK
    elif not url and openai_key:
        url = OPENAI
    if not url:
        raise Invalid("no model is configured", next=HOW)
    key, usual = openai_key, ""
    if url.startswith(DEEPSEEK):
        key, usual = deepseek_key or openai_key, DEEPSEEK_MODEL
    elif url.startswith(OPENAI):
        usual = OPENAI_MODEL
    if not (model or usual):
        raise Invalid(f"{url} is to be asked, but not for which model", next="give --model or set TASKWALL_MODEL")
    return Endpoint(url, key or NO_KEY, model or usual)


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint. The SDK repeats what is worth repeating, twice."""

    def __init__(self, endpoint: Endpoint) -> None:
        import openai  # imported late: it takes a second, and only a run needs it

        self.endpoint = endpoint
        self._openai = openai
        self._client = openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.key)

    def answer(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Message:
        """The next assistant message, every field of it as it came. Raises ModelError."""
        functions: Any = [{"type": "function", "function": tool} for tool in tools]
        history: Any = list(messages)
        try:
            # The raw response, because the SDK's types drop what they do not know.
            raw = self._client.chat.completions.with_raw_response.create(
                model=self.endpoint.model, messages=history, tools=functions, tool_choice="auto"
            )
            return _message(json.loads(raw.content))
        except self._openai.APIStatusError as error:
            raise ModelError(
                f"{self._where} answered {error.status_code}: {_told(error.body, error.message)}"
            ) from None
        except self._openai.APIConnectionError as error:
            raise ModelError(f"{self._where} cannot be reached: {error.__cause__ or error}") from None
        except (self._openai.OpenAIError, ValueError) as error:
            raise ModelError(f"{self._where}: {error}") from None

    @property
    def _where(self) -> str:
        return f"the model {self.endpoint.model} at {self.endpoint.base_url}"


def _message(body: Any) -> Message:
    """The assistant message in a response. Raises ValueError when there is none."""
    try:
        message = body["choices"][0]["message"]
    except (LookupError, TypeError):
        message = None
    if not isinstance(message, dict):
        raise ValueError(  # noqa: TRY004 - what an endpoint sent is a value, not a type of ours
            f"its answer holds no message: {_told(body, json.dumps(body)[:300])}"
        )
    return {"role": "assistant", **message}


def _told(body: Any, otherwise: str) -> str:
    """The endpoint's own words about an error."""
    error = body.get("error", body) if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return str(message) if message and not isinstance(message, dict) else otherwise
