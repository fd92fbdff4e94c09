"""What a run holds on the board: whether it still does, and what it must do before it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain, islice

from ..board import Board
from ..core.errors import Refused
from ..core.model import Task
from ..core.state import actionable
from ..wording import MAX_ITEMS
from .ending import SUPERSEDED, Ended
from .prompts import STILL_OPEN, STILL_YOURS, memory


class Claims:
    """Those that the run makes; a heartbeat notices what is lost. path: of the run's log."""

    def __init__(self, board: Board, take_lost: Callable[[], list[str]], path: str) -> None:
        self.board, self._take_lost, self._path = board, take_lost, path

    def lost(self) -> list[str]:
        """A line about each claim that was taken over since this was last asked."""
        return self._take_lost()

    def unfinished(self) -> str:
        """Nothing: what it still holds when it ends is given back."""
        return ""

    def memory(self) -> str:
        """The board now, for a model that forgot."""
        return memory(self.board, self._path)


class WorkingOff(Claims):
    """Those of a run that is to work the board off."""

    def unfinished(self) -> str:
        """While it holds a task or may start one, a run that says that it is finished is not."""
        view, actor = self.board.store.read(), self.board.actor
        left = chain(view.held_by(actor), actionable(view, actor))
        names = ", ".join(task.id for task in islice(left, MAX_ITEMS))
        return STILL_OPEN.format(tasks=names) if names else ""


class OneTask(Claims):
    """The one task of a run. Somebody else may beat for it, so the board itself is looked at."""

    def __init__(self, board: Board, take_lost: Callable[[], list[str]], path: str, task: Task) -> None:
        super().__init__(board, take_lost, path)
        self.id, self.epoch = task.id, task.epoch

    def lost(self) -> list[str]:
        """Raises Ended when the task is somebody else's now: there is nothing left to do."""
        task = self.board.store.read().get(self.id)
        if task and task.epoch != self.epoch:
            raise Ended(SUPERSEDED, f"{self.id} was taken over by {task.owner}")
        return super().lost()

    def unfinished(self) -> str:
        """While the task is held, a run that says that it is finished is not. Raises Ended like `lost`."""
        self.lost()
        held = any(task.id == self.id for task in self.board.store.read().held_by(self.board.actor))
        return STILL_YOURS.format(task=self.id) if held else ""


class Helping(Claims):
    """Those of a helper. It ends when the run that it helps loses what it works on."""

    def __init__(self, board: Board, take_lost: Callable[[], list[str]], path: str, helped: Claims) -> None:
        super().__init__(board, take_lost, path)
        self._helped = helped

    def lost(self) -> list[str]:
        """Raises Ended with what the helped run lost, which is then told to it."""
        if lost := self._helped.lost():
            raise Ended(SUPERSEDED, "\n".join(lost))
        return super().lost()


def give_back(board: Board, why: str, theirs: Collection[str] = ()) -> list[str]:
    """Release everything that this actor and session hold, but for tokens of others; a line about each."""
    lines = []
    for task in board.store.read().held_by(board.actor):
        if task.token in theirs:
            continue
        try:
            board.release(task.token, reason=why)
            lines.append(f"Released {task.id} ({task.subject}): {why}")
        except Refused as error:
            lines.append(f"{task.id} could not be released: {error.message}")
    return lines
