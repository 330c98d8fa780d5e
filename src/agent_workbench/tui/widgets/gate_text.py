"""Text of the gate bar, and approval of a pending proposal in whole or in part; special paths need a second press."""

from collections.abc import Callable, Mapping

from textual.widget import Widget

from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.patch.selection import PartialDiff
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.settings import Permission
from agent_workbench.tui.keymap import Keymap
from agent_workbench.tui.keys import KEYS, Scope
from agent_workbench.tui.widgets.bar import Bar, Hint
from agent_workbench.tui.widgets.rows import Span
from agent_workbench.views.blocks import Tone
from agent_workbench.views.gate.gate_bar import GateAct, GateMode, GateView, Waiting

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
        return Hint(self._gate_key, "gate", "screen.focus_bar")

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

    @property
    def _gate_key(self) -> str:
        return self._keymap.first(Scope.EVERYWHERE, "focus_bar")


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
