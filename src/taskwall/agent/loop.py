"""The whole loop: ask the model, carry out its calls, until it answers in words alone.

`run` → `step` → `execute(query())`. Whatever ends a run leaves the loop as `Ended`.
"""

from __future__ import annotations

from .messages import calls_of, text_of, tool_message, unanswered, user_message
from .models import ModelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .messages import Call
    from .models import Model
    from .runs import RunLog
    from .screen import Screen
    from .tools import Toolbox

NOT_RUN = (
    "This call was not run. Leave that task alone and go on with other work, or call again if it has to do with none."
)
NUDGE = "Your answer was empty. Call a tool, or say in words what you did when you are finished."


class Ended(Exception):
    """The run is over: its exit status (0 finished, 1 error, 130 interrupted) and why, in words."""

    def __init__(self, exit: int, why: str) -> None:
        super().__init__(why)
        self.exit, self.why = exit, why


class Agent:
    """One run. The log holds the conversation and saves each message before the next request."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        log: RunLog,
        screen: Screen,
        max_turns: int,
        take_lost: Callable[[], list[str]],
    ) -> None:
        """take_lost: a line about each claim that was taken over since it was last asked."""
        self.model, self.toolbox, self.log, self.screen = model, toolbox, log, screen
        self.take_lost = take_lost
        self.turns_left = max_turns
        self.nudged = False

    def run(self) -> Ended:
        """Step until something ends the run; every call has its answer then."""
        try:
            while True:
                self.step()
        except Ended as ended:
            return ended
        except ModelError as error:
            return Ended(1, str(error))
        except KeyboardInterrupt as stop:
            for call in unanswered(self.log.messages):
                self.log.add(tool_message(call, "interrupted"))
            return Ended(130, str(stop) or "interrupted")

    def step(self) -> None:
        """One turn."""
        self.execute(self.query())

    def query(self) -> list[Call]:
        """Ask the model; the calls of its answer. Raises Ended when it calls nothing, or may not be asked again."""
        if self.turns_left <= 0:
            raise Ended(1, "all its turns are used (--max-turns)")
        self.turns_left -= 1
        message, calls = calls_of(self.model.answer(self.log.messages, self.toolbox.schemas()), self.log.messages)
        text = text_of(message)
        if not calls and not text:
            return self.nudge()
        self.nudged = False
        self.log.add(message)
        if text:
            self.screen.say(text)
        if not calls:
            raise Ended(0, "finished")
        return calls

    def nudge(self) -> list[Call]:
        """Ask once more after an empty answer, which is not kept: endpoints refuse to be sent one back."""
        if self.nudged:
            raise Ended(1, "the model answered nothing, twice")
        self.nudged = True
        self.log.add(user_message(NUDGE))
        return []

    def execute(self, calls: list[Call]) -> None:
        """Carry out each call and answer it, once."""
        for call in calls:
            self.screen.echo(call)
            # Looked at before the call: work on a task that is somebody else's now is work done twice.
            lost = self.take_lost()
            result = "\n".join([*lost, self.toolbox.run(call) if not lost else NOT_RUN])
            self.log.add(tool_message(call, result))
            self.screen.say(result)
