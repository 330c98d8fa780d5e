"""All keys, those of the focused place first."""

from collections.abc import Iterable, Iterator

from textual.binding import Binding
from textual.widget import Widget

from agent_workbench.core.views.tones import Block, Entry, Tone
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialogue import Dialogue
from agent_workbench.tui.widgets.entry_list import EntryList


class HelpList(EntryList):
    """The list of keys."""

    BINDINGS = bindings(Scope.SCROLL)
    label_cells = 14

    def on_mount(self) -> None:
        self.focus()


class HelpScreen(Dialogue[None]):
    """Made from the keymap, so that it cannot be wrong."""

    BINDINGS = [Binding("escape,q,question_mark", "close", "close")]

    def __init__(self, keymap: Keymap, focused: tuple[Scope, ...]) -> None:
        super().__init__("Keys", "j k PgUp PgDn scroll   Esc closes", name="help")
        self._entries = tuple(_entries(keymap, focused))

    def body(self) -> Iterable[Widget]:
        keys = HelpList(id="keys")
        keys.show_entries(self._entries)
        return (keys,)

    def action_close(self) -> None:
        self.dismiss(None)


def _entries(keymap: Keymap, focused: tuple[Scope, ...]) -> Iterator[Entry]:
    for scope, keys in keymap.sections(focused):
        heading = Block(f"{scope}{' (focused)' if scope in focused else ''}", Tone.TITLE, rule=True, space_before=True)
        for number, key in enumerate(keys):
            names = "  ".join(keymap.names(key))
            said = Block(key.says, Tone.PLAIN, names, Tone.KEY)
            yield Entry(f"{scope}.{key.action}", (said,) if number else (heading, said))
