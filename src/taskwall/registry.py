"""What is derived from a verb's one definition: its parameters, its schema for agents, and the repair of arguments.

Parameter types are a closed set; anything else is an error at import.
"""

from __future__ import annotations

from .core.errors import Invalid
from .core.light import cache, suppress
from .core.record import Record
from .stores.base import Outdated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .board import Board
    from .core.rules import Draft
    from .onlooker import Onlooker
    from .results import Answer

Ids = list[str]
"""A list of names without commas in them, which callers also send as one string with commas."""

KINDS = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "Ids": "array",
    "list[str]": "array",
    "list[Draft]": "array",
}


class Param(Record):
    """One parameter: its Python name, its name for callers, its kind (a key of KINDS), what it is for."""

    name: str
    public: str
    kind: str
    required: bool
    doc: str


class Verb:
    """Everything that a face must know of a verb. agents: the parameters that agents are shown, None for no tool.

    doc, params: what the function's docstring says, when not given; it is read when somebody asks. repeatable: a second
    call with the same arguments changes nothing more. destroys: it may end what others count on.
    """

    def __init__(
        self,
        function: Callable[..., Answer],
        doc: str | None = None,
        params: tuple[Param, ...] | None = None,
        *,
        agents: str | None = None,
        writes: bool = True,
        makes_board: bool = False,
        repeatable: bool = False,
        destroys: bool = False,
    ) -> None:
        self.name, self.function = function.__name__, function
        self._doc, self._params = doc, params
        self.agents = tuple(agents.split()) if agents is not None else None
        self.writes, self.makes_board, self.repeatable, self.destroys = writes, makes_board, repeatable, destroys

    @property
    def names(self) -> tuple[str, ...]:
        """What its function calls its parameters, behind the board."""
        code = self.function.__code__
        return code.co_varnames[1 : code.co_argcount]

    @property
    def doc(self) -> str:
        """What it does."""
        return self._doc or " ".join((self.function.__doc__ or "").partition("\n\n")[0].split())

    @property
    def params(self) -> tuple[Param, ...]:
        """Its parameters. Raises KeyError when the docstring says nothing of one."""
        if self._params is None:
            lines = (self.function.__doc__ or "").partition("\n\n")[2].splitlines()
            docs = {name: text for name, mark, text in (line.strip().partition(": ") for line in lines) if mark}
            needed = self.names[: len(self.names) - len(self.function.__defaults__ or ())]
            self._params = tuple(
                Param(name, public_name(name), _kind(self.function, name), name in needed, docs[name])
                for name in self.names
            )
        return self._params

    def run(self, board: Onlooker, **values: Any) -> Answer:
        """Call it on a board; again when what the board was read through turned out to be damaged, or was lost."""
        for _ in range(ATTEMPTS - 1):
            with suppress(Outdated):  # nothing was written
                return self.function(board, **values)
        return self.function(board, **values)


TYPES = {"Board", *KINDS, *(f"{kind} | None" for kind in KINDS), "Answer"}
"""All that the annotations of a verb may be."""

ATTEMPTS = 3
"""How often a verb is tried: two transactions may wait for each other, and a server may be restarted."""
VERBS: dict[str, Verb] = {}


def verb(**told: Any) -> Callable[[Any], Any]:
    """Register a function as the verb of its name. Its docstring describes it, then each parameter: `name: text`.

    told: what else a `Verb` is made of.
    """

    def register(function: Any) -> Any:
        if not TYPES.issuperset(function.__annotations__.values()):
            for name in Verb(function).names:
                _kind(function, name)  # raises
        VERBS[function.__name__] = Verb(function, **told)
        return function

    return register


def public_name(name: str) -> str:
    """Edges are called as in the files; everything else as in Python."""
    if not name.endswith("blocked_by"):
        return name
    return "blockedBy" if name == "blocked_by" else name.removesuffix("_blocked_by") + "BlockedBy"


def _kind(function: Any, name: str) -> str:
    kind = function.__annotations__[name].removesuffix(" | None")
    if kind not in KINDS:
        raise TypeError(f"{function.__name__}({name}): a verb cannot take {kind}")
    return str(kind)


# Schemas


def tools(names: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
    """The tools offered to agents, in the schema dialect that every client accepts; all ten when no names are given."""
    chosen = [VERBS[name] for name in names] if names else [v for v in VERBS.values() if v.agents is not None]
    return [{"name": v.name, "description": v.doc, "inputSchema": schema(v)} for v in chosen]


def hints(verb: Verb) -> dict[str, bool]:
    """What a client may assume of a tool before it calls it. No tool reaches beyond the board: no open world."""
    return {
        "readOnlyHint": not verb.writes,
        "destructiveHint": verb.destroys,
        "idempotentHint": verb.repeatable or not verb.writes,
        "openWorldHint": False,
    }


def schema(verb: Verb, *, everything: bool = False) -> dict[str, Any]:
    """The parameters that agents are shown, or all that there are, as a JSON schema."""
    shown = [p for p in verb.params if everything or verb.agents is None or p.public in verb.agents]
    return _object({p.public: _property(p) for p in shown}, [p.public for p in shown if p.required])


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _property(param: Param) -> dict[str, Any]:
    found: dict[str, Any] = {"type": KINDS[param.kind], "description": param.doc}
    if param.kind in ("Ids", "list[str]"):
        found["items"] = {"type": "string"}
    if param.kind == "list[Draft]":
        found["items"] = _object({p.public: _property(p) for p in PLAN_ITEM}, ["ref", "subject"])
    return found


PLAN_ITEM = (
    Param("ref", "ref", "str", required=True, doc="local name"),
    Param("subject", "subject", "str", required=True, doc="one line"),
    Param("description", "description", "str", required=False, doc="details"),
    Param("blocked_by", "blockedBy", "Ids", required=False, doc="refs or ids"),
    Param("parent", "parent", "str", required=False, doc="ref or id"),
)
"""What agents are shown of a task of a plan."""


# Arguments

_CALLED = {
    "task_id": "id taskId task",
    "subject": "title name",
    "description": "desc body",
    "blocked_by": "blockedBy blockers depends_on dependsOn dependencies",
    "add_blocked_by": "addBlockedBy",
    "remove_blocked_by": "removeBlockedBy",
    "owner": "assignee for",
    "state": "status states",
    "text": "query",
    "result": "summary message",
    "checks": "acceptance",
}
SYNONYMS = {theirs: ours for ours, words in _CALLED.items() for theirs in words.split()}
"""What callers call our parameters."""
MEANT = {"blocked_by": "add_blocked_by", "text": "note"}
"""Where a verb lacks the first, the second is what callers mean."""


def call(board: Board, name: str, arguments: Any) -> Answer:
    """Run a verb with the arguments of a model, taken kindly. Raises Refused."""
    found = VERBS.get(name)
    if found is None:
        from difflib import get_close_matches  # imported late: only an error needs it

        near = get_close_matches(name, VERBS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Invalid(f"no tool {name!r}", next=f"{hint}there are {', '.join(VERBS)}")
    return found.run(board, **bind(found, arguments))


def bind(verb: Verb, arguments: Any) -> dict[str, Any]:
    """The keyword arguments of a verb: synonyms mapped, absent options dropped, types coerced. Raises Invalid."""
    params = {param.name: param for param in verb.params}
    bound: dict[str, Any] = {}
    for given, value in _as_object(verb.name, arguments).items():
        name = _meant(given, params)
        if name is None:
            taken = ", ".join(param.public for param in verb.params) or "no arguments"
            is_status = given in ("status", "state")
            hint = "; claim_task, complete_task and release_task change a status" if is_status else ""
            raise Invalid(f"{verb.name} does not take {given!r}", next=f"it takes {taken}{hint}")
        if value is not None and (value != "" or params[name].required):
            where = f"{verb.name}: {params[name].public}"
            _add(bound, name, _coerced(params[name].kind, value, where), where)
    for param in verb.params:
        if param.required and param.name not in bound:
            raise Invalid(f"{verb.name} needs {param.public}: {param.doc}", next="call it again with that")
    return bound


def _as_object(verb_name: str, arguments: Any) -> Mapping[str, Any]:
    for _ in range(2):  # some endpoints encode twice
        if isinstance(arguments, str) and arguments:
            try:
                arguments = _decoded(arguments)
            except (ValueError, RecursionError):
                raise Invalid(f"{verb_name}: the arguments are not JSON", next="send one JSON object") from None
    if isinstance(arguments, list) and verb_name == "create_tasks":
        return {"tasks": arguments}
    if arguments in (None, ""):
        return {}
    if not isinstance(arguments, dict):
        raise Invalid(f"{verb_name}: the arguments are not a JSON object", next="send one JSON object")
    return arguments


def _decoded(text: str) -> Any:
    import json  # imported late: only models send JSON within JSON

    return json.loads(text)


def _meant(given: str, params: Mapping[str, Any]) -> str | None:
    """The parameter that a caller means by this word."""
    for name in (given, SYNONYMS.get(given, given)):
        if name in params:
            return name
        if (meant := MEANT.get(name)) and meant in params:
            return meant
    return None


def _add(bound: dict[str, Any], name: str, value: Any, where: str) -> None:
    """Take an argument that may come twice, under two names: lists are joined, and nothing is lost silently."""
    if name in bound and isinstance(value, list):
        value = list(dict.fromkeys([*bound[name], *value]))
    elif bound.get(name, value) != value:
        raise Invalid(f"{where} is given twice: {bound[name]!r} and {value!r}", next="send one of them")
    bound[name] = value


def _coerced(kind: str, value: Any, where: str) -> Any:
    try:
        return _COERCE[kind](value)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        lists = {"Ids": "a list of ids", "list[str]": "a list of strings", "list[Draft]": "a list of tasks"}
        wanted = {"int": "a whole number", "bool": "true or false", **lists}.get(kind, f"a {KINDS[kind]}")
        raise Invalid(f"{where} is {str(value)[:80]!r}, must be {wanted}", next="send it again") from None


def _text(value: Any) -> str:
    if isinstance(value, (dict, list, bool)):
        raise TypeError
    return str(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def integer(value: Any) -> int:
    """A whole number, also as text, or a word for a priority. Raises ValueError, TypeError."""
    number = float(_PRIORITY_WORDS.get(str(value).lower(), value)) if not isinstance(value, bool) else 0.5
    if not number.is_integer():
        raise ValueError
    return int(number)


_PRIORITY_WORDS = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "normal": 2, "low": 3}


def _truth(value: Any) -> bool:
    return {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}[str(value).lower()]


def _ids(value: Any) -> list[str]:
    """A list of names; also one string with commas between them."""
    if isinstance(value, str):
        value = _decoded(value) if value.lstrip().startswith("[") else value.split(",")
    return _texts(value)


def _texts(value: Any) -> list[str]:
    """A list of strings; also one string, which may be a JSON list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = _decoded(value)
    items = value if isinstance(value, list) else [value]
    return [text for item in items if (text := _text(item).strip())]


def _drafts(value: Any) -> list[Draft]:
    if isinstance(value, str):
        value = _decoded(value)
    return [draft(item) for item in (value if isinstance(value, list) else [value])]


def draft(item: Any) -> Draft:
    """A task to be created, from an object with the arguments of `create_task` and a `ref`. Raises Invalid."""
    from .core.rules import Draft  # imported late: only what plans needs it

    if isinstance(item, str):
        return Draft(subject=item)
    if not isinstance(item, dict):
        raise Invalid(f"a task of a plan is {item!r}, must be an object", next="give ref, subject and blockedBy")
    kinds = _draft_kinds()
    found: dict[str, Any] = {}
    for given, value in item.items():
        if (name := _meant(given, kinds)) is None:
            way = f"it takes {', '.join(map(public_name, kinds))}"
            raise Invalid(f"a task of a plan does not take {given!r}", next=way)
        if value is not None and value != "":
            where = f"task {item.get('ref', '')}: {public_name(name)}"
            _add(found, name, _coerced(kinds[name], value, where), where)
    if "subject" not in found:
        raise Invalid("a task of a plan has no subject", next="give each task a subject")
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}
    return Draft(**fields)


@cache
def _draft_kinds() -> dict[str, str]:
    """The kinds of what a task of a plan may be given, by name."""
    from .core.rules import Draft

    return {
        name: "Ids" if name in ("blocked_by", "labels") else "list[str]" if kind == "tuple[str, ...]" else str(kind)
        for name, kind in Draft.__annotations__.items()
    }


_COERCE: dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "int": integer,
    "float": _number,
    "bool": _truth,
    "Ids": _ids,
    "list[str]": _texts,
    "list[Draft]": _drafts,
}
