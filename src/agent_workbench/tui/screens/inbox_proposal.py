"""Proposal of the inbox: shown in full, and approved, rejected or skipped from here."""

from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace
from textual import events
from textual.widget import Widget

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.inbox import InboxChoice, InboxReceipt, Reference, reference_to
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.bars.approval import special_parts, special_text
from agent_workbench.tui.dialogs.dialog import Dialog
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.diff.diff_pane import ReadOnlyDiff
from agent_workbench.tui.widgets.readiness import Readiness, queued_seconds
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import GateAct, acts_for
from agent_workbench.views.inbox import receipt_text

ACTIONS = {GateAct.APPROVE: "approve_item", GateAct.REJECT: "reject_item", GateAct.SKIP: "skip_item"}
TOO_LONG = "it is too long to be decided here: open its session"
TOO_QUICK = "too quick: this has only just appeared"
Decide = Callable[[Reference, InboxChoice], Awaitable[InboxReceipt]]


class InboxProposalScreen(Dialog[str]):
    """Returns the outcome of the decision as text, None if nothing was decided.

    A decision is bound to what is shown: the reference is that of the proposal in `state`. `ask_reason` opens a dialog
    and calls back with the reason, None for none.
    """

    BINDINGS = bindings(Scope.PROPOSAL)

    def __init__(
        self,
        state: SessionState,
        proposal: Proposal,
        keymap: Keymap,
        clock: Clock,
        decide: Decide,
        ask_reason: Callable[[Callable[[str | None], None]], None],
    ) -> None:
        run = state.run
        task = f"{run.task} · " if run is not None and state.open_planning is None else ""
        title = f"Inbox · {task}{proposal.kind} {proposal.id} of session {state.session}"
        super().__init__(title, "", name="inbox-proposal")
        asked = run is not None and run.compaction_asked
        self._view = replace(view_diff(SessionUpdate(state)), by_hunk=False)
        self._proposal = proposal
        self._reference = reference_to(state.session, proposal)
        self._acts = frozenset(acts_for(proposal, asked=asked)) if self._reference is not None else frozenset()
        self._keymap = keymap
        self._decide = decide
        self._ask_reason = ask_reason
        self._readiness = Readiness(clock)
        self._special = special_parts(proposal)
        self._confirming = self._deciding = False
        self._pressed_at: float | None = None

    def body(self) -> Iterable[Widget]:
        return (ReadOnlyDiff(),)

    def on_mount(self) -> None:
        diff = self.query_one(ReadOnlyDiff)
        diff.focus()
        diff.show(self._view)
        self.call_after_refresh(self._readiness.painted, self._view.key)
        self._show_hints()

    def on_diff_pane_looked(self) -> None:
        self._show_hints()

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self._pressed_at = event.time

    def _show_hints(self, remark: str = "") -> None:
        unseen = self.query_one(ReadOnlyDiff).unseen
        labels = {act: str(act) for act in ACTIONS if act in self._acts}
        if unseen and GateAct.APPROVE in labels:
            labels[GateAct.APPROVE] = f"show more ({unseen} lines not shown yet)"
        elif self._confirming and GateAct.APPROVE in labels:
            labels[GateAct.APPROVE] = f"again: {special_text(self._proposal, self._special)}"
        hints = [f"{self._keymap.first(Scope.PROPOSAL, ACTIONS[act])} {label}" for act, label in labels.items()]
        hints.append(f"{self._keymap.first(Scope.PROPOSAL, 'close_item')} closes")
        remark = remark or ("" if self._reference is not None else TOO_LONG)
        self.show_keys("\n".join(filter(None, (remark, "   ".join(hints)))))

    def action_approve_item(self) -> None:
        """Approve the proposal if all of it was on screen; special paths are confirmed by a second press."""
        if not self._can(GateAct.APPROVE):
            return
        diff = self.query_one(ReadOnlyDiff)
        if diff.unseen:
            self._readiness.begin_again()
            diff.show_unseen()
        elif self._special and not self._confirming:
            self._confirming = True
            self._readiness.begin_again()
            self._show_hints()
        else:
            self._submit(InboxChoice(Verdict.APPROVE, special=bool(self._special)))

    def action_skip_item(self) -> None:
        if self._can(GateAct.SKIP):
            self._submit(InboxChoice(Verdict.SKIP))

    def action_reject_item(self) -> None:
        if GateAct.REJECT in self._acts and not self._deciding:
            self._ask_reason(self._reject)

    def _reject(self, reason: str | None) -> None:
        if reason is not None:
            self._submit(InboxChoice(Verdict.REJECT, reason.strip()))

    def _can(self, act: GateAct) -> bool:
        """Return True if a decision applies and was long enough on screen."""
        if act not in self._acts or self._deciding:
            return False
        queued = queued_seconds(self._pressed_at)
        ready = self._readiness.ready(self._view.key, queued)
        if not ready:
            self._show_hints(TOO_QUICK)
        return ready

    def _submit(self, choice: InboxChoice) -> None:
        if self._reference is not None and not self._deciding:
            self._deciding = True
            self._show_hints("the decision is being recorded")
            self.run_worker(self._record(self._reference, choice), group="decision")

    async def _record(self, reference: Reference, choice: InboxChoice) -> None:
        try:
            receipt = await self._decide(reference, choice)
        except WorkbenchError as error:
            self._deciding = self._confirming = False
            self._show_hints(sanitize_line(": ".join(filter(None, (str(error), error.advice))), 600))
        else:
            self.dismiss(receipt_text(receipt))

    def action_close_item(self) -> None:
        if not self._deciding:
            self.dismiss(None)
