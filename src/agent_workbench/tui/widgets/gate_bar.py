"""Gate bar: the only place where a proposal is approved, in whole or in part, and where presses stop what runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.widget import Widget

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    ApproveProposal,
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
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.settings import ApprovalMode, Permission
from agent_workbench.tui.keys import KEYS, Keymap, Scope, bindings
from agent_workbench.tui.widgets.bar import Bar, Hint
from agent_workbench.tui.widgets.row_list import Readiness, queued_seconds
from agent_workbench.tui.widgets.rows import Span
from agent_workbench.views.blocks import Tone
from agent_workbench.views.gate.gate_bar import GateAct, GateMode, GateView, Waiting, next_method

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Clock


SCOPES = dict.fromkeys((GateAct.STOP, GateAct.ABORT, GateAct.LEAVE, GateAct.UNDO, GateAct.SAY), Scope.EVERYWHERE)
BADGES = {
    GateMode.STARTING: "foreground",
    GateMode.WAITING: "warning",
    GateMode.BUSY: "secondary",
    GateMode.PAUSED: "warning",
    GateMode.TROUBLE: "error",
    GateMode.IDLE: "primary",
}
STARTS = frozenset({GateAct.SEND, GateAct.SAY, GateAct.OPEN})
"""Actions of the key that starts."""
DIFF_ACTIONS = ("take_hunk", "select_lines", "next_change", "result", "why_left", "edit_hunk")
FAR_ACTS = 2
"""Number of hints for the bar's own keys while the focus is elsewhere."""
MODE_CLASSES = {f"-{mode}": mode for mode in GateMode}

TOO_QUICK = "too quick: this has only just appeared"

AGAIN = "press again to end it"
NOTHING = "nothing runs that can be stopped"


class PendingApproval:
    """Approval in progress, with its request for confirmation. `taking` returns the selected part of a diff."""

    def __init__(self, taking: Callable[[], PartialDiff | None]) -> None:
        self._taking = taking
        self._asked = ""

    def taking(self, waiting: Waiting | None) -> PartialDiff | None:
        """Return the selected part of the diff, None for all of it."""
        return self._taking() if can_select_hunks(waiting) else None

    def asked_about(self, waiting: Waiting | None) -> tuple[str, ...]:
        """Return the special paths that the user was asked about and is about to change."""
        return self._special(waiting) if self._asked and self._asked == self._decision(waiting) else ()

    def ask(self, waiting: Waiting) -> bool:
        """Return True if the user has to confirm special paths first, and remember that they were asked."""
        if not self._special(waiting) or self.asked_about(waiting):
            return False
        self._asked = self._decision(waiting)
        return True

    def intent(self, waiting: Waiting) -> ApproveProposal:
        """Return the intent that approves the proposal or the selected part of it."""
        taking = self.taking(waiting)
        if taking is None:
            return ApproveProposal(waiting.proposal.id, waiting.sha)
        return ApproveProposal(waiting.proposal.id, waiting.sha, taking.left, taking.result_sha)

    def _special(self, waiting: Waiting | None) -> tuple[str, ...]:
        if waiting is None:
            return ()
        taking = self.taking(waiting)
        return waiting.proposal.second_look if taking is None else taking.special

    def _decision(self, waiting: Waiting | None) -> str:
        """Return an identifier of this decision: the proposal with the selected part."""
        taking = self.taking(waiting)
        return "" if waiting is None else f"{waiting.key}:{taking.result_sha if taking is not None else ''}"


def can_select_hunks(waiting: Waiting | None) -> bool:
    """Return True if a proposed diff waits whose hunks can be selected."""
    if waiting is None or not waiting.proposal.by_hunk:
        return False
    return waiting.proposal.tool != KEEP_CHANGES


class GateText(Bar):
    """Base of the gate bar that only renders a `GateView` as text; `GateBar` adds the keys."""

    def __init__(self, keymap: Keymap, approval: PendingApproval) -> None:
        super().__init__(id="gate")
        self.approval = approval
        self._keymap = keymap
        self._view = GateView(GateMode.STARTING, "starting")
        self._unseen = 0

    def show(self, view: GateView) -> None:
        """Render this view from now on."""
        if view == self._view:
            return
        if view.waiting != self._view.waiting:
            self.remark = ""
        self._view = view
        for name, mode in MODE_CLASSES.items():
            self.set_class(mode is view.mode, name)
        self.refresh(layout=view.mode is GateMode.TROUBLE)

    def show_unseen(self, unseen: int) -> None:
        """Show the number of lines of the proposal that were not on screen yet."""
        self._unseen = unseen
        self.refresh()

    def badge(self) -> str:
        return self._view.word

    def badge_color(self) -> str:
        return BADGES[self._view.mode]

    def headline(self) -> tuple[list[Span], list[Span]]:
        view = self._view
        said: list[Span] = [(view.text, Tone.STRONG)]
        taking = self.approval.taking(view.waiting)
        if taking is not None:
            said.insert(0, (f"{taking.said}  ", Tone.WARN))
        elif view.more and view.mode is not GateMode.TROUBLE:
            said.append((f"  {view.more}", Tone.DIM))
        if view.waiting is not None and (special := self.approval.asked_about(view.waiting)):
            # They get all the room: the path that is cut off could be the one that matters.
            key = self._keymap.first(Scope.GATE, GateAct.APPROVE)
            return [(f"{key} again: {view.waiting.proposal.special_words(special)}", Tone.WARN)], []
        if self._unseen and GateAct.APPROVE in view.acts:
            return said, [(f"{self._unseen} line{'' if self._unseen == 1 else 's'} not shown yet", Tone.WARN)]
        return said, []

    def more(self) -> str:
        return self._view.more

    def hints(self) -> list[Hint]:
        if self._can_select_hunks and getattr(self.screen.focused, "scope", None) is Scope.DIFF:
            pane = self.screen.focused
            wanted = diff_actions(self._view) - getattr(pane, "useless", frozenset())
            labels: Mapping[str, str] = getattr(pane, "labels", {})
            keys = [key for key in KEYS if key.scope is Scope.DIFF and key.action in wanted]
            named = [Hint(self._keymap.names(key)[0], labels.get(key.action, key.label), "") for key in keys]
            return [*named, self._go_there, *general_hints(self._view, self._keymap)]
        # Pausing is optional, so nobody is called to the bar for it, nor to stop what runs.
        optional = {GateAct.STOP, GateAct.PAUSE, GateAct.GO_ON}
        steering = set() if self._near or self._view.mode is GateMode.PAUSED else optional
        acts = [act for act in self._view.acts if act not in steering]
        named = [self._hint(act) for act in acts]
        of_pane = pane_hints(self._view, self.screen.focused, self._keymap)
        if not self._near:
            far = [] if all(act in SCOPES for act in acts) else [self._go_there, *named[:FAR_ACTS]]
            return [*far, *of_pane, *([] if far else named), *general_hints(self._view, self._keymap)]
        place, label = ("focus_plan", "by task") if self._can_arrange else ("focus_diff", "by hunk")
        parts = [Hint(self._keymap.first(Scope.EVERYWHERE, place), label, f"screen.{place}")]
        by_part = parts if self._can_arrange or self._can_select_hunks else []
        return [*named, *by_part, *of_pane, *general_hints(self._view, self._keymap)]

    @property
    def _near(self) -> bool:
        """True if keys reach the bar: it has the focus, or the plan has, where Enter starts a task too."""
        starts = self._view.mode is GateMode.IDLE and getattr(self.screen.focused, "scope", None) is Scope.PLAN
        return self.has_focus or starts

    @property
    def _can_select_hunks(self) -> bool:
        """True while a proposed diff waits whose hunks can be selected."""
        return bool(self._view.acts) and can_select_hunks(self._view.waiting)

    @property
    def _can_arrange(self) -> bool:
        """True while a proposed plan waits."""
        waiting = self._view.waiting
        return bool(self._view.acts) and waiting is not None and waiting.proposal.plan is not None

    @property
    def _go_there(self) -> Hint:
        return Hint(self._keymap.first(Scope.EVERYWHERE, "focus_bar"), "gate", "screen.focus_bar")

    def _hint(self, act: GateAct) -> Hint:
        if act in {GateAct.PAUSE, GateAct.GO_ON}:
            wanted = "go on" if self._view.mode is GateMode.PAUSED else "do not pause"
            label = "pause after this step" if act is GateAct.PAUSE else wanted
            return Hint(self._keymap.first(Scope.GATE, "pause"), label, "pause")
        named = "tell" if act is GateAct.SAY else "start" if act in STARTS else act
        key = self._keymap.first(SCOPES.get(act, Scope.GATE), named)
        if act in {GateAct.STOP, GateAct.ABORT, GateAct.UNDO}:
            return Hint(key, str(act), f"screen.{act}")
        if act is GateAct.LEAVE:
            return Hint(key, "leave, then start again", "screen.leave")
        label = {GateAct.RETRY: "try again", GateAct.START: f"start {self._view.task}"}.get(act, str(act))
        if act is GateAct.APPROVE and self._unseen:
            label = "show more"
        elif act is GateAct.APPROVE and self.approval.asked_about(self._view.waiting):
            label = "yes, approve"
        return Hint(key, label, "start" if act in STARTS else act)


def diff_actions(view: GateView) -> frozenset[str]:
    """Return the actions on a diff that are hinted at; the text of a hunk is edited in its own session only."""
    return frozenset(DIFF_ACTIONS) - ({"edit_hunk"} if view.followed else frozenset())


def general_hints(view: GateView, keymap: Keymap) -> list[Hint]:
    """Return the hints for keys that work everywhere."""
    wanted = [("zoom", "zoom"), ("help", "help")]
    if GateAct.LEAVE not in view.acts:
        wanted.append(("leave", "leave"))
    if view.followed:
        wanted += [("waiting_tab", "next"), ("inbox", "inbox"), ("context", "context")]
    elif view.mode in {GateMode.WAITING, GateMode.BUSY, GateMode.PAUSED}:
        wanted += [("tell", "say"), ("context", "context")]
        if view.waiting is not None and view.waiting.proposal.kind is Permission.DIFF:
            wanted.append(("consult", "review"))
    elif GateAct.SAY in view.acts:
        wanted.insert(0, ("make_task", "make a task"))
    elif view.mode is GateMode.IDLE:
        wanted.insert(0, ("tell", "say a task"))
    return [Hint(keymap.first(Scope.EVERYWHERE, act), label, f"screen.{act}", act == "help") for act, label in wanted]


def pane_hints(view: GateView, focused: Widget | None, keymap: Keymap) -> list[Hint]:
    """Return hints for keys of the focused pane; the bar cannot run them, so they cannot be clicked."""
    scope = getattr(focused, "scope", Scope.GATE)
    useless: frozenset[str] = getattr(focused, "useless", frozenset())
    if scope is Scope.GATE or view.mode is GateMode.STARTING:
        return []
    if GateAct.START in view.acts or view.mode is not GateMode.IDLE:
        useless |= {"start_selected"}
    keys = [key for key in KEYS if key.scope is scope and key.action not in useless]
    return [Hint(keymap.names(key)[0], key.label, "") for key in keys[:3]]


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
            self.remark_on(f"the gate is not focused: {self._go_there.key}, then again")
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
