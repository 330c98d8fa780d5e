"""Models of the servers in the settings: load and unload them, and switch the task to one."""

from collections.abc import Awaitable, Callable, Iterable, Iterator

from msgspec import Struct
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.intents import Intent, ListModels, LoadModel, SwitchModel, UnloadModel
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.outcomes import Accepted, ModelsListed, Outcome, Refused
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.blocks import Block, Entry, Tone

NO_SERVERS = "The settings name no server. Set model.url, or start with --model-url URL."
_SHOWN_CHARS = 300
_NAME_CELLS = 30
_GLYPHS = {ModelStatus.LOADED: "●", ModelStatus.SLEEPING: "◐", ModelStatus.LOADING: "◌", ModelStatus.FAILED: "✗"}

ASKING = "asking the servers"


class ModelRow(Struct, frozen=True):
    """A model at the server of `endpoint`, or a server that lists none (`model` is empty); `manages`: it loads some."""

    entry: Entry
    endpoint: str
    model: str = ""
    manages: bool = False
    asked: bool = False


def model_rows(servers: Iterable[FoundServer], state: SessionState) -> tuple[ModelRow, ...]:
    """Return a row for each model, the first of a server with its heading; a row for a server that lists none."""
    return tuple(row for server in servers for row in _rows(server, state))


def asked_lines(state: SessionState) -> tuple[str, ...]:
    """Return who is asked now and by whose choice, and what another model would have to read."""
    facts, run, switched = state.model, state.run, state.switched
    if switched is not None:
        asked = f"asked now: {sanitize_line(switched.model, _SHOWN_CHARS)}, chosen for this task"
    elif facts is None:
        return ("no model has answered yet",)
    else:
        asked = f"asked now: {sanitize_line(facts.model, _SHOWN_CHARS) or 'a model'}, as the settings say"
    if run is None or not state.unfinished:
        return (asked, "only a task that is worked on can be switched to another one")
    tokens = run.last_figures.prompt_tokens if run.last_figures is not None else 0
    # Fewer where the other model was asked before, and still has the beginning in its cache.
    read = f", up to {tokens:,} tokens" if tokens else ""
    return (asked, f"after a switch the prompt is read again{read}")


def _rows(server: FoundServer, state: SessionState) -> Iterator[ModelRow]:
    name = f"{server.program} at {server.url}" if server.program else server.url
    heading = Block(sanitize_line(name, _SHOWN_CHARS), Tone.TITLE, space_before=True)
    if server.problem:
        said = Block(sanitize_line(server.problem, _SHOWN_CHARS), Tone.WARN)
        yield ModelRow(Entry(f"{server.endpoint}:", (heading, said)), server.endpoint)
        return
    lacks = Block("it loads and unloads no models on request", Tone.DIM)
    above = (heading,) if server.manages else (heading, lacks)
    width = min(_NAME_CELLS, max(len(model.name) for model in server.models))
    for number, model in enumerate(server.models):
        asked = _is_asked(server, model, state)
        line = Block(_line(model, width, asked=asked), Tone.ACCENT if asked else Tone.PLAIN)
        last = number == len(server.models) - 1 and server.left_out
        below = (Block(f"and {server.left_out:,} more", Tone.DIM),) if last else ()
        blocks = (*(above if not number else ()), line, *below)
        yield ModelRow(
            Entry(f"{server.endpoint}:{model.name}", blocks), server.endpoint, model.name, server.manages, asked
        )


def _line(model: ListedModel, width: int, *, asked: bool) -> str:
    status = "" if model.status is ModelStatus.UNKNOWN else str(model.status)
    context = f"context {model.context_tokens:,}" if model.context_tokens else ""
    said = " · ".join(filter(None, ("asked now" if asked else "", status, context)))
    return f"{_GLYPHS.get(model.status, '○')} {sanitize_line(model.name, _SHOWN_CHARS):<{width}}  {said}".rstrip()


def _is_asked(server: FoundServer, model: ListedModel, state: SessionState) -> bool:
    facts, switched = state.model, state.switched
    if switched is not None:
        return (switched.endpoint, switched.model) == (server.endpoint, model.name)
    return facts is not None and facts.model == model.name and server.url in facts.endpoint


class ModelList(EntryList):
    """The models, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.MODELS

    def action_expand(self) -> None:
        """Do nothing: models cannot be expanded."""


class ModelsScreen(Dialog[None]):
    """Lists the models, and submits what is to be done with the selected one."""

    BINDINGS = bindings(Scope.MODELS)

    def __init__(self, keymap: Keymap, ask: Callable[[Intent], Awaitable[Outcome]]) -> None:
        super().__init__("Models", "", name="models")
        self._keymap = keymap
        self._ask = ask
        self._servers: tuple[FoundServer, ...] | None = None
        self._rows: tuple[ModelRow, ...] = ()
        self._said = ASKING
        self._state: SessionState | None = None

    def body(self) -> Iterable[Widget]:
        return (
            Static("", id="models-head", markup=False),
            ModelList(id="served-models"),
            Static("", id="models-said", markup=False),
        )

    def on_mount(self) -> None:
        self.query_one(ModelList).focus()
        self.action_ask_servers()
        self._show()

    def show(self, update: SessionUpdate) -> None:
        """Show which model is asked now."""
        if update.state is not self._state:
            self._state = update.state
            if self.is_mounted:
                self._show()

    def _show(self) -> None:
        if self._state is None:
            return
        models = self.query_one(ModelList)
        self._rows = model_rows(self._servers or (), self._state)
        models.show_entries(tuple(row.entry for row in self._rows), empty="" if self._servers is None else NO_SERVERS)
        if models.cursor < 0 and self._rows:
            models.select(next((number for number, row in enumerate(self._rows) if row.asked), 0))
        self.query_one("#models-head", Static).update("\n".join(asked_lines(self._state)))
        self.query_one("#models-said", Static).update(sanitize(self._said, limit_chars=600))
        switched = self._state.switched is not None
        labels = {
            "switch_model": "switch" if self._state.unfinished else "",
            "settings_model": "back" if switched else "",
            "load_model": "load" if self._rows else "",
            "unload_model": "unload" if self._rows else "",
            "ask_servers": "" if switched else "ask again",
            "close_models": "close",
        }
        self.show_keys(hint_line((self._keymap.first(Scope.MODELS, key), text) for key, text in labels.items() if text))

    def action_ask_servers(self) -> None:
        """Ask the servers for their models."""
        self._say(ASKING)
        self.run_worker(self._list(), group="models", exclusive=True)

    def action_switch_model(self) -> None:
        if (row := self._selected()) is not None:
            self._submit(SwitchModel(row.endpoint, row.model))

    def action_settings_model(self) -> None:
        self._submit(SwitchModel())

    def action_load_model(self) -> None:
        if (row := self._selected()) is not None:
            self._say(f"loading {sanitize_line(row.model, 200)}")
            self._submit(LoadModel(row.endpoint, row.model))

    def action_unload_model(self) -> None:
        if (row := self._selected()) is not None:
            self._say(f"unloading {sanitize_line(row.model, 200)}")
            self._submit(UnloadModel(row.endpoint, row.model))

    def action_close_models(self) -> None:
        self.dismiss(None)

    def _selected(self) -> ModelRow | None:
        cursor = self.query_one(ModelList).cursor
        row = self._rows[cursor] if 0 <= cursor < len(self._rows) else None
        if row is not None and row.model:
            return row
        self._say("select a model")
        return None

    def _submit(self, intent: Intent) -> None:
        self.run_worker(self._do(intent), group="models", exclusive=True)

    async def _do(self, intent: Intent) -> None:
        outcome = await self._ask(intent)
        if isinstance(outcome, Refused):
            self._say(outcome.reason)
        elif isinstance(outcome, Accepted):
            self._say(outcome.note)
            await self._list()

    async def _list(self) -> None:
        outcome = await self._ask(ListModels())
        if isinstance(outcome, ModelsListed):
            self._servers = outcome.servers
            self._say("" if self._said == ASKING else self._said)
        elif isinstance(outcome, Refused):
            self._say(outcome.reason)

    def _say(self, text: str) -> None:
        self._said = text
        self._show()
