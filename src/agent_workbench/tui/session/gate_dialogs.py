"""What the workbench asks about a proposal that waits, and the intent that the answer becomes."""

from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.core.intents import EditProposal, RejectProposal
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.views.gate.gate_bar import Waiting

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab

NO_REASON = "no reason given"
EDIT_TITLES = {
    Permission.DIFF: "Edit the diff",
    Permission.COMMAND: "Edit the command",
    Permission.COMMIT: "Edit the message",
    Permission.SUMMARY: "Edit the summary",
}


SUFFIXES = {Permission.DIFF: ".diff", Permission.COMMAND: ".sh", Permission.COMMIT: ".txt", Permission.SUMMARY: ".md"}


class Draft(Struct, frozen=True):
    """What the user made of a proposal, as long as it may have to be tried again."""

    proposal: Proposal
    text: str


def ask_reason(tab: "SessionTab", waiting: Waiting) -> None:
    """Ask why a proposal is rejected; nothing is rejected when the user thinks better of it."""
    from agent_workbench.tui.dialogs.reason import ReasonScreen

    async def reject(reason: str | None) -> None:
        if reason is not None:
            await tab.want(RejectProposal(waiting.proposal.id, reason.strip() or NO_REASON))

    # Why hunks were left is why all of it is refused, if the user does not say otherwise.
    taking = tab.workbench.query_one(DiffPane).hunks.taking
    said = dict.fromkeys(left.reason for left in taking.left if left.reason) if taking is not None else ()
    tab.push_screen(ReasonScreen(f"Reject the {waiting.proposal.kind}", text="; ".join(said)), reject)


async def edit_proposal(tab: "SessionTab", waiting: Waiting, *, outside: bool = False) -> None:
    """Let the user change what waits; what was written and not taken is there again."""
    from agent_workbench.tui.dialogs.text_edit import EditScreen
    from agent_workbench.tui.terminal.external_editor import edit_outside

    proposal = waiting.proposal
    draft = tab.draft if tab.draft is not None and tab.draft.proposal == proposal else None

    async def replace(text: str | None) -> None:
        tab.draft = None
        if text is not None and text != proposal.text:
            # Where it is taken, another proposal waits; as long as this one does, it is not lost.
            tab.draft = Draft(proposal, text)
            await tab.want(EditProposal(proposal.id, text))

    text = draft.text if draft is not None else proposal.text
    if outside:
        written = await edit_outside(tab, text, SUFFIXES[proposal.kind])
        # An editor ends the last line, which says nothing.
        await replace(written if written is None or text.endswith("\n") else written.removesuffix("\n"))
        return
    tab.push_screen(
        EditScreen(
            EDIT_TITLES[proposal.kind],
            text,
            "It is shown again before it counts." if draft is None else "This is what was not taken.",
            wraps=proposal.kind is Permission.SUMMARY,
        ),
        replace,
    )
