"""Help: all keys, those of the focused pane first, with a search; and the tour of the workbench."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from textual import events
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.tui.keys import Keymap, Scope, binding_id, bindings, keys_of
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.blocks import Block, Entry, Tone

ALWAYS_HERE = (Scope.SCROLL, Scope.EVERYWHERE, Scope.ALWAYS)
TWO_COLUMNS_CELLS = 150
MOST_CHARS = 60
ASKS = "words of what you want to do, or a key"

SCRIPTED = "Demo: answers are scripted, the rest is real."
LABEL_CELLS = 12


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


class Page(Struct, frozen=True):
    """A page of the tour."""

    title: str
    lines: tuple[str, ...]


class TourScreen(Dialog[None]):
    """Shows one page at a time."""

    BINDINGS = bindings(Scope.TOUR)

    def __init__(self, keymap: Keymap) -> None:
        super().__init__("", "", name="tour")
        self._keymap = keymap
        self._pages = tour_pages(keymap)
        self._at = 0
        self._remark = ""

    def body(self) -> Iterable[Widget]:
        return (VerticalScroll(Static("", id="tour-page", markup=False), classes="text", can_focus=True),)

    def on_mount(self) -> None:
        self._show()

    def say_scripted(self) -> None:
        """Say that the model's answers are scripted."""
        self._remark = f"{SCRIPTED}\n"
        if self.is_mounted:
            self._show()

    def _show(self) -> None:
        page, last = self._pages[self._at], self._at == len(self._pages) - 1
        lines = max(len(each.lines) for each in self._pages)
        # All pages are as high as the longest, so that nothing moves.
        text = "\n".join((*page.lines, *[""] * (lines - len(page.lines))))
        self.query_one("#tour-page", Static).update(text)
        self.query_one(".frame").border_title = Content(f"{page.title}  {self._at + 1} of {len(self._pages)}")
        following, before, skips = (
            self._keymap.first(Scope.TOUR, action) for action in ("next_page", "page_before", "close_tour")
        )
        keys = [(following, "to the workbench")] if last else [(following, "next"), (skips, "skip the tour")]
        self.show_keys(self._remark + hint_line([*keys, (before, "back")] if self._at else keys))

    def action_next_page(self) -> None:
        if self._at == len(self._pages) - 1:
            self.dismiss(None)
        else:
            self._at += 1
            self._show()

    def action_page_before(self) -> None:
        self._at = max(0, self._at - 1)
        self._show()

    def action_close_tour(self) -> None:
        self.dismiss(None)

    def on_click(self) -> None:
        self.action_next_page()


def tour_pages(keymap: Keymap) -> tuple[Page, ...]:
    """Return the pages, with the keys as the user has them."""
    keys = _Keys(keymap)
    return _panes(keys), _gate(keys), _hunks(keys), _steering(keys), _records(keys)


class _Keys:
    """Lines of the tour, each with a key and its effect."""

    def __init__(self, keymap: Keymap) -> None:
        self._keymap = keymap

    def line(self, action: str, says: str, scope: Scope = Scope.EVERYWHERE) -> str:
        return f"{self._keymap.first(scope, action):<{LABEL_CELLS}}{says}"

    def pane(self, action: str, name: str, says: str) -> str:
        return f"{self._keymap.first(Scope.EVERYWHERE, action):<3}{name:<{LABEL_CELLS}}{says}"


def _panes(keys: _Keys) -> Page:
    return Page(
        "Agent Workbench",
        (
            "A language model on your own machine works on your plan's tasks,",
            "in a copy of your repository: your files and your branch stay as",
            "they are until you merge.",
            "",
            keys.pane("focus_plan", "Plan", "what is to be done"),
            keys.pane("focus_steps", "Steps", "what the model thinks, does and is told"),
            keys.pane("focus_diff", "Diff", "what waits for you, in full"),
            keys.pane("focus_scratchpad", "Scratchpad", "notes, yours and the model's"),
            keys.pane("focus_code", "Code", "what the model was given to read"),
            keys.pane("focus_bar", "Bar", "what happens now, and what you can do about it"),
            "",
            keys.line("start", "in the bar starts the next task", Scope.GATE),
            keys.line("zoom", "gives the pane all the room"),
        ),
    )


def _gate(keys: _Keys) -> Page:
    return Page(
        "The gate",
        (
            "Diffs, commits and untrusted commands wait in the bar at the bottom.",
            "",
            keys.line("approve", "approves exactly what is shown", Scope.GATE),
            keys.line("reject", "rejects it; the model reads your reason", Scope.GATE),
            keys.line("edit", "edits it first", Scope.GATE),
            keys.line("always", "approves such proposals by a rule from now on", Scope.GATE),
            "",
            "Only what was on screen can be approved, and only in the bar:",
            "while there is more below, the first press shows it.",
            keys.line("focus_bar", "leads back to the bar from everywhere"),
        ),
    )


def _hunks(keys: _Keys) -> Page:
    return Page(
        "By hunk",
        (
            "In the diff pane you can approve some hunks and leave others out.",
            "",
            keys.line("next_change", "goes to the next hunk", Scope.DIFF),
            keys.line("take_hunk", "leaves the hunk out, or takes it again", Scope.DIFF),
            keys.line("select_lines", "selects a range of lines, to leave out only these", Scope.DIFF),
            keys.line("why_left", "gives the reason, for the model", Scope.DIFF),
            keys.line("edit_hunk", "changes the hunk", Scope.DIFF),
            keys.line("result", "shows what would be applied", Scope.DIFF),
            "",
            keys.line("review", "shows all changes of a task, each with its step"),
        ),
    )


def _steering(keys: _Keys) -> Page:
    return Page(
        "While it works",
        (
            keys.line("tell", "says something to the model, also while it writes"),
            keys.line("stop", "stops what runs; in a pane it goes back to the bar"),
            keys.line("change_mode", "changes how much is approved without a question"),
            keys.line("pause", "in the bar pauses after this step, and goes on", Scope.GATE),
            keys.line("undo", "undoes the last diff, files included"),
            keys.line("abort", "aborts the task; the journal keeps what was tried"),
            keys.line("context", "shows what the model was given, and what it cost"),
            "",
            "Plan, notes and code can be changed meanwhile, in their panes.",
            "",
            keys.line("new_tab", "starts another session in a tab beside this one"),
            keys.line("waiting_tab", "goes to what waits next, here or in the inbox"),
            keys.line("inbox", "shows what waits in all sessions"),
        ),
    )


def _records(keys: _Keys) -> Page:
    return Page(
        "Nothing is lost",
        (
            "All that happens stands in the session's journal.",
            "",
            keys.line("sessions", "lists the sessions: replay one, or resume it"),
            keys.line("fork", "in a recording starts a new session from there", Scope.REPLAY),
            keys.line("search_record", "in a recording finds words", Scope.REPLAY),
            "",
            keys.line("leave", "leaves; the task can be resumed"),
            keys.line("help", "lists the keys, those of the focused pane first"),
            keys.line("palette", "finds anything by its name, this tour too", Scope.ALWAYS),
        ),
    )
