"""What a board's `board.toml` says.

The parser of TOML takes as long to load as Python takes to start. What it found is therefore kept in `.local`, with the
signature of the file that it was found in: a copy that may be removed at any time, and holds for that very file alone.
"""

from __future__ import annotations

import os
import time

from .core.errors import Invalid
from .core.jsontext import dumps, loads
from .core.light import suppress
from .core.model import MAX_TTL, Settings
from .stores.files.disk import DISK, NotPlain, read_text
from .stores.files.folder import RACY_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .stores.files.disk import Signature


def _is_number(value: Any, least: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value < float("inf")


SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "people": (lambda v: isinstance(v, list) and all(isinstance(name, str) for name in v), "a list of names"),
    "lease_minutes": (lambda v: _is_number(v, 0.01) and v <= MAX_TTL, f"minutes, at most {MAX_TTL}"),
    "max_attempts": (lambda v: _is_number(v, 1) and isinstance(v, int), "a whole number from 1"),
    "durability": (lambda v: v in ("full", "fast"), '"full" or "fast"'),
    "check_minutes": (lambda v: _is_number(v, 0.01), "minutes"),
    "archive_days": (lambda v: _is_number(v, 0), "days, 0 for never"),
    "moved": (lambda v: isinstance(v, str), "an address"),
    "claims_per_session": (lambda v: _is_number(v, 0) and isinstance(v, int), "a whole number from 0"),
}


def settings_in(path: str) -> Settings:
    """The settings in this file. Raises Invalid, naming the key."""
    copy = os.path.join(os.path.dirname(path), ".local", "settings.json")
    found = _kept(copy, DISK.seen(path))
    if found is None:
        try:
            text, seen = read_text(path)
        except (OSError, NotPlain) as error:
            raise Invalid(f"{path} cannot be read: {error}", next=f"mend {path}") from None
        found = _parsed(text, path)
        _keep(copy, found, seen)
    return _settings(found)


def parse_settings(text: str, path: str, *, strict: bool = False) -> Settings:
    """The settings in a text. path: where it stands. strict: of known keys alone. Raises Invalid, naming the key."""
    return _settings(_parsed(text, path, strict=strict))


def _settings(found: dict[str, Any]) -> Settings:
    return Settings(**found | {"people": tuple(found.get("people", ()))})


def _parsed(text: str, path: str, *, strict: bool = False) -> dict[str, Any]:
    import tomllib  # imported late: see above

    mend = f"mend {path}" if os.path.isabs(path) else "give better ones: `taskwall db settings FILE`"
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Invalid(f"{path} cannot be read: {error}", next=mend) from None
    if strict and (odd := [key for key in found if key not in SETTINGS or key == "moved"]):
        raise Invalid(f"{path}: {odd[0]} is no setting", next=f"those are {', '.join(SETTINGS.keys() - {'moved'})}")
    found = {key: found[key] for key in SETTINGS if key in found}
    if wrong := _wrong(found):
        raise Invalid(f"{path}: {wrong} is {found[wrong]!r}, must be {SETTINGS[wrong][1]}", next=mend)
    return found


def _wrong(found: dict[str, Any]) -> str | None:
    """The first setting whose value does not fit."""
    return next((key for key, (fits, _) in SETTINGS.items() if key in found and not fits(found[key])), None)


def _kept(copy: str, seen: Signature | None) -> dict[str, Any] | None:
    """What was found in the file of this signature; None when that is not known. The copy may hold anything."""
    try:
        told = loads(read_text(copy)[0])
        # One of another version has looked for other settings.
        same = [told["file"], told["names"]] == [[*(seen or ())], [*SETTINGS]]
        found: dict[str, Any] = told["found"]
        return found if same and found.keys() <= SETTINGS.keys() and not _wrong(found) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _keep(copy: str, found: dict[str, Any], seen: Signature) -> None:
    """Keep what was found, unless the file is so new that it may change again without another signature."""
    local = os.path.dirname(copy)
    ignore = DISK.seen(os.path.join(local, ".gitignore"))
    # Until a verb has written here, nothing keeps a copy out of git.
    if max(seen[:2]) > time.time_ns() - RACY_NS or not (ignore and ignore[2]) or not DISK.is_folder(local):
        return
    part = f"{copy}.{os.getpid()}.tmp"
    try:
        DISK.write_new(part, dumps({"file": seen, "names": [*SETTINGS], "found": found}).encode(), durable=False)
        DISK.rename(part, copy)
    except OSError:
        with suppress(OSError):
            DISK.unlink(part)
