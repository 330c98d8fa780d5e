"""What the workbench asks about parts of a diff: why a hunk is left, what it should be."""

from typing import TYPE_CHECKING

from agent_workbench.core.errors import PatchError
from agent_workbench.core.intents import EditProposal
from agent_workbench.core.patch.selection.hunk_text import hunk_text, with_hunk_text
from agent_workbench.core.proposals import Proposal
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.diff.messages import HunkEditWanted, ReasonWanted
from agent_workbench.tui.session.gate_dialogs import Draft
from agent_workbench.tui.terminal.external_editor import edit_outside

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab


def ask_why_left(tab: "SessionTab", pane: DiffPane, message: ReasonWanted) -> None:
    """Ask why a part is left; it is taken again when the user thinks better of it."""
    from agent_workbench.tui.dialogs.reason import ReasonScreen

    shown = pane.view.proposal

    def explain(reason: str | None) -> None:
        if pane.view.proposal == shown and (reason is not None or not message.known):
            pane.hunks.explain(message.ids, None if reason is None else reason.strip())

    keys = "Enter leaves it out, with or without a reason   Esc " + ("as it was" if message.known else "takes it again")
    asks = "why, in a line; the model reads it when the rest is approved"
    tab.push_screen(ReasonScreen(f"Leave {message.what} out", keys, asks, message.reason), explain)


async def edit_hunk(tab: "SessionTab", message: HunkEditWanted) -> None:
    """Let the user change one hunk; the whole diff with it takes the place of what waits."""
    update = tab.update_shown
    run = update.state.run if update is not None else None
    if run is None or run.waiting is None:
        return
    proposal, before = run.waiting, hunk_text(message.patch, message.hunk)

    async def replace(text: str | None) -> None:
        if text is not None and text != before:
            await _replace(tab, proposal, message, text)

    if message.outside:
        await replace(await edit_outside(tab, before, ".diff"))
        return
    from agent_workbench.tui.dialogs.text_edit import EditScreen

    remark = "Each line begins with a space, + or -. It is shown again before it counts."
    tab.push_screen(EditScreen(f"Edit {message.what}", before, remark), replace)


async def _replace(tab: "SessionTab", proposal: Proposal, message: HunkEditWanted, text: str) -> None:
    try:
        diff = with_hunk_text(message.patch, message.hunk, text)
    except PatchError as error:
        tab.tell(f"{error}. {error.advice}", "warning")
        return
    if not diff:
        tab.tell("nothing would be left of the diff; reject it instead", "warning")
        return
    tab.draft = Draft(proposal, diff)
    await tab.want(EditProposal(proposal.id, diff))
