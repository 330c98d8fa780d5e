"""Dialogs about a pending proposal: reject it with a reason, or edit it."""

from agent_workbench.core.intents import EditProposal, RejectProposal
from agent_workbench.core.settings import Permission
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.session.window import SessionWindow, UserDraft, is_read_only
from agent_workbench.views.consultations import grave_findings
from agent_workbench.views.gate.gate_bar import Waiting

NO_REASON = "no reason given"
REASON_CHARS = 1_000
EDIT_TITLES = {
    Permission.DIFF: "Edit the diff",
    Permission.COMMAND: "Edit the command",
    Permission.COMMIT: "Edit the message",
    Permission.SUMMARY: "Edit the summary",
    Permission.PLAN: "Edit the proposed plan",
    Permission.KNOWLEDGE: "Edit the note",
}
SUFFIXES = {
    Permission.DIFF: ".diff",
    Permission.COMMAND: ".sh",
    Permission.COMMIT: ".txt",
    Permission.SUMMARY: ".md",
    Permission.PLAN: ".yaml",
    Permission.KNOWLEDGE: ".md",
}


class GateDialogs:
    """Dialogs about the pending proposal of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def ask_reason(self, waiting: Waiting) -> None:
        """Ask why a proposal is rejected, and reject it; Esc rejects nothing."""
        from agent_workbench.tui.dialogs.reason import ReasonDialog

        async def reject(reason: str | None) -> None:
            if reason is not None:
                await self._window.want(RejectProposal(waiting.proposal.id, reason.strip() or NO_REASON))

        # The reasons why hunks were left out are the most likely reasons to reject all of it, then what a review found.
        taking = self._window.workbench.query_one(DiffPane).hunks.taking
        reasons = dict.fromkeys(left.reason for left in taking.left if left.reason) if taking is not None else {}
        update = self._window.update_shown
        if not reasons and update is not None:
            found = grave_findings(update.state, waiting.proposal)
            reasons = dict.fromkeys(f"a review found: {each}" for each in found)
        text, about = "; ".join(reasons)[:REASON_CHARS], waiting.proposal.id
        dialog = ReasonDialog(f"Reject the {waiting.proposal.kind}", text=text, about=about)
        self._window.push_screen(dialog, reject)

    async def edit(self, waiting: Waiting, *, outside: bool = False) -> None:
        """Let the user edit a proposal; a text that the session refused is offered again."""
        from agent_workbench.tui.dialogs.text_edit import EditDialog

        window, proposal = self._window, waiting.proposal
        if is_read_only(window):
            return
        draft = window.draft if window.draft is not None and window.draft.proposal == proposal else None

        async def replace(text: str | None) -> None:
            window.draft = None
            if text is not None and text != proposal.text:
                # If the text is accepted, another proposal waits; while this one does, the draft is not lost.
                window.draft = UserDraft(proposal, text)
                await window.want(EditProposal(proposal.id, text))

        text = draft.text if draft is not None else proposal.text
        if outside:
            written = await window.edit_outside(text, SUFFIXES[proposal.kind])
            # Editors add a line break at the end, which is no change.
            await replace(written if written is None or text.endswith("\n") else written.removesuffix("\n"))
            return
        window.push_screen(
            EditDialog(
                EDIT_TITLES[proposal.kind],
                text,
                "It is shown again before it counts." if draft is None else "This is the text that was refused.",
                wraps=proposal.kind in {Permission.SUMMARY, Permission.KNOWLEDGE},
            ),
            replace,
        )
