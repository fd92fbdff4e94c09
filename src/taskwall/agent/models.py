"""Which model is asked, and where: what options and environment say, and never one by chance."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import Invalid
from ..core.record import Record


class Endpoint(Record):
    """Where a model is asked, with which key, and in which protocol: "openai" or "anthropic"."""

    base_url: str
    key: str
    model: str
    wire: str = "openai"

    @property
    def name(self) -> str:
        """The model and where it is asked, for people; what it alone understands is marked with this."""
        return f"{self.model} at {self.base_url}"


DEEPSEEK, OPENAI, ANTHROPIC = "https://api.deepseek.com", "https://api.openai.com/v1", "https://api.anthropic.com"
NO_KEY = "none"
"""Sent where no key is configured: the SDKs insist on one, local servers ignore it."""


class Provider(Record):
    """A service that is found by its key: where, under what names its models go, and which one is usual."""

    variable: str
    url: str
    prefix: str
    usual: str


PROVIDERS = (
    Provider("DEEPSEEK_API_KEY", DEEPSEEK, "deepseek", "deepseek-chat"),
    Provider("ANTHROPIC_API_KEY", ANTHROPIC, "claude", "claude-sonnet-5-5"),
    Provider("OPENAI_API_KEY", OPENAI, "", "gpt-5-mini"),
)

HOW = (
    "set DEEPSEEK_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY; or name any compatible endpoint by OPENAI_BASE_URL and "
    "TASKWALL_MODEL (--base-url, --model), for Ollama http://127.0.0.1:11434/v1"
)


def choose(model: str | None, base_url: str | None, env: Mapping[str, str]) -> Endpoint:
    """The endpoint that flags and environment configure. Raises Invalid, saying what to set, when none is.

    A URL decides alone where to ask; else the maker of the named model, when its key is set; else the only key.
    """
    model = model or env.get("TASKWALL_MODEL") or ""
    url = base_url or env.get("OPENAI_BASE_URL") or ""
    if url:
        if not url.startswith(("http://", "https://")):
            raise Invalid(f"{url} is no address of a model", next="begin it with http:// or https://")
        provider = next((p for p in PROVIDERS if _host(p.url) == _host(url)), None)
    else:
        provider = _provider(model, env)
        url = (env.get("ANTHROPIC_BASE_URL") if provider.url == ANTHROPIC else "") or provider.url
    anthropic = (provider is not None and provider.url == ANTHROPIC) or url.rstrip("/").endswith("/anthropic")
    usual = provider.usual if provider else ""
    if not (model or usual):
        raise Invalid(f"{url} is to be asked, but not for which model", next="give --model or set TASKWALL_MODEL")
    # Local servers and gateways go by the variable of the protocol that they speak.
    general = "ANTHROPIC_API_KEY" if anthropic else "OPENAI_API_KEY"
    key = (env.get(provider.variable) if provider else "") or env.get(general) or NO_KEY
    return Endpoint(url, key, model or usual, "anthropic" if anthropic else "openai")


def _provider(model: str, env: Mapping[str, str]) -> Provider:
    """Whose key is to be used. Never one of several by chance: it may cost money."""
    keyed = [p for p in PROVIDERS if env.get(p.variable)]
    if not keyed:
        raise Invalid("no model is configured", next=HOW)
    maker = next((p for p in PROVIDERS if model.startswith(p.prefix)), None) if model else None
    if maker in keyed:
        return maker
    if maker and maker.prefix:
        raise Invalid(f"{model} is not reached with {keyed[0].variable}", next=f"set {maker.variable}, or --base-url")
    if len(keyed) > 1:
        found = ", ".join(p.variable for p in keyed)
        raise Invalid(f"several models are configured: {found}", next="name one: --model NAME, or TASKWALL_MODEL")
    return keyed[0]


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]
