"""Models of the servers in the settings as rows of a list: status, context, and which one the task asks."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Block, Entry, Tone

NO_SERVERS = "The settings name no server. Set model.url, or start with --model-url URL."
_SHOWN_CHARS = 300
_NAME_CELLS = 30
_GLYPHS = {ModelStatus.LOADED: "●", ModelStatus.SLEEPING: "◐", ModelStatus.LOADING: "◌", ModelStatus.FAILED: "✗"}


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
