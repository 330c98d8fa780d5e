"""What the command palette offers: every action of the workbench by its name."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from agent_workbench.tui.keymap import IN_DIALOGUES, Keymap
from agent_workbench.tui.keys import KEYS, Scope

if TYPE_CHECKING:
    from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen


def key_commands(workbench: "WorkbenchScreen", keymap: Keymap) -> Iterator[SystemCommand]:
    """Yield the actions that can be wanted now, each with its keys."""
    for key in KEYS:
        if key.scope not in {Scope.SCROLL, Scope.ALWAYS, *IN_DIALOGUES}:
            node = workbench.widget_of(key.scope)
            if node.display:
                says = f"{', '.join(keymap.names(key))}  {key.says}"
                yield SystemCommand(f"{key.scope}: {key.label}", says, partial(node.run_action, key.action))
