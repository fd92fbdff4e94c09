"""The description of the HTTP API, derived from the definitions of the verbs."""

from __future__ import annotations

from typing import Any

from ... import __version__
from ...core.errors import EXITS
from ...registry import VERBS, Verb, schema

_TEXT = {"type": "string"}
_SCHEMAS: dict[str, Any] = {
    "Answer": {
        "type": "object",
        "properties": {"v": {"const": 1}, "ok": {"const": True}, "data": {"type": "object"}},
        "required": ["v", "ok", "data"],
    },
    "Refusal": {
        "type": "object",
        "properties": {
            "v": {"const": 1},
            "ok": {"const": False},
            "error": {
                "type": "object",
                "properties": {
                    "code": {"enum": [*EXITS]},
                    "message": _TEXT,
                    "task": {"type": ["string", "null"]},
                    "by": {"type": "array", "items": _TEXT},
                    "next": _TEXT,
                },
            },
        },
        "required": ["v", "ok", "error"],
    },
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
