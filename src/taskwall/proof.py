"""Products: the files a task promised. What exists is told here; whether that is enough, core decides."""

from __future__ import annotations

import os

from .core.errors import Invalid
from .core.model import checked_glob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def find_products(root: str, globs: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """The files under `root` that match, with their sizes in bytes, and the globs that nothing matches."""
    if not globs:
        return {}, ()
    from glob import glob  # imported late: few tasks promise products

    found: dict[str, int] = {}
    missing = []
    for pattern in globs:
        names: list[str] = []
        if _is_inside(pattern):
            # A name with brackets in it is a name before it is a pattern.
            names = [pattern, *glob(pattern, root_dir=root, recursive=True)]
        sizes = {name: size for name in names if (size := _size(os.path.join(root, name))) is not None}
        found |= {name: sizes[name] for name in sorted(sizes)[:MAX_RECORDED]}
        if not sizes:
            missing.append(pattern)
    return found, tuple(missing)


def _is_inside(pattern: str) -> bool:
    """Whether a glob is one that a verb would have accepted: those in a file may come from anywhere."""
    try:
        return bool(checked_glob(pattern))
    except Invalid:
        return False


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path)
    except OSError:  # a link to nothing, or a file removed since
        return None


MAX_RECORDED = 50
"""How many files of one glob are recorded as evidence."""
