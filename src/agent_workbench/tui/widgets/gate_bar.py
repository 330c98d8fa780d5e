"""Gate bar: the only place where a proposal is approved, and where presses stop what runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    ChangeMode,
    ChooseMergeMethod,
    Intent,
    PauseTask,
    RetryTrouble,
    SkipProposal,
    StartTask,
    StopAction,
)
from agent_workbench.core.patch.selection import PartialDiff
from agent_workbench.core.settings import ApprovalMode
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.gate_text import GateText, PendingApproval
from agent_workbench.tui.widgets.row_list import Readiness, queued_seconds
from agent_workbench.views.gate.gate_bar import GateAct, GateMode, GateView, Waiting, next_method

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Clock


TOO_QUICK = "too quick: this has only just appeared"

AGAIN = "press again to end it"
NOTHING = "nothing runs that can be stopped"


class GateBar(GateText):
    """Gate bar with its keys. They decide on the pending proposal, or start, pause and retry a task."""

    BINDINGS = bindings(Scope.GATE, Scope.SCROLL)
    scope = Scope.GATE

    @dataclass
    class Decided(Message):
        """The user decided; the session gets this intent."""

        intent: Intent

    @dataclass
    class ReasonWanted(Message):
        """The user rejects the proposal and is asked for a reason."""

        waiting: Waiting

    @dataclass
    class EditWanted(Message):
        """The user edits the proposal; `outside` in an external editor."""

        waiting: Waiting
        outside: bool = False

    @dataclass
    class AlwaysWanted(Message):
        """The user wants a rule that approves such proposals from now on."""

        waiting: Waiting

    class MoreWanted(Message):
        """Some lines of the proposal were not on screen: show them."""

    def __init__(self, clock: "Clock", keymap: Keymap, taking: Callable[[], PartialDiff | None] = lambda: None) -> None:
        super().__init__(keymap, PendingApproval(taking))
        self._readiness = Readiness(clock)
        self._answered = ""
        self._stop_presses = StopPresses()

    def painted(self) -> None:
        if self._view.waiting is not None and self.app.screen is self.screen:
            self._readiness.painted(self._view.waiting.key)

    def shown_again(self) -> None:
        """Start the delay before a decision anew: the bar was hidden meanwhile."""
        self._readiness.begin_again()

    @property
    def all_seen(self) -> bool:
        """True if all of what waits was on screen, and no part of it is left out."""
        return not self._unseen and self.approval.taking(self._view.waiting) is None

    def stop(self) -> None:
        intents, remark = self._stop_presses.press(self._view, self.presses)
        for intent in intents:
            self.post_message(self.Decided(intent))
        self.remark_on(remark)

    def action_approve(self) -> None:
        waiting = self._answerable(GateAct.APPROVE)
        if waiting is not None and self._may_approve(waiting):
            self._answer(waiting, self.approval.intent(waiting))

    def _may_approve(self, waiting: Waiting) -> bool:
        """Return True if all was on screen long enough, and special paths are confirmed; else say what is missing."""
        taking = self.approval.taking(waiting)
        if not self.has_focus:
            self.remark_on(f"the gate is not focused: {self._gate_key}, then again")
        elif not self._is_ready(waiting):
            self.remark_on(TOO_QUICK)
        elif self._unseen:
            self._readiness.begin_again()
            self.post_message(self.MoreWanted())
        elif taking is not None and not taking.taken:
            self.remark_on(f"nothing would be taken: {self._keymap.first(Scope.GATE, GateAct.REJECT)} rejects it")
        elif self.approval.ask(waiting):
            self._readiness.begin_again()
            self.refresh()
        else:
            return True
        return False

    def action_reject(self) -> None:
        if waiting := self._answerable(GateAct.REJECT):
            self.post_message(self.ReasonWanted(waiting))

    def action_edit(self) -> None:
        if waiting := self._answerable(GateAct.EDIT):
            self.post_message(self.EditWanted(waiting))

    def action_edit_outside(self) -> None:
        if waiting := self._answerable(GateAct.EDIT):
            self.post_message(self.EditWanted(waiting, outside=True))

    def action_always(self) -> None:
        if waiting := self._answerable(GateAct.ALWAYS):
            self.post_message(self.AlwaysWanted(waiting))

    def action_method(self) -> None:
        waiting = self._answerable(GateAct.METHOD)
        if waiting is not None and (method := next_method(waiting.proposal)) is not None:
            self._answer(waiting, ChooseMergeMethod(waiting.proposal.id, method))

    def action_skip(self) -> None:
        waiting = self._answerable(GateAct.SKIP)
        if waiting is not None and self._is_ready(waiting):
            self._answer(waiting, SkipProposal(waiting.proposal.id))
        elif waiting is not None:
            self.remark_on(TOO_QUICK)

    def action_pause(self) -> None:
        if self._view.paused is None:
            self.remark_on("no task is being worked on")
        else:
            self.post_message(self.Decided(PauseTask(not self._view.paused)))

    def action_retry(self) -> None:
        if GateAct.RETRY in self._view.acts:
            self.post_message(self.Decided(RetryTrouble()))

    async def action_start(self) -> None:
        if GateAct.SEND in self._view.acts:
            self.post_message(self.Decided(PauseTask(paused=False)))
        elif GateAct.SAY in self._view.acts:
            await self.run_action("screen.tell")
        elif GateAct.OPEN in self._view.acts:
            await self.run_action("screen.open_here")
        elif GateAct.START in self._view.acts:
            self.post_message(self.Decided(StartTask(TaskId(self._view.task) if self._view.task else None)))

    def _answerable(self, act: GateAct) -> Waiting | None:
        """Return the proposal, if `act` applies to it and it was not decided already."""
        waiting = self._view.waiting
        if waiting is None or act not in self._view.acts:
            if self._view.mode is GateMode.WAITING and self._view.acts:
                self.remark_on(f"{act} does not fit what waits")
            return None
        return waiting if self._is_ready(waiting) or waiting.key != self._answered else None

    def _is_ready(self, waiting: Waiting) -> bool:
        return self._readiness.ready(waiting.key, queued_seconds(self.pressed_at))

    def _answer(self, waiting: Waiting, intent: Intent) -> None:
        self._answered = waiting.key
        self._readiness.begin_again()
        self.post_message(self.Decided(intent))


class StopPresses:
    """Remembers which action the last press asked about."""

    def __init__(self) -> None:
        self._asked: tuple[StopAction, int] | None = None

    def press(self, view: GateView, number: int) -> tuple[list[Intent], str]:
        """Return the intents of a press and a remark about it; `number` counts all keys pressed in the bar.

        Any press returns to the mode `ask`.
        """
        intents: list[Intent] = [ChangeMode(ApprovalMode.ASK)] if view.accepts else []
        stop, asked = view.stop, self._asked
        self._asked = None
        if isinstance(stop, StopAction) and asked != (stop, number - 1):
            self._asked = stop, number
            return intents, AGAIN
        if stop is None:
            return intents, "" if intents else NOTHING
        return [*intents, stop], ""
