"""Context of a server whose list of models does not state it: told by its own routes, or shown by what it read."""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint, Reply
from agent_workbench.adapters.llama_cpp.server_answers import (
    JsonObject,
    list_at,
    number_at,
    object_at,
    text_at,
)
from agent_workbench.core.model import ModelRequest

MEASURED = "measured"
OLLAMA, LM_STUDIO = "Ollama", "LM Studio"

_OLLAMA = "/api/ps"
_LM_STUDIO = "/api/v1/models"
_LM_STUDIO_OLDER = "/api/v0/models"
_INSTANCES = "loaded_instances"
_LM_STUDIO_MARKS = {_LM_STUDIO: _INSTANCES, _LM_STUDIO_OLDER: "state"}
_STATED_BY = frozenset({_OLLAMA, _LM_STUDIO, _LM_STUDIO_OLDER})
_LATEST = ":latest"
_SET_CONTEXT = "num_ctx"

# Characters that a token of text has at most, in a whole prompt and in what was added to one; bytes that it has at
# least. In scripts with three bytes a character a token may have more than 12 of them.
_DENSEST, _DENSEST_ADDED, _THINNEST = 8, 12, 2
# Versions of Ollama whose tokens of a prompt are those that did not come from the cache.
_TELLS_A_PART = re.compile(rf"{OLLAMA} 0\.(?:[0-3]|30)\.")
_RUN = re.compile(r"(.)\1{2,}", re.DOTALL)
# No server has a smaller context.
_LEAST_TOKENS = 1_000
# A counted size includes an estimate of the template's tokens, for each message at most so many.
_EXACT_SHARE, _TEMPLATE_TOKENS = 0.9, 12


class LoadedContext(Struct, frozen=True):
    """Context with which a program has loaded a model (0: unknown), and the route that states it.

    `program` names a server that was recognized by its routes.
    """

    tokens: int = 0
    source: str = ""
    program: str = ""

    @property
    def may_change(self) -> bool:
        """True if the route states it of the model as it is loaded now, not of the model's file."""
        return self.source in _STATED_BY

    @property
    def tells_whole_prompts(self) -> bool:
        """False if the server is known to leave out of a prompt's tokens those that came from its cache."""
        return _TELLS_A_PART.match(self.program) is None


async def find_context(endpoint: Endpoint, model_name: str, deadline: float) -> LoadedContext:
    """Return the context with which Ollama or LM Studio has loaded a model; unknown for other servers.

    Loads nothing. `deadline` is the event loop's time. Raises `ModelUnavailable`.
    """
    if not model_name:
        return LoadedContext()
    version = text_at(await _said(endpoint, "/api/version", deadline), "version")
    # Others have a route for their version too.
    if version and isinstance((await _said(endpoint, _OLLAMA, deadline)).get("models"), list):
        found = await _ollama(endpoint, model_name, deadline)
        return LoadedContext(found.tokens, found.source, f"{OLLAMA} {version}")
    for route, mark in _LM_STUDIO_MARKS.items():
        # Others list their models at these routes too.
        if any(mark in entry for entry in _entries(await _said(endpoint, route, deadline), model_name)):
            tokens = await loaded_context(endpoint, route, model_name, deadline)
            return LoadedContext(tokens, route if tokens else "", LM_STUDIO)
    return LoadedContext()


class LoadedModels(Struct, frozen=True):
    """Models of a server as it lists them: the context (0: unknown) of each loaded one, by every name of the model.

    `program` is empty for other servers than Ollama and LM Studio. `listed` are the models of text that it has on its
    disk, where its list in OpenAI's form may lack them. `manages`: it loads and unloads models on request.
    """

    program: str = ""
    contexts: Mapping[str, int] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    manages: bool = False


async def load_model(endpoint: Endpoint, model_name: str, context: LoadedContext, deadline: float) -> Reply | None:
    """Load a model as its first answer would do, where that shows its context; return the reply, None if it does not.

    Ollama is always asked: a model may be loaded with a context that another client wants, and is loaded anew for the
    first request that does not state one. Raises `ModelUnavailable`.
    """
    if context.program.startswith(OLLAMA):
        reply = await endpoint.post("/api/generate", {"model": model_name, "stream": False}, deadline)
    elif context.program and not context.tokens:
        body = {"model": model_name, "messages": [{"role": "user", "content": "?"}], "max_tokens": 1}
        reply = await endpoint.post("/v1/chat/completions", body, deadline)
    else:
        return None
    return reply


async def loaded_context(endpoint: Endpoint, source: str, model_name: str, deadline: float) -> int:
    """Return the context of a loaded model by the route `source`, 0 if it is not loaded; raise `ModelUnavailable`."""
    entries = _entries(await _said(endpoint, source, deadline), model_name)
    return next((tokens for entry in entries if (tokens := _tokens(entry, model_name))), 0)


async def loaded_models(endpoint: Endpoint, deadline: float) -> LoadedModels:
    """Return what a server says of its loaded models by a route of its own; raise `ModelUnavailable`. Loads nothing."""
    said = await _said(endpoint, _OLLAMA, deadline)
    if isinstance(said.get("models"), list):
        return LoadedModels(OLLAMA, dict(_contexts(_objects(said, "models"))), manages=True)
    for route, key in ((_LM_STUDIO, "models"), (_LM_STUDIO_OLDER, "data")):
        mark = _LM_STUDIO_MARKS[route]
        entries = [entry for entry in _objects(await _said(endpoint, route, deadline), key) if mark in entry]
        if entries:
            loaded = (each for each in entries if list_at(each, mark) or text_at(each, mark) == "loaded")
            listed = (text_at(each, "key") for each in entries if text_at(each, "type") == "llm")
            names = tuple(name for name in listed if name)
            return LoadedModels(LM_STUDIO, dict(_contexts(loaded)), names, manages=route == _LM_STUDIO)
    return LoadedModels()


async def instances_of(endpoint: Endpoint, model_name: str, deadline: float) -> tuple[str, ...]:
    """Return the identifiers of a model's loaded instances in LM Studio; raise `ModelUnavailable`."""
    entries = _entries(await _said(endpoint, _LM_STUDIO, deadline), model_name)
    return tuple(filter(None, (text_at(each, "id") for entry in entries for each in _objects(entry, _INSTANCES))))


def _contexts(entries: Iterable[JsonObject]) -> Iterator[tuple[str, int]]:
    for entry in entries:
        for name in _all_names(entry):
            yield name, _tokens(entry, name)


def _objects(value: JsonObject, key: str) -> Iterator[JsonObject]:
    return (entry for entry in list_at(value, key) if isinstance(entry, dict))


async def _ollama(endpoint: Endpoint, model_name: str, deadline: float) -> LoadedContext:
    if tokens := await loaded_context(endpoint, _OLLAMA, model_name, deadline):
        return LoadedContext(tokens, _OLLAMA)
    # Older versions state only a context that the model's file sets.
    reply = await endpoint.post("/api/show", {"model": model_name}, deadline)
    lines = text_at(reply.json or {}, "parameters").splitlines() if reply.ok else []
    fields = (line.split() for line in lines)
    said = (field[1] for field in fields if len(field) == 2 and field[0] == _SET_CONTEXT)
    tokens = next((int(each) for each in said if each.isdecimal() and len(each) < 10), 0)
    return LoadedContext(tokens, "/api/show" if tokens else "")


async def _said(endpoint: Endpoint, route: str, deadline: float) -> JsonObject:
    reply = await endpoint.get(route, deadline)
    return (reply.json or {}) if reply.ok else {}


def _entries(said: JsonObject, model_name: str) -> Iterator[JsonObject]:
    """Yield the entries of a model: Ollama's have a `name`, LM Studio's a `key` or an `id`."""
    for entry in (*list_at(said, "models"), *list_at(said, "data")):
        if isinstance(entry, dict) and model_name.removesuffix(_LATEST) in _names(entry):
            yield entry


def _names(entry: JsonObject) -> set[str]:
    return {name.removesuffix(_LATEST) for name in _all_names(entry)}


def _all_names(entry: JsonObject) -> set[str]:
    names = [text_at(entry, key) for key in ("name", "model", "key", "id")]
    return {name for name in (*names, *(text_at(each, "id") for each in _objects(entry, _INSTANCES))) if name}


def _tokens(entry: JsonObject, model_name: str) -> int:
    """Return the context of a loaded model; of several instances that of the named one, else the smallest."""
    instances = list(_objects(entry, _INSTANCES))
    named = [each for each in instances if text_at(each, "id") == model_name]
    sizes = [number_at(object_at(each, "config"), "context_length") for each in named or instances]
    told = number_at(entry, "loaded_context_length") or number_at(entry, "context_length")
    return told or min((size for size in sizes if size), default=0)


class PromptReadings:
    """Tokens that a server read of its last prompt: fewer for a longer prompt show that it was cut without a word."""

    def __init__(self) -> None:
        self._texts: tuple[str, ...] = ()
        self._told = 0

    def missing(self, request: ModelRequest, told: int, *, counted: bool, whole: bool) -> int:
        """Return the least number of tokens of a prompt if the server read fewer, `told`; 0 if it read all.

        `counted`: the request states what the server's tokenizer counted. `whole`: `told` is known to include the
        tokens that came from the server's cache, which old versions of some servers leave out.
        """
        texts = tuple(message.text for message in request.messages)
        least = _counted_tokens(request) if counted else self._least_tokens(texts, told, whole=whole)
        if 0 < told < least and least >= _LEAST_TOKENS:
            return least
        if told:
            self._texts, self._told = texts, told
        return 0

    def _least_tokens(self, texts: tuple[str, ...], told: int, *, whole: bool) -> int:
        """Return the fewest tokens that a prompt can have; 0 if that is not sure."""
        before = len(self._texts)
        if self._told and len(texts) > before and texts[:before] == self._texts:
            added = _dense_size(texts[before:])
            most_bytes = sum(len(text.encode("utf-8", "replace")) for text in texts[before:])
            alone = added / _DENSEST_ADDED <= told <= most_bytes / _THINNEST
            if whole or told == self._told or not alone:
                return self._told + max(1, added // _DENSEST_ADDED)
            return 0
        return _dense_size(texts) // _DENSEST if whole or told >= _LEAST_TOKENS else 0


def _counted_tokens(request: ModelRequest) -> int:
    return max(0, int((request.prompt_tokens - _TEMPLATE_TOKENS * len(request.messages)) * _EXACT_SHARE))


def _dense_size(texts: tuple[str, ...]) -> int:
    """Return the characters without runs of one, such as spaces or a ruled line: one token may hold many."""
    return sum(len(_RUN.sub(r"\1", text)) for text in texts)
