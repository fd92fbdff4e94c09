"""The whole loop: ask the model, carry out its calls, until it answers in words alone.

`run` → `step` → `execute(query())`. What goes wrong in a turn leaves it as an exception: `Aside` carries messages to
append before the next turn, `Ended` ends the run.
"""

from __future__ import annotations

from .answers import Answer, Model, ModelError, Overflow
from .budget import Budget
from .claims import Claims
from .compaction import compacted, size
from .ending import FAILED, FINISHED, INTERRUPTED, NO_MODEL, SPENT, Ended
from .messages import Call, Message, calls_of, text_of, tool_message, unanswered, user_message
from .runs import RunLog
from .screen import Screen
from .tools import Toolbox

NOT_RUN = (
    "This call was not run. Leave that task alone and go on with other work, or call again if it has to do with none."
)
NUDGE = "Your answer was empty. Call a tool, or say in words what you did when you are finished."
CUT_OFF = "Your answer was cut off. Go on exactly where it ended, without repeating anything."
SAME_AGAIN = "You made this very call for the third time in a row. Do something else: one more time ends the run."
MAX_CONTINUED, MAX_SAME = 3, 3
PATIENT = ("job",)
"""Tools that may be asked the same again: they wait for something."""


class Aside(Exception):
    """The turn is over without calls; these messages are appended, and the model is asked again."""

    def __init__(self, *messages: Message) -> None:
        super().__init__()
        self.messages = messages


class Agent:
    """One run. The log holds the conversation and saves each message before the next request."""

    def __init__(
        self, model: Model, toolbox: Toolbox, log: RunLog, screen: Screen, budget: Budget, claims: Claims
    ) -> None:
        self.model, self.toolbox, self.log, self.screen = model, toolbox, log, screen
        self.budget, self.claims = budget, claims
        self.nudges: set[str] = set()
        self.continued = self.same = 0
        self.last: list[tuple[str, str]] = []
        self.said = ""

    def run(self) -> Ended:
        """Step until something ends the run; every call has its answer then."""
        try:
            while True:
                try:
                    self.step()
                except Aside as aside:
                    for message in aside.messages:
                        self.log.add(message)
        except Ended as ended:
            return self.over(ended)
        except ModelError as error:
            return self.over(Ended(NO_MODEL, str(error)))
        except KeyboardInterrupt as stop:
            return self.over(Ended(INTERRUPTED, str(stop) or "interrupted"))

    def over(self, ended: Ended) -> Ended:
        """Answer what is left open, so that the conversation can be gone on with."""
        for number, call in enumerate(unanswered(self.log.messages)):
            begun = ended.exit == INTERRUPTED and number == 0
            self.log.add(tool_message(call, "interrupted" if begun else f"not run: {ended.why}"))
        return ended

    def step(self) -> None:
        """One turn."""
        self.execute(self.query())

    def query(self) -> list[Call]:
        """Ask the model; the calls of its answer. Raises Aside when it made none and is to go on, Ended, ModelError."""
        if why := self.budget.spent():
            raise Ended(SPENT, why)
        for notice in self.toolbox.notices():
            self.log.add(user_message(notice))
            self.screen.result(notice)
        answer = self.ask()
        message, calls = calls_of(answer.message, self.log.messages, self.toolbox.tools, cut=answer.cut)
        text = text_of(message)
        self.screen.said(text)
        self.said = text or self.said
        if calls:
            self.log.add(message)
            self.continued = 0
            self.nudges.clear()
            return calls
        raise self.without_calls(answer, message, text)

    def ask(self) -> Answer:
        """The model's answer; when the conversation is too long for it, to a shorter one, once."""
        try:
            answer = self._ask()
        except Overflow as error:
            self.shorten(error)
            answer = self._ask()
        if answer.tokens_in:
            self.budget.spend(answer.tokens_in, answer.tokens_out)
        else:
            self.budget.spend(round(size(self.log.messages)), round(size([answer.message])), estimated=True)
        return answer

    def _ask(self) -> Answer:
        with self.screen.thinking() as say:
            tools = self.toolbox.schemas()
            return self.model.answer(self.log.messages, tools, deadline=self.budget.deadline, say=say)

    def shorten(self, error: Overflow) -> None:
        """Leave out the middle of the conversation, which the log keeps. Raises the error when nothing can be."""
        shorter = compacted(self.log.messages, self.claims.memory())
        if shorter == self.log.messages:
            raise error
        self.screen.note(f"The conversation became too long; its middle is left out now, and kept in {self.log.path}")
        self.log.replace(shorter)

    def without_calls(self, answer: Answer, message: Message, text: str) -> Exception:
        """What follows an answer in words, or an empty one."""
        if answer.refused:
            return Ended(FAILED, f"the model declined to go on{f': {text}' if text else ''}")
        if not text:
            # Not kept: endpoints refuse to be sent an empty answer back.
            return self.once(NUDGE, "the model answered nothing, twice")
        self.log.add(message)
        if answer.cut:
            self.continued += 1
            if self.continued > MAX_CONTINUED:
                return Ended(FAILED, f"the model's answer was cut off {self.continued} times in a row")
            return Aside(user_message(CUT_OFF))
        if left := self.claims.unfinished():
            return self.once(left, "the model stopped before its work was done")
        return Ended(FINISHED, "finished")

    def once(self, nudge: str, otherwise: str) -> Exception:
        """Tell the model something, but never twice in a row."""
        if nudge in self.nudges:
            return Ended(FAILED, otherwise)
        self.nudges.add(nudge)
        return Aside(user_message(nudge))

    def execute(self, calls: list[Call]) -> None:
        """Carry out each call and answer it, once. Raises Ended when the same was called too often."""
        turn = [(call.name, str(call.arguments)) for call in calls if call.name not in PATIENT]
        self.same = self.same + 1 if turn and turn == self.last else 1
        self.last = turn
        if self.same > MAX_SAME:
            raise Ended(FAILED, f"the model made the same call {self.same} times in a row: {calls[0].name}")
        for call in calls:
            self.screen.echo(call)
            # Looked at before the call: work on a task that is somebody else's now is work done twice.
            lost = self.claims.lost()
            result = "\n".join([*lost, self.toolbox.run(call) if not lost else NOT_RUN])
            if self.same == MAX_SAME:
                result += f"\n{SAME_AGAIN}"
            self.log.add(tool_message(call, result))
            self.screen.result(result)
