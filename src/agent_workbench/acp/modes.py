"""Modes of an editor's thread: the approval modes of its tasks, or a chat; offered as modes and as an option."""

from acp import schema as wire

from agent_workbench.core.rules.modes import mode_label
from agent_workbench.core.settings import ApprovalMode

CHAT = "chat"
OPTION = "mode"
DESCRIPTIONS = {
    ApprovalMode.ASK: "A prompt becomes a task; you are asked before anything happens",
    ApprovalMode.ACCEPT_EDITS: "Diffs are applied without a question; checks, commands and commits ask",
    ApprovalMode.ACCEPT_UNTIL_DONE: "Diffs, checks, summaries and the commit need no question until the task is over",
}
CHAT_DESCRIPTION = "A prompt is a question about the repository; nothing is changed"


def offered(*, chat: bool, begun: bool) -> tuple[str, ...]:
    """Return the modes that can be chosen: a thread that has `begun` stays a chat, or stays none."""
    if begun and chat:
        return (CHAT,)
    modes = tuple(str(mode) for mode in ApprovalMode)
    return modes if begun else (*modes, CHAT)


def mode_state(modes: tuple[str, ...], current: str) -> wire.SessionModeState:
    """Return the modes as the client lists them."""
    available = [wire.SessionMode(id=mode, name=_name(mode), description=_description(mode)) for mode in modes]
    return wire.SessionModeState(current_mode_id=current, available_modes=available)


def mode_option(modes: tuple[str, ...], current: str) -> wire.SessionConfigOptionSelect:
    """Return the modes as an option of the thread."""
    options = [
        wire.SessionConfigSelectOption(value=mode, name=_name(mode), description=_description(mode)) for mode in modes
    ]
    return wire.SessionConfigOptionSelect(
        type="select", id=OPTION, name="Mode", category="mode", current_value=current, options=options
    )


def _name(mode: str) -> str:
    return "Chat" if mode == CHAT else mode_label(ApprovalMode(mode)).capitalize()


def _description(mode: str) -> str:
    return CHAT_DESCRIPTION if mode == CHAT else DESCRIPTIONS[ApprovalMode(mode)]
