"""Asks a server who it is: llama.cpp with all it can do, or a plain OpenAI-compatible one with less."""

import asyncio
import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import PurePath

from agent_workbench.adapters.llama_cpp.endpoint import Endpoint, Reply
from agent_workbench.adapters.llama_cpp.faults import error_of
from agent_workbench.adapters.llama_cpp.gbnf import Thinking
from agent_workbench.adapters.llama_cpp.json_values import JsonObject, first_at, number_at, object_at, text_at
from agent_workbench.adapters.llama_cpp.patience import OnStatus, Patience
from agent_workbench.adapters.llama_cpp.vocabulary import THOUGHT_START
from agent_workbench.core.errors import ModelRefused
from agent_workbench.core.model import ModelFacts

# Even a server that loads its model or has a full slot answers such a question at once.
_REPLY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a server said of itself: the facts, the model's name as requests have to give it, how it thinks."""

    facts: ModelFacts
    model_name: str
    thinking: Thinking


async def introduce(endpoint: Endpoint, model_name: str, on_status: OnStatus, deadline: float) -> Introduction:
    """Wait until the server is ready (at most until `deadline`, the event loop's time) and return who it is.

    Raises `ModelUnavailable` when nothing answers or the model is still not loaded, `ModelRefused` for a wrong key or
    for something that is no model server.
    """
    health = await _when_loaded(endpoint, "/health", on_status, deadline)
    props = await _when_loaded(endpoint, "/props", on_status, deadline)
    # A plain server has neither route; its gateway may ask for the key everywhere, and then says so at /v1/models too.
    if health.ok and props.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise error_of(endpoint.fault(props), endpoint.address)
    said = props.json or {}
    if not (props.ok and object_at(said, "default_generation_settings")):
        return await _plain(endpoint, model_name, on_status, deadline)
    template = text_at(said, "chat_template")
    path = text_at(said, "model_path")
    name = model_name or text_at(said, "model_alias") or PurePath(path).name
    facts = ModelFacts(
        endpoint=endpoint.address,
        model=name,
        context_tokens=number_at(object_at(said, "default_generation_settings"), "n_ctx"),
        template_hash=hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest(),
        build=text_at(said, "build_info"),
    )
    return Introduction(facts, model_name, await _thinking(endpoint, template, deadline))


async def _when_loaded(endpoint: Endpoint, path: str, on_status: OnStatus, deadline: float) -> Reply:
    patience = Patience(endpoint.address, deadline, on_status)
    while True:
        soon = asyncio.get_running_loop().time() + _REPLY_SECONDS
        reply = await endpoint.get(path, min(soon, deadline))
        fault = endpoint.fault(reply)
        if reply.ok or not fault.passes:
            return reply
        await patience.pause(fault)


async def _plain(endpoint: Endpoint, model_name: str, on_status: OnStatus, deadline: float) -> Introduction:
    reply = await endpoint.get("/v1/models", deadline)
    if not reply.ok:
        raise error_of(endpoint.fault(reply), endpoint.address)
    listed = reply.json
    if listed is None or "data" not in listed:
        raise ModelRefused(
            f"what answers at {endpoint.address} is no model server",
            advice="model.url has to be the address of a llama.cpp or OpenAI-compatible server",
        )
    name = model_name or text_at(first_at(listed, "data"), "id")
    on_status(
        f"{endpoint.address} is not a llama.cpp server: answers cannot be held to a grammar, tokens are not counted, "
        "and the size of the context is not known"
    )
    facts = ModelFacts(endpoint.address, name, context_tokens=0, takes_grammar=False, counts_tokens=False)
    return Introduction(facts, name, Thinking.NONE)


async def _thinking(endpoint: Endpoint, template: str, deadline: float) -> Thinking:
    """Find out by trying what the template does: whether a prompt ends within a thought cannot be read off its text."""
    if THOUGHT_START not in template:
        return Thinking.NONE
    body: JsonObject = {"messages": [{"role": "user", "content": "?"}]}
    reply = await endpoint.post("/apply-template", body, deadline)
    prompt = text_at(reply.json or {}, "prompt") if reply.ok else ""
    return Thinking.OPENED if prompt.rstrip().endswith(THOUGHT_START) else Thinking.OFFERED
