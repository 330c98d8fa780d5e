"""Entries of the command palette: every action of the workbench by name."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from agent_workbench.tui.keymap import DIALOG_SCOPES, Keymap
from agent_workbench.tui.keys import KEYS, Scope

if TYPE_CHECKING:
    from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen


def key_commands(workbench: "WorkbenchScreen", keymap: Keymap) -> Iterator[SystemCommand]:
    """Yield the actions that can run now, each with its keys."""
    for key in KEYS:
        if key.scope not in {Scope.SCROLL, Scope.ALWAYS, *DIALOG_SCOPES}:
            node = workbench.widget_of(key.scope)
            if node.display:
                help_text = f"{', '.join(keymap.names(key))}  {key.help}"
                yield SystemCommand(f"{key.scope}: {key.label}", help_text, partial(node.run_action, key.action))
