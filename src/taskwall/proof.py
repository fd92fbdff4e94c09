"""Products: the files a task promised. What exists is told here; whether that is enough, core decides."""

from __future__ import annotations

import os

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
        # A name with brackets in it is a name before it is a pattern.
        names = (
            [pattern] if os.path.exists(os.path.join(root, pattern)) else glob(pattern, root_dir=root, recursive=True)
        )
        found |= {name: os.path.getsize(os.path.join(root, name)) for name in sorted(names)[:MAX_RECORDED]}
        if not names:
            missing.append(pattern)
    return found, tuple(missing)


MAX_RECORDED = 50
"""How many files of one glob are recorded as evidence."""
