"""What the workbench shows and asks about what is before the model."""

from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.intents import CompactContext

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab
    from agent_workbench.views.receipt.receipt import CompactionEstimate


def show_receipt(tab: "SessionTab") -> None:
    """Show what the newest prompt was made of."""
    from agent_workbench.tui.screens.receipt import ReceiptScreen
    from agent_workbench.views.receipt.receipt import count_prompts

    update = tab.update_shown
    if update is None or not count_prompts(update.state):
        tab.tell("no prompt was made yet", "warning")
        return
    screen = ReceiptScreen(tab.keymap, tab.want, partial(confirm_compacting, tab))
    screen.show(update)
    tab.push_screen(screen)


def show_piece(tab: "SessionTab", key: str) -> None:
    """Show a piece of retrieved code with more room."""
    from agent_workbench.tui.screens.code_piece import PieceScreen

    update = tab.update_shown
    if update is not None:
        screen = PieceScreen(key, tab.keymap, tab.want)
        screen.show(update)
        tab.push_screen(screen)


def find_code(tab: "SessionTab") -> None:
    """Let the user put other code before the model."""
    from agent_workbench.tui.screens.code_search import FindScreen

    update = tab.update_shown
    if update is not None:
        screen = FindScreen(tab.keymap, tab.want, tab.ask)
        screen.show(update)
        tab.push_screen(screen)


def confirm_compacting(tab: "SessionTab", compacting: "CompactionEstimate") -> None:
    """Ask whether the older steps shall become a summary now, with what it frees and costs."""
    from agent_workbench.tui.dialogs.confirm import ConfirmScreen

    seconds = f" (about {compacting.seconds:.1f} s)" if compacting.seconds >= 0.05 else ""
    reads = f", and {compacting.reads:,} tokens that stay are re-read{seconds}" if compacting.reads else ""
    lines = (
        f"A summary replaces the older steps and frees up to {compacting.frees:,} tokens.",
        f"It costs one answer of the model{reads}.",
        "",
        "Rules, task, pinned code, the change so far and the failing output",
        "stay as they are. You see the summary before it is used.",
    )

    async def compact(yes: bool | None) -> None:
        if yes:
            await tab.want(CompactContext())

    tab.push_screen(ConfirmScreen("Summarize the older steps now?", lines, tab.clock), compact)
