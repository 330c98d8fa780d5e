"""Help screen: all keys, those of the focused pane first, with a search."""

from collections.abc import Iterable, Iterator

from textual import events
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from agent_workbench.tui.keymap import Keymap, binding_id, bindings, keys_of
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.blocks import Block, Entry, Tone

ALWAYS_HERE = (Scope.SCROLL, Scope.EVERYWHERE, Scope.ALWAYS)
TWO_COLUMNS_CELLS = 150
MOST_CHARS = 60
ASKS = "words of what you want to do, or a key"


class HelpList(EntryList):
    """List of keys."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.HELP
    label_cells = 14

    def action_expand(self) -> None:
        """Do nothing: keys cannot be expanded."""


class HelpScreen(Dialog[None]):
    """Lists the keys of the keymap. A wide terminal shows the keys of the other panes in a second column."""

    BINDINGS = bindings(Scope.HELP)

    def __init__(self, keymap: Keymap, focused: tuple[Scope, ...]) -> None:
        ask, close = (keymap.first(Scope.HELP, each) for each in ("search_keys", "close_help"))
        keys = hint_line(((ask, "search"), ("j k PgUp PgDn", "scroll"), (close, "close")))
        super().__init__("Keys", keys, name="help")
        self._keymap = keymap
        self._focused = focused

    def body(self) -> Iterable[Widget]:
        asked = Input(placeholder=ASKS, max_length=MOST_CHARS, compact=True)
        return asked, Horizontal(HelpList(id="keys"), HelpList(id="keys-elsewhere"))

    def on_mount(self) -> None:
        self.query_one("#keys", HelpList).focus()

    def on_resize(self, event: events.Resize) -> None:
        self._show(event.size.width)

    def on_input_changed(self) -> None:
        """Show only the keys that match the search."""
        self._show(self.size.width)

    def on_input_submitted(self) -> None:
        self.query_one("#keys", HelpList).focus()

    def _show(self, width: int) -> None:
        asked = self.query_one(Input).value
        here = (*self._focused, *ALWAYS_HERE)
        elsewhere = tuple(scope for scope in Scope if scope not in here)
        beside = width >= TWO_COLUMNS_CELLS
        left = tuple(key_entries(self._keymap, here if beside else (*here, *elsewhere), asked, self._focused))
        keys, others = self.query_one("#keys", HelpList), self.query_one("#keys-elsewhere", HelpList)
        keys.show_entries(left, empty="no key is about that")
        others.display = beside
        others.show_entries(tuple(key_entries(self._keymap, elsewhere, asked)) if beside else ())
        for each in (keys, others):
            each.scroll_to(y=0, animate=False)

    def action_search_keys(self) -> None:
        self.query_one(Input).focus()

    def action_close_help(self) -> None:
        """Close the screen; a search is cleared first."""
        asked = self.query_one(Input)
        if asked.has_focus and asked.value:
            asked.value = ""
        else:
            self.dismiss(None)


def key_entries(keymap: Keymap, scopes: Iterable[Scope], asked: str, focused: Iterable[Scope] = ()) -> Iterator[Entry]:
    """Yield the keys of these scopes that contain all words, each scope under a heading."""
    words = asked.lower().split()
    for scope in scopes:
        said = f"{scope}{' (focused)' if scope in focused else ''}"
        heading: tuple[Block, ...] = (Block(said, Tone.TITLE, rule=True, space_before=True),)
        for key in keys_of(scope):
            names = "  ".join(keymap.names(key))
            about = f"{scope} {names} {key.label} {key.help} {binding_id(key)}".lower()
            if asked.strip() in keymap.names(key) or all(word in about for word in words):
                block = Block(key.help, Tone.PLAIN, names, Tone.KEY)
                yield Entry(f"{scope}.{key.action}", (*heading, block))
                heading = ()
