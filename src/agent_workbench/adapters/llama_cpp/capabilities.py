"""Detection of what a server supports: llama.cpp, servers derived from it, or any other with OpenAI's routes."""

import asyncio
import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import PurePath
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.context_size import LoadedContext, find_context, loaded_context
from agent_workbench.adapters.llama_cpp.gbnf import THOUGHT_START, Thinking
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint, Reply
from agent_workbench.adapters.llama_cpp.server_answers import (
    JsonObject,
    ServerError,
    list_at,
    model_error,
    number_at,
    object_at,
    text_at,
)
from agent_workbench.adapters.llama_cpp.token_counts import (
    LLAMA_CPP,
    LLAMA_CPP_PYTHON,
    Tokenizer,
    find_tokenizer,
)
from agent_workbench.adapters.llama_cpp.turns import Backoff, OnStatus
from agent_workbench.core.errors import ModelRefused, ModelUnavailable
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.text.sanitizer import sanitize_line

# A server answers these questions at once, even while it loads its model.
_REPLY_SECONDS = 30.0
_ROUTER = "router"
_NOT_IN_MEMORY = frozenset({"unloaded", "loading"})
_LOADING = ServerError(HTTPStatus.SERVICE_UNAVAILABLE, "", "loading model")
_SAMPLERS = frozenset({"top_k", "min_p"})
_RELATIVE = _SAMPLERS | {"grammar"}
_OWN = _RELATIVE | {"cache_prompt", "return_progress", "thinking_budget_tokens"}
# Keys for the context size in the list of models: llama.cpp, vLLM, OpenRouter, Mistral and others.
_CONTEXT_KEYS = ("n_ctx", "max_model_len", "context_length", "max_context_length", "context_window")


class ServerCapabilities(Struct, frozen=True):
    """Capabilities of a server: the facts, the model's name for requests, how it marks thoughts, how it counts tokens.

    `fields` may be in a request besides OpenAI's own. `heard` is the server's description of itself, from which the
    rest was detected. A `plain` server has no description but its list of models, and perhaps a route of its own for
    the `context` of a loaded model. `slots` is how many answers it gives at the same time, 0 if it does not tell.
    """

    facts: ModelFacts
    model_name: str
    thinking: Thinking
    tokenizer: Tokenizer | None
    fields: frozenset[str]
    heard: str
    plain: bool = False
    slots: int = 0
    context: LoadedContext = LoadedContext()


async def detect_capabilities(
    endpoint: Endpoint,
    model_name: str,
    on_status: OnStatus,
    deadline: float,
    known: ServerCapabilities | None = None,
    *,
    loads: bool = True,
) -> ServerCapabilities:
    """Wait until the server is ready (at most until `deadline`, the event loop's time) and return what it supports.

    Nothing is tried again while the server describes itself as in `known`. Without `loads` a router loads no model.
    Raises `ModelUnavailable` if nothing answers or the model is still loading, `ModelRefused` for a wrong key or for
    something that is not a model server.
    """
    if known and known.plain:
        # A plain server has one route or two for this, and may be far away.
        listed = await _when_loaded(endpoint, "/v1/models", on_status, deadline)
        same = listed.ok and _heard_of(_entry(listed, model_name)) == known.heard
        if same and await _is_loaded_alike(endpoint, known, deadline):
            return known
    health = await _when_loaded(endpoint, "/health", on_status, deadline)
    props = await _when_loaded(endpoint, "/props", on_status, deadline)
    # A plain server has neither route. A gateway that demands the key on every path does so at /v1/models too.
    if health.ok and props.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise model_error(endpoint.fault(props), endpoint.address)
    said = props.json or {}
    if text_at(said, "role") == _ROUTER:
        return await _behind_router(endpoint, model_name, on_status, deadline, known, loads=loads)
    if not (props.ok and object_at(said, "default_generation_settings")):
        return await _listed(endpoint, model_name, on_status, deadline)
    return await _llama_cpp(endpoint, props, model_name, model_name, deadline, known)


async def _llama_cpp(
    endpoint: Endpoint, props: Reply, model_name: str, asked_for: str, deadline: float, known: ServerCapabilities | None
) -> ServerCapabilities:
    said = props.json or {}
    template = text_at(said, "chat_template")
    context_tokens = number_at(object_at(said, "default_generation_settings"), "n_ctx")
    slots = number_at(said, "total_slots")
    heard = repr(
        (context_tokens, slots, template, *(text_at(said, key) for key in ("model_alias", "model_path", "build_info")))
    )
    if known and known.heard == heard:
        return known
    tokenizer = await find_tokenizer(endpoint, asked_for, deadline)
    facts = ModelFacts(
        endpoint=endpoint.address,
        model=model_name or text_at(said, "model_alias") or PurePath(text_at(said, "model_path")).name,
        context_tokens=context_tokens,
        context_source="/props" if context_tokens else "",
        template_hash=hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest(),
        build=_build(text_at(said, "build_info")),
        counts_tokens=tokenizer is not None,
    )
    thinking = await _thinking(endpoint, template, asked_for, deadline)
    facts = replace(facts, thinks=thinking is not Thinking.NONE)
    return ServerCapabilities(facts, asked_for, thinking, tokenizer, _OWN, heard, slots=slots)


def _build(told: str) -> str:
    """Return the build of a server, empty if the server does not know it."""
    return "" if "unknown" in told else told


async def _behind_router(
    endpoint: Endpoint,
    model_name: str,
    on_status: OnStatus,
    deadline: float,
    known: ServerCapabilities | None,
    *,
    loads: bool,
) -> ServerCapabilities:
    """Detect the model behind a router, which has no context or template itself and needs the name on every route."""
    listed = await _when_loaded(endpoint, "/v1/models", on_status, deadline)
    name = model_name or _name(_entry(listed, ""))
    if loads:
        await _load_behind_router(endpoint, name, on_status, deadline)
    stays = "" if loads else "&autoload=false"
    props = await _when_loaded(endpoint, f"/props?model={quote(name, safe='')}{stays}", on_status, deadline)
    if props.ok and object_at(props.json or {}, "default_generation_settings"):
        return await _llama_cpp(endpoint, props, name, name, deadline, known)
    return await _listed(endpoint, name, on_status, deadline)


async def _load_behind_router(endpoint: Endpoint, name: str, on_status: OnStatus, deadline: float) -> None:
    """Have a router load a model, and wait until it is in memory: until then its other routes are silent."""
    patience, asked = Backoff(endpoint.address, deadline, on_status), False
    while True:
        status = object_at(_entry(await _when_loaded(endpoint, "/v1/models", on_status, deadline), name), "status")
        if text_at(status, "value") not in _NOT_IN_MEMORY:
            return
        if not asked:
            asked = True
            if not (await endpoint.post("/models/load", {"model": name}, _soon(deadline))).ok:
                return  # what is asked next tells why
        elif status.get("failed") is True:
            raise ModelUnavailable(
                f"the server at {endpoint.address} could not load {sanitize_line(name, 120)}",
                advice="check the server's log: there may be too little memory for it",
            )
        await patience.pause(_LOADING)


async def _listed(endpoint: Endpoint, model_name: str, on_status: OnStatus, deadline: float) -> ServerCapabilities:
    """Return what the list of models says, and what trying out shows."""
    reply = await _when_loaded(endpoint, "/v1/models", on_status, deadline)
    if not reply.ok:
        raise model_error(endpoint.fault(reply), endpoint.address)
    if reply.json is None or "data" not in reply.json:
        raise ModelRefused(
            f"{endpoint.address} does not answer like a model server",
            advice="set model.url to the address of a llama.cpp or OpenAI-compatible server",
        )
    entry = _entry(reply, model_name)
    name = model_name or _name(entry)
    tokenizer = await find_tokenizer(endpoint, name, deadline)
    fields = _fields(entry, tokenizer)
    context = LoadedContext(_context_tokens(entry), "/v1/models")
    if not context.tokens and tokenizer and tokenizer.context_tokens:
        context = LoadedContext(tokenizer.context_tokens, tokenizer.route)
    if not context.tokens:
        context = await find_context(endpoint, name, _soon(deadline))
    facts = ModelFacts(
        endpoint.address,
        name,
        context_tokens=context.tokens,
        context_source=context.source,
        build=context.program,
        takes_grammar="grammar" in fields,
        counts_tokens=tokenizer is not None,
        tells_cache="cache_prompt" in fields,
    )
    heard = _heard_of(entry)
    return ServerCapabilities(facts, name, Thinking.NONE, tokenizer, fields, heard, plain=True, context=context)


async def _is_loaded_alike(endpoint: Endpoint, known: ServerCapabilities, deadline: float) -> bool:
    """Return True if the model still has its context, where a route of its program states it."""
    if not known.context.may_change:
        return True
    now = await loaded_context(endpoint, known.context.source, known.model_name, _soon(deadline))
    return now == known.context.tokens


def _fields(entry: JsonObject, tokenizer: Tokenizer | None) -> frozenset[str]:
    """Return the fields that such a server takes besides OpenAI's; they cannot be asked for, only inferred."""
    if text_at(entry, "owned_by") == "llamacpp" or "n_ctx_train" in object_at(entry, "meta"):
        return _OWN
    match tokenizer.kind if tokenizer else "":
        case LLAMA_CPP.kind | LLAMA_CPP_PYTHON.kind:
            return _RELATIVE
        case "":
            return frozenset()
        case _:
            return _SAMPLERS


def _entry(listed: Reply, model_name: str) -> JsonObject:
    """Return the entry of the named model, else of the first loaded one, else the first entry."""
    entries = [entry for entry in list_at(listed.json or {}, "data") if isinstance(entry, dict)]
    if model_name:
        return next((entry for entry in entries if _name(entry) == model_name), {})
    loaded = (entry for entry in entries if text_at(object_at(entry, "status"), "value") == "loaded")
    return next(loaded, entries[0] if entries else {})


def _name(entry: Mapping[str, object]) -> str:
    return text_at(entry, "id")


def _context_tokens(entry: JsonObject) -> int:
    places = (object_at(entry, "meta"), object_at(entry, "top_provider"), entry)
    return next((found for place in places for key in _CONTEXT_KEYS if (found := number_at(place, key))), 0)


def _heard_of(entry: JsonObject) -> str:
    # `created` is the time of the request in llama.cpp, and that of the model elsewhere.
    return repr({key: value for key, value in entry.items() if key != "created"})


async def _when_loaded(endpoint: Endpoint, path: str, on_status: OnStatus, deadline: float) -> Reply:
    patience = Backoff(endpoint.address, deadline, on_status)
    while True:
        reply = await endpoint.get(path, _soon(deadline))
        fault = endpoint.fault(reply)
        if reply.ok or not fault.passes:
            return reply
        await patience.pause(fault)


def _soon(deadline: float) -> float:
    """Return the time until which a server answers what it can answer at once."""
    return min(asyncio.get_running_loop().time() + _REPLY_SECONDS, deadline)


async def _thinking(endpoint: Endpoint, template: str, model_name: str, deadline: float) -> Thinking:
    """Detect how the template marks thoughts by applying it: its text does not show if a prompt ends in a thought."""
    if THOUGHT_START not in template:
        return Thinking.NONE
    body: dict[str, object] = {"messages": [{"role": "user", "content": "?"}]}
    if model_name:
        body["model"] = model_name
    reply = await endpoint.post("/apply-template", body, deadline)
    prompt = text_at(reply.json or {}, "prompt") if reply.ok else ""
    return Thinking.OPENED if prompt.rstrip().endswith(THOUGHT_START) else Thinking.OFFERED
