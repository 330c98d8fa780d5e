"""Settings of the screen."""

from enum import StrEnum

from msgspec import Struct


class CallBy(StrEnum):
    """Way to notify the user: the terminal's bell, a notification of the terminal, or one of the desktop."""

    BELL = "bell"
    TERMINAL = "terminal"
    DESKTOP = "desktop"


class ApprovalMode(StrEnum):
    """Mode of a session: which proposals are approved without a question."""

    ASK = "ask"
    ACCEPT_EDITS = "accept_edits"
    ACCEPT_UNTIL_DONE = "accept_until_done"


class UiSettings(Struct, frozen=True):
    """Theme, notifications, keys and mode of the screen."""

    theme: str = "textual-dark"
    """The workbench's theme: one of Textual's by its name, or `high-contrast`, `high-contrast-light`. A terminal with
    16 colours shows its own colours; with `NO_COLOR` there are none.
    """
    clipboard: bool = True
    """Send copied text to the terminal (OSC 52), which puts it into the system's clipboard; tmux needs `set -g
    set-clipboard on`. Text over 64 KiB can only be pasted in the workbench.
    """
    notify: tuple[CallBy, ...] = (CallBy.BELL, CallBy.TERMINAL)
    """Notifications about pending proposals while the terminal has no focus: the terminal's bell, its notification (OSC
    9; tmux needs `set -g allow-passthrough on`, for hidden windows `all`), one of the desktop (`notify-send`, on macOS
    `osascript`). `[]`: none. With `desktop`, `agent run` and `agent worker` also tell it what they park.
    """
    keys: tuple[tuple[str, str], ...] = ()
    """Other keys for actions, action name to key."""
    mode: ApprovalMode = ApprovalMode.ASK
    """The mode in which a session starts on the screen; it approves no checks without a sandbox. Only your own settings
    may set it: in a repository's `.agent.yml` it is refused.
    """
    review_context: bool = True
    """Show what will be sent before a task's first prompt."""
