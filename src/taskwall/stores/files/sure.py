"""How a board's files are read by one who decides by what is there."""

from __future__ import annotations

from ...core.errors import Unwritable
from .disk import MAX_BYTES, Disk, NotPlain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .disk import Signature


class Sure(Disk):
    """Looks at another disk for one who decides by what is there: what cannot be read is never taken for absent."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def names(self, folder: str) -> list[tuple[str, Signature]]:
        try:
            return self._disk.names(folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unseen(folder, error) from None

    def read(self, path: str, most: int = MAX_BYTES) -> tuple[bytes, Signature]:
        try:
            return self._disk.read(path, most)
        except NotPlain as flaw:
            if flaw.error is None:
                raise
            raise _unseen(path, flaw.error) from None


def _unseen(path: str, error: OSError) -> Unwritable:
    way = "see that this process may read it, and repeat the command"
    return Unwritable(f"{path} cannot be read: {error.strerror}; nothing was changed", next=way)
