"""The description of the HTTP API, derived from the definitions of the verbs."""

from __future__ import annotations

from typing import Any

from ... import __version__
from ...core.errors import EXITS
from ...registry import VERBS, Verb, schema

_TEXT = {"type": "string"}
_ERROR = {
    "code": {"enum": [*EXITS]},
    "message": _TEXT,
    "task": {"type": ["string", "null"]},
    "by": {"type": "array", "items": _TEXT},
    "next": _TEXT,
}


def _envelope(key: str, inner: dict[str, Any], *, ok: bool) -> dict[str, Any]:
    properties = {"v": {"const": 1}, "ok": {"const": ok}, key: {"type": "object", **inner}}
    return {"type": "object", "properties": properties, "required": [*properties]}


_SCHEMAS = {
    "Answer": _envelope("data", {}, ok=True),
    "Refusal": _envelope("error", {"properties": _ERROR}, ok=False),
}


def description() -> dict[str, Any]:
    """The OpenAPI document: one path a verb."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "taskwall", "version": __version__},
        "paths": {f"/api/verbs/{name}": {"post": _operation(verb)} for name, verb in VERBS.items()},
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _operation(verb: Verb) -> dict[str, Any]:
    return {
        "operationId": verb.name,
        "summary": verb.doc,
        "requestBody": {"content": {"application/json": {"schema": schema(verb, everything=True)}}},
        "responses": {
            "200": _response("What became of it, as `--json` prints it.", "Answer"),
            "default": _response("Refused; nothing was written.", "Refusal"),
        },
    }


def _response(words: str, name: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {"description": words, "content": content}
