"""Commands by name, for the command palette and for `/` in the input line."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.app import SystemCommand

from agent_workbench.tui.keys import DIALOG_SCOPES, KEYS, Key, Keymap, Scope, binding_id

if TYPE_CHECKING:
    from textual.widget import Widget

    from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen

LINE = "tell"
"""Action that opens the input line itself."""
_WORD = re.compile(r"/([a-z0-9_-]*)")


class LineCommand(Struct, frozen=True):
    """A command of the input line: the name of a key, as in docs/reference/keys.md, with its keys and help."""

    name: str
    help: str
    run: Callable[[], Awaitable[object]]


def key_commands(workbench: "WorkbenchScreen", keymap: Keymap) -> Iterator[SystemCommand]:
    """Yield the actions that can run now, each with its keys."""
    for key, node in _runnable(workbench):
        help_text = f"{', '.join(keymap.names(key))}  {key.help}"
        yield SystemCommand(f"{key.scope}: {key.label}", help_text, partial(node.run_action, key.action))


def line_commands(workbench: "WorkbenchScreen", keymap: Keymap) -> tuple[LineCommand, ...]:
    """Return the same actions as commands of the input line, those for the whole screen first."""
    found = sorted(_runnable(workbench), key=lambda each: each[0].scope is not Scope.EVERYWHERE)
    return tuple(_command(key, node, keymap) for key, node in found if key.action != LINE)


def _command(key: Key, node: "Widget", keymap: Keymap) -> LineCommand:
    help_text = f"{', '.join(keymap.names(key))}  {key.help}"
    return LineCommand(binding_id(key), help_text, partial(node.run_action, key.action))


def _runnable(workbench: "WorkbenchScreen") -> "Iterator[tuple[Key, Widget]]":
    for key in KEYS:
        if key.scope not in {Scope.SCROLL, Scope.ALWAYS, *DIALOG_SCOPES}:
            node = workbench.widget_of(key.scope)
            if node.display:
                yield key, node


def command_word(line: str) -> str | None:
    """Return the name in a line that is a command, empty if it is only begun; None for other words, such as a path."""
    match = _WORD.fullmatch(line)
    return match[1] if match else None


def matching_commands(commands: Sequence[LineCommand], typed: str) -> list[LineCommand]:
    """Return the commands whose names begin with what is typed first, then those that contain it."""
    fitting = [each for each in commands if typed in each.name]
    return sorted(fitting, key=lambda each: not each.name.startswith(typed))
