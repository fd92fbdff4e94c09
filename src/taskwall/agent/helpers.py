"""Helpers: agents that do one bounded piece of work for a run, with a conversation of their own, and report.

They act as `name/1`, `name/2`… in sessions `SESSION/1`…, spend from the budget of the run, and have no helpers.
"""

from __future__ import annotations

from collections.abc import Collection

from .. import config
from ..board import Board
from ..config import Location
from ..heartbeat import Heartbeat
from ..lengths import shortened
from ..signals import undisturbed
from .answers import Model
from .budget import Budget
from .claims import Claims, Helping, give_back
from .ending import INTERRUPTED
from .files import Workspace
from .loop import Agent
from .messages import system_message, user_message
from .prompts import HELP, SYSTEM, opening
from .runs import RunLog
from .screen import Screen
from .shell import Consent
from .tool import Tool, needed, number, own
from .tools import Toolbox

TURNS, MAX_TURNS = 30, 100
"""How often a helper's model is asked, unless the call says, and at most."""
MAX_REPORT = 4_000
"""Characters of a report."""


class Helpers:
    """Makes the helpers of one run."""

    def __init__(
        self, location: Location, board: Board, model: Model, log: RunLog, budget: Budget, workspace: Workspace
    ) -> None:
        self.location, self.board, self.model, self.log = location, board, model, log
        self.budget, self.workspace = budget, workspace

    def tool(self, consent: Consent, claims: Claims, without: Collection[str]) -> Tool:
        """`delegate`. claims: of the run. without: tools that helpers do not have either."""

        def delegate(work: str, turns: int = TURNS) -> str:
            return self._help(work, max(1, min(turns, MAX_TURNS)), consent, claims, without)

        return own(
            delegate,
            "Give a bounded piece of work to a helper with a fresh context and the same tools; its report comes back.",
            needed("work", "all that it must know: what to do, where, what to report"),
            number("turns", f"how many it may take, {TURNS} when left out"),
        )

    def _help(self, work: str, turns: int, consent: Consent, claims: Claims, without: Collection[str]) -> str:
        run = self.board.actor
        count, log = self.log.helper({"actor": run.name, "goal": work})
        who = run.replace(name=f"{run.name}/{count}", session=f"{run.session}/{count}")
        board = config.open_board(self.location, who, beats=True)
        budget = self.budget.part(turns)
        heartbeat = Heartbeat(config.open_board(self.location, who, beats=True))
        toolbox = Toolbox(board, self.workspace, consent, log, deadline=budget.deadline, without=without)
        log.add(system_message(SYSTEM))
        log.add(user_message(opening(board, f"{HELP.format(name=run.name)}\n\n{work}", self.workspace.root)))
        helping = Helping(board, heartbeat.take_lost, log.path, claims)
        agent = Agent(self.model, toolbox, log, Screen(f"{count} | "), budget, helping)
        try:
            with heartbeat:
                ended = agent.run()
        finally:
            with undisturbed():
                toolbox.close()
                released = give_back(board, f"the helper {who.name} ended")
        log.end(ended.exit, ended.why, budget.told())
        if ended.exit == INTERRUPTED:
            raise KeyboardInterrupt(ended.why)
        early = [f"The helper {who.name} ended early: {ended.why}"] if ended.exit else []
        return "\n".join([*early, shortened(agent.said, MAX_REPORT) or "(no report)", *released])
