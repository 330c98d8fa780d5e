"""The gate: what waits and which keys answer, what is being done, what went wrong, what can be started."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from agent_workbench.core.ids import TaskId
from agent_workbench.core.inert import inert_line
from agent_workbench.core.intents import ApproveProposal, Intent, PauseTask, RetryTrouble, SkipProposal, StartTask
from agent_workbench.core.patch.choice import Taking
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.settings import GateKind
from agent_workbench.core.views.gate import GateAct, GateMode, GateView, Waiting
from agent_workbench.core.views.tones import Tone
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import KEYS, Scope
from agent_workbench.tui.readiness import Readiness, queued_seconds
from agent_workbench.tui.widgets.bar import Bar
from agent_workbench.tui.widgets.hints import Hint
from agent_workbench.tui.widgets.rows import Span

if TYPE_CHECKING:
    from agent_workbench.core.ports import Clock

SCOPES = {GateAct.ABORT: Scope.EVERYWHERE, GateAct.LEAVE: Scope.EVERYWHERE, GateAct.UNDO: Scope.EVERYWHERE}
BADGES = {
    GateMode.STARTING: "foreground",
    GateMode.WAITING: "warning",
    GateMode.BUSY: "accent",
    GateMode.PAUSED: "warning",
    GateMode.TROUBLE: "error",
    GateMode.IDLE: "primary",
}
DIFF_ACTIONS = ("take_hunk", "select_lines", "next_change", "result", "why_left", "edit_hunk")
MODE_CLASSES = {f"-{mode}": mode for mode in GateMode}


class GateBar(Bar):
    """Shows a `GateView` and is the only place from which something is approved."""

    BINDINGS = bindings(Scope.GATE, Scope.SCROLL)
    scope = Scope.GATE

    @dataclass
    class Decided(Message):
        """The user wants this to be done."""

        intent: Intent

    @dataclass
    class ReasonWanted(Message):
        """The user rejects what waits and is to be asked why."""

        waiting: Waiting

    @dataclass
    class EditWanted(Message):
        """The user wants to change what waits; `outside` in an editor of his own."""

        waiting: Waiting
        outside: bool = False

    @dataclass
    class AlwaysWanted(Message):
        """The user wants to let this kind through from now on."""

        waiting: Waiting

    class MoreWanted(Message):
        """Not all of what waits was on screen: show what is missing."""

    def __init__(self, clock: "Clock", keymap: Keymap, taking: Callable[[], Taking | None] = lambda: None) -> None:
        super().__init__(id="gate")
        self._taking = taking
        self._asked_again = ""
        self._readiness = Readiness(clock)
        self._keymap = keymap
        self._view = GateView(GateMode.STARTING, "starting")
        self._unseen = 0
        self._answered = ""

    def show(self, view: GateView) -> None:
        """Show what is at the gate now."""
        if view == self._view:
            return
        if view.waiting != self._view.waiting:
            self.remark = ""
        self._view = view
        for name, mode in MODE_CLASSES.items():
            self.set_class(mode is view.mode, name)
        self.refresh(layout=view.mode is GateMode.TROUBLE)

    def show_unseen(self, unseen: int) -> None:
        """Say how many lines of what waits were not on screen yet."""
        self._unseen = unseen
        self.refresh()

    def painted(self) -> None:
        if self._view.waiting is not None and self.app.screen is self.screen:
            self._readiness.painted(self._view.waiting.key)

    def badge(self) -> str:
        return self._view.word

    def badge_color(self) -> str:
        return BADGES[self._view.mode]

    def headline(self) -> tuple[list[Span], list[Span]]:
        view = self._view
        said: list[Span] = [(view.text, Tone.STRONG)]
        taking = self._taking() if view.waiting is not None else None
        if taking is not None:
            said.insert(0, (f"{taking.said}  ", Tone.WARN))
        elif view.more and view.mode is not GateMode.TROUBLE:
            said.append((f"  {view.more}", Tone.DIM))
        if self._asks_again:
            key = self._keymap.first(Scope.GATE, GateAct.APPROVE)
            return said, [(f"this changes {', '.join(self._special(taking))}: {key} again", Tone.WARN)]
        if self._unseen and GateAct.APPROVE in view.acts:
            return said, [(f"{self._unseen} line{'' if self._unseen == 1 else 's'} not shown yet", Tone.WARN)]
        return said, []

    def more(self) -> str:
        return self._view.more

    def hints(self) -> list[Hint]:
        if self._in_diff:
            keys = [key for key in KEYS if key.scope is Scope.DIFF and key.action in DIFF_ACTIONS]
            named = [Hint(self._keymap.names(key)[0], key.label, "") for key in keys]
            return [*named, Hint(self._gate_key, "gate", "screen.focus_bar"), *self._general_hints()]
        # Nobody is called to the bar for what need not be.
        steering = set() if self._near or self._view.mode is GateMode.PAUSED else {GateAct.PAUSE, GateAct.GO_ON}
        acts = [act for act in self._view.acts if act not in steering]
        named = [self._hint(act) for act in acts]
        far = [] if self._near or all(act in SCOPES for act in acts) else [self._go_there]
        return [*far, *named, *self._pane_hints(), *self._general_hints()]

    @property
    def _near(self) -> bool:
        """True when the bar's keys count: it has the focus, or the plan has, where Enter starts a task too."""
        starts = self._view.mode is GateMode.IDLE and getattr(self.screen.focused, "scope", None) is Scope.PLAN
        return self.has_focus or starts

    @property
    def _in_diff(self) -> bool:
        """True while the cursor is on a diff that waits, of which parts can be left."""
        waiting = self._view.waiting
        by_hunk = (
            waiting is not None and waiting.proposal.kind is GateKind.DIFF and waiting.proposal.tool != KEEP_CHANGES
        )
        return by_hunk and bool(self._view.acts) and getattr(self.screen.focused, "scope", None) is Scope.DIFF

    def _special(self, taking: Taking | None) -> tuple[str, ...]:
        """Return the paths for which an approval is asked twice."""
        waiting = self._view.waiting
        if waiting is None or waiting.proposal.kind is not GateKind.DIFF:
            return ()
        return tuple(inert_line(path, 120) for path in (waiting.proposal.special if taking is None else taking.special))

    @property
    def _asks_again(self) -> bool:
        return bool(self._asked_again) and self._asked_again == self._decision(self._view.waiting, self._taking())

    def _decision(self, waiting: Waiting | None, taking: Taking | None) -> str:
        """Return what tells this decision from every other."""
        return "" if waiting is None else f"{waiting.key}:{taking.result_sha if taking is not None else ''}"

    @property
    def _go_there(self) -> Hint:
        return Hint(self._gate_key, "then", "screen.focus_bar")

    def _pane_hints(self) -> list[Hint]:
        """The keys of the focused pane, when nothing waits; they are pressed there, so they cannot be clicked here."""
        focused = self.screen.focused
        scope = getattr(focused, "scope", Scope.GATE)
        useless: frozenset[str] = getattr(focused, "useless", frozenset())
        if scope is Scope.GATE or self._view.mode in (GateMode.WAITING, GateMode.STARTING):
            return []
        started = Scope.PLAN if GateAct.START in self._view.acts else None
        keys = [key for key in KEYS if key.scope is scope and (key.action != "start_selected" or scope is not started)]
        keys = [key for key in keys if key.action not in useless]
        return [Hint(self._keymap.names(key)[0], key.label, "") for key in keys[:3]]

    def _hint(self, act: GateAct) -> Hint:
        if act in {GateAct.PAUSE, GateAct.GO_ON}:
            wanted = "go on" if self._view.mode is GateMode.PAUSED else "do not pause"
            label = "pause after this step" if act is GateAct.PAUSE else wanted
            return Hint(self._keymap.first(Scope.GATE, "pause"), label, "pause")
        key = self._keymap.first(SCOPES.get(act, Scope.GATE), act)
        if act is GateAct.ABORT:
            return Hint(key, "abort", "screen.abort")
        if act is GateAct.UNDO:
            return Hint(key, "undo", "screen.undo")
        if act is GateAct.LEAVE:
            return Hint(key, "leave, then start again", "screen.leave")
        label = {GateAct.RETRY: "try again", GateAct.START: f"start {self._view.task}"}.get(act, str(act))
        if act is GateAct.APPROVE and self._unseen:
            label = "show more"
        return Hint(key, label, act)

    @property
    def _gate_key(self) -> str:
        return self._keymap.first(Scope.EVERYWHERE, "focus_bar")

    def _general_hints(self) -> list[Hint]:
        wanted = [("zoom", "zoom"), ("help", "help")]
        if GateAct.LEAVE not in self._view.acts:
            wanted.append(("leave", "leave"))
        if self._view.mode in (GateMode.WAITING, GateMode.BUSY, GateMode.PAUSED):
            wanted += [("tell", "tell"), ("context", "context")]
        return [Hint(self._keymap.first(Scope.EVERYWHERE, act), label, f"screen.{act}") for act, label in wanted]

    def action_approve(self) -> None:
        """Let what waits through, if it is known to have been seen; else say what is missing."""
        waiting = self._answerable(GateAct.APPROVE)
        if waiting is None:
            return
        if not self.has_focus:
            self.remark_on(f"the gate is not focused: {self._gate_key}, then again")
        elif not self._readiness.ready(waiting.key, self._queued()):
            self.remark_on("too quick: this has only just appeared")
        elif self._unseen:
            self._readiness.begin_again()
            self.post_message(self.MoreWanted())
        else:
            self._approve(waiting, self._taking())

    def _approve(self, waiting: Waiting, taking: Taking | None) -> None:
        """Let it through, or what is taken of it; where unusual paths are among that, only when asked again."""
        if taking is not None and not taking.taken:
            self.remark_on(f"nothing would be taken: {self._keymap.first(Scope.GATE, GateAct.REJECT)} rejects it")
        elif self._special(taking) and not self._asks_again:
            self._asked_again = self._decision(waiting, taking)
            self._readiness.begin_again()
            self.refresh()
        elif taking is None:
            self._answer(waiting, ApproveProposal(waiting.proposal.id, waiting.sha))
        else:
            approval = ApproveProposal(waiting.proposal.id, waiting.sha, taking.left, taking.result_sha)
            self._answer(waiting, approval)

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

    def action_skip(self) -> None:
        waiting = self._answerable(GateAct.SKIP)
        if waiting is None:
            return
        if self._readiness.ready(waiting.key, self._queued()):
            self._answer(waiting, SkipProposal(waiting.proposal.id))
        else:
            self.remark_on("too quick: this has only just appeared")

    def action_pause(self) -> None:
        if self._view.paused is None:
            self.remark_on("no task is being worked on")
        else:
            self.post_message(self.Decided(PauseTask(not self._view.paused)))

    def action_retry(self) -> None:
        if GateAct.RETRY in self._view.acts:
            self.post_message(self.Decided(RetryTrouble()))

    def action_start(self) -> None:
        if GateAct.START in self._view.acts:
            self.post_message(self.Decided(StartTask(TaskId(self._view.task) if self._view.task else None)))

    def _answerable(self, act: GateAct) -> Waiting | None:
        """Return what waits, if `act` can be done about it and it was not answered already."""
        waiting = self._view.waiting
        if waiting is None or act not in self._view.acts:
            if self._view.mode is GateMode.WAITING and self._view.acts:
                self.remark_on(f"{act} does not fit what waits")
            return None
        again = waiting.key == self._answered and not self._readiness.ready(waiting.key, self._queued())
        return None if again else waiting

    def _answer(self, waiting: Waiting, intent: Intent) -> None:
        self._answered = waiting.key
        self._readiness.begin_again()
        self.post_message(self.Decided(intent))

    def _queued(self) -> float:
        return 0.0 if self.pressed_at is None else queued_seconds(self.pressed_at)
