"""Model servers on this machine, searched at their usual ports; and the models of one server, listed and loaded."""

import asyncio
import importlib
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.context_size import (
    LM_STUDIO,
    OLLAMA,
    LoadedContext,
    instances_of,
    load_model,
)
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint, Reply
from agent_workbench.adapters.llama_cpp.server_answers import list_at, model_error, number_at, object_at, text_at
from agent_workbench.core.errors import ModelError, ModelRefused, ModelUnavailable, WorkbenchError
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.system.loopback import is_loopback

if TYPE_CHECKING:
    from agent_workbench.adapters.llama_cpp.context_size import LoadedModels
    from agent_workbench.adapters.llama_cpp.server_answers import JsonObject


SECONDS = 1.0
"""Longest time for the answers, whatever the servers do."""
CONNECT_SECONDS = 0.3
_LISTED_BYTES = 256 * 1024
_MOST_MODELS, _MOST_LISTED = 20, 500
_NAME_CHARS = 120
_NO_TEXT = ("embed", "rerank", "whisper", "clip-")
_CONTEXT_KEYS = ("n_ctx", "max_model_len", "max_context_length", "context_length")
_LLAMA_CPP = "llamacpp"
_CLIENT = "agent_workbench.adapters.llama_cpp.http_endpoint"
_KEY_WANTED = frozenset({401, 403})
_STATUSES = {
    "loaded": ModelStatus.LOADED,
    "loading": ModelStatus.LOADING,
    "sleeping": ModelStatus.SLEEPING,
    "unloaded": ModelStatus.UNLOADED,
}

LIST_SECONDS = 5.0
"""Longest time for a list of models: a server answers it at once, even while it loads one."""
LOAD_SECONDS = 600.0
_UNLOAD_SECONDS = 30.0
_FIRST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 0.1, 2.0
_IN_MEMORY = frozenset({ModelStatus.LOADED, ModelStatus.SLEEPING})

OnStatus = Callable[[str], None]


class ServerCandidate(Struct, frozen=True):
    """A program and the address where it usually listens."""

    program: str
    url: str


# Newer versions of llama.cpp listen at 9931, older ones at 8080.
USUAL_SERVERS = (
    ServerCandidate("llama-server", "http://127.0.0.1:9931"),
    ServerCandidate("llama-server", "http://127.0.0.1:8080"),
    ServerCandidate("Ollama", "http://127.0.0.1:11434"),
    ServerCandidate("LM Studio", "http://127.0.0.1:1234"),
    ServerCandidate("vLLM", "http://127.0.0.1:8000"),
)
# The variables of OpenAI's libraries, of LiteLLM and of the tools that are built on it.
_ADDRESSES = {
    "OLLAMA_API_BASE": "Ollama",
    "LM_STUDIO_API_BASE": "LM Studio",
    "HOSTED_VLLM_API_BASE": "vLLM",
    "OPENAI_BASE_URL": "a server",
    "OPENAI_API_BASE": "a server",
}
_USUAL_PORTS = {"llama-server": 8080, "Ollama": 11434}
_PATH = re.compile(r"(?:/[\w.-]+)*")


def candidates(environ: Mapping[str, str]) -> tuple[ServerCandidate, ...]:
    """Return the addresses of this machine that variables name, then the usual ones of the programs without one."""
    named = tuple(_named(environ))
    programs = {each.program for each in named}
    found: dict[tuple[int | None, str], ServerCandidate] = {}
    for each in (*named, *(each for each in USUAL_SERVERS if each.program not in programs)):
        found.setdefault(_place(each), each)
    return tuple(found.values())


def _named(environ: Mapping[str, str]) -> Iterator[ServerCandidate]:
    """Yield the addresses in the variables that programs for models read, as far as they are of this machine."""
    port = environ.get("LLAMA_ARG_PORT", "").strip()
    host = environ.get("LLAMA_ARG_HOST", "").strip() or "127.0.0.1"
    said = {
        "llama-server": f"{_bracketed(host)}:{port}" if port else "",
        "Ollama": environ.get("OLLAMA_HOST", ""),
    }
    for program, where in (*said.items(), *((_ADDRESSES[name], environ.get(name, "")) for name in _ADDRESSES)):
        if (url := _local_url(where.strip(), _USUAL_PORTS.get(program, 80))) is not None:
            yield ServerCandidate(program, url)


def _local_url(said: str, usual_port: int) -> str | None:
    """Return the address without a name and a password in it; None for one elsewhere, or with another protocol."""
    # Ollama takes a port without a host, and an address of IPv6 without brackets.
    try:
        parts = urlsplit(said if "//" in said else f"http://{_bracketed(re.sub(r'^:(?=[0-9])', '127.0.0.1:', said))}")
        port = parts.port or (80 if "//" in said else usual_port)
    except ValueError:
        return None
    unspecified = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
    host = unspecified.get(parts.hostname or "", parts.hostname or "")
    path = parts.path.rstrip("/").removesuffix("/v1")
    if not said or parts.scheme != "http" or not is_loopback(host) or not _PATH.fullmatch(path):
        return None
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"


def _bracketed(host: str) -> str:
    """Return an address of IPv6 as it stands in a URL, and anything else as it is."""
    try:
        return f"[{ipaddress.IPv6Address(host)}]"
    except ValueError:
        return host


def _place(candidate: ServerCandidate) -> tuple[int | None, str]:
    """Return what two addresses of one server have in common, whichever name of this machine they use."""
    parts = urlsplit(candidate.url)
    return parts.port, parts.path


async def find_servers(among: Sequence[ServerCandidate], seconds: float = SECONDS) -> tuple[FoundServer, ...]:
    """Return those of the candidates that answer like a model server within `seconds`, in their order.

    No key is sent. Raises `ConfigError` for a candidate that is no address.
    """
    connect = max(CONNECT_SECONDS, seconds / 4)
    listening = await asyncio.gather(*(_listens(each.url, connect) for each in among))
    there = [each for each, listens in zip(among, listening, strict=True) if listens]
    if not there:
        return ()
    # Loaded only for somebody, and before the time of their answers begins.
    await asyncio.to_thread(importlib.import_module, _CLIENT)
    deadline = asyncio.get_running_loop().time() + seconds
    found = await asyncio.gather(*(_ask(each, deadline) for each in there))
    return tuple(each for each in found if each is not None)


async def _listens(url: str, seconds: float) -> bool:
    """Return True if something takes connections there within `seconds`, or a proxy leads there."""
    parts = urlsplit(url)
    if not is_loopback(parts.hostname or ""):
        from agent_workbench.system.proxies import proxy_for

        if proxy_for(url) is not None:
            return True
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _ask(candidate: ServerCandidate, deadline: float) -> FoundServer | None:
    """Return what a server lists; None for another kind of server, and for one that is not done in time."""
    from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint

    endpoint = Endpoint(candidate.url)
    try:
        return await ask_server(endpoint, candidate, deadline, _MOST_MODELS)
    except WorkbenchError:
        return None
    finally:
        await endpoint.close()


async def ask_server(
    endpoint: "Endpoint", candidate: ServerCandidate, deadline: float, most_models: int = _MOST_LISTED
) -> FoundServer | None:
    """Return what a server lists, at most so many models; None for another kind of server. Loads nothing.

    `deadline` is the event loop's time. Raises `ModelError` if it does not answer in time.
    """

    reply = await _get(endpoint, "/v1/models", deadline)
    if reply.status in _KEY_WANTED:
        problem = "wants an API key; set model.url and model.api_key_env"
        return FoundServer(candidate.program, candidate.url, problem=problem)
    if endpoint.fault(reply).is_loading:
        return FoundServer(candidate.program, candidate.url, problem="is still loading its model")
    if not reply.ok:
        raise model_error(endpoint.fault(reply), endpoint.address)
    return _listed(candidate, reply, await _loaded(endpoint, deadline), most_models)


async def _loaded(endpoint: "Endpoint", deadline: float) -> "LoadedModels":
    """Return what a server says of its loaded models, as far as it says so in time."""
    from agent_workbench.adapters.llama_cpp.context_size import LoadedModels, loaded_models

    try:
        return await loaded_models(endpoint, deadline)
    except WorkbenchError:
        return LoadedModels()


def _listed(candidate: ServerCandidate, reply: "Reply", loaded: "LoadedModels", most_models: int) -> FoundServer | None:

    said = reply.json
    if said is None or not isinstance(said.get("data"), list):
        return None
    entries = [entry for entry in list_at(said, "data") if isinstance(entry, dict)]
    shown = {text_at(entry, "id") for entry in entries}
    entries += [{"id": name} for name in loaded.listed if name not in shown]
    own = any(text_at(entry, "owned_by") == _LLAMA_CPP for entry in entries)
    # Only a router's entries have a status.
    routes = any(text_at(object_at(entry, "status"), "value") for entry in entries)
    left_out, entries = max(0, len(entries) - _MOST_LISTED), entries[:_MOST_LISTED]
    found = [model for entry in entries if (model := _model(entry, loaded)) is not None]
    # What is loaded answers at once.
    found.sort(key=lambda model: model.status is not ModelStatus.LOADED)
    models = tuple(found[:most_models])
    return FoundServer(
        program="llama-server" if own or routes else loaded.program or candidate.program,
        url=candidate.url,
        models=models,
        problem="" if models else "lists no model of text",
        names_needed=not (own and len(entries) == 1 and not routes),
        manages=routes or loaded.manages,
        left_out=left_out + len(found) - len(models),
    )


def _status(entry: "JsonObject", loaded: "LoadedModels") -> ModelStatus:

    told = object_at(entry, "status")
    if told:
        if told.get("failed") is True:
            return ModelStatus.FAILED
        return _STATUSES.get(text_at(told, "value"), ModelStatus.UNKNOWN)
    if not loaded.program:
        return ModelStatus.UNKNOWN
    return ModelStatus.LOADED if text_at(entry, "id") in loaded.contexts else ModelStatus.UNLOADED


def _model(entry: "JsonObject", loaded: "LoadedModels") -> ListedModel | None:

    name = text_at(entry, "id")
    # A name goes into a settings file and into requests: one that would have to be changed for it is not offered.
    if not name or name != sanitize_line(name, _NAME_CHARS) or any(each in name.lower() for each in _NO_TEXT):
        return None
    places = (object_at(entry, "meta"), entry)
    found = (number for place in places for key in _CONTEXT_KEYS if (number := number_at(place, key)))
    return ListedModel(name, loaded.contexts.get(name, 0) or next(found, 0), _status(entry, loaded))


async def _get(endpoint: "Endpoint", path: str, deadline: float) -> "Reply":
    """Return the reply to a request, of its body so much as a list of models may have."""
    from agent_workbench.adapters.llama_cpp.http_endpoint import FixedDeadline, Reply

    async with endpoint.stream("GET", path, None, FixedDeadline(deadline)) as streamed:
        body = bytearray()
        while len(body) <= _LISTED_BYTES and (chunk := await streamed.next()):
            body += chunk
        return Reply(streamed.status, bytes(body[:_LISTED_BYTES]))


class ServedModels:
    """Models of the server at `url`, which the settings call `name`; `on_status` is told what takes time."""

    def __init__(self, url: str, name: str, on_status: OnStatus, *, api_key: str = "") -> None:
        self._endpoint = Endpoint(url, api_key)
        self._name = name
        self._on_status = on_status

    async def list(self) -> FoundServer:
        """Return the server with its models; `problem` says why it lists none. Loads nothing."""
        try:
            return await self._listed(self._now() + LIST_SECONDS)
        except ModelError as error:
            return FoundServer("", self._endpoint.address, problem=str(error), endpoint=self._name)

    async def load(self, model: str) -> ListedModel:
        """Load a model and return it when it is in memory; raise `ModelError`."""
        deadline = self._now() + LOAD_SECONDS
        server, listed = await self._found(model)
        if listed.status in _IN_MEMORY:
            return listed
        self._on_status(f"the server at {server.url} loads {listed.name}")
        if server.program == OLLAMA:
            await self._checked(await load_model(self._endpoint, listed.name, LoadedContext(program=OLLAMA), deadline))
        elif server.program == LM_STUDIO:
            await self._post("/api/v1/models/load", {"model": listed.name}, deadline)
        elif listed.status is not ModelStatus.LOADING:
            await self._post("/models/load", {"model": listed.name}, deadline)
        return await self._becomes(listed.name, _IN_MEMORY, deadline)

    async def unload(self, model: str) -> None:
        """Unload a model, and return when it is no longer in memory; raise `ModelError`."""
        deadline = self._now() + _UNLOAD_SECONDS
        server, listed = await self._found(model)
        if listed.status in {ModelStatus.UNLOADED, ModelStatus.FAILED}:
            return
        if server.program == OLLAMA:
            await self._post("/api/generate", {"model": listed.name, "keep_alive": 0, "stream": False}, deadline)
        elif server.program == LM_STUDIO:
            for instance in await instances_of(self._endpoint, listed.name, deadline):
                await self._post("/api/v1/models/unload", {"instance_id": instance}, deadline)
        else:
            await self._post("/models/unload", {"model": listed.name}, deadline)
        await self._becomes(listed.name, frozenset({ModelStatus.UNLOADED, ModelStatus.FAILED}), deadline)

    async def close(self) -> None:
        """Close the connection."""
        await self._endpoint.close()

    async def _listed(self, deadline: float) -> FoundServer:
        candidate = ServerCandidate("", self._endpoint.address)
        server = await ask_server(self._endpoint, candidate, deadline)
        if server is None:
            raise ModelRefused(
                f"the server at {self._endpoint.address} does not list its models", advice="check model.url"
            )
        return replace(server, endpoint=self._name)

    async def _found(self, model: str) -> tuple[FoundServer, ListedModel]:
        """Return the server and its model; raise `ModelRefused` if it has none, or loads none on request."""
        server = await self._listed(self._now() + LIST_SECONDS)
        listed = server.model(model)
        if server.problem:
            raise ModelUnavailable(f"the server at {server.url}: {server.problem}")
        if listed is None:
            raise ModelRefused(
                f"the server at {server.url} has no model {sanitize_line(model, 120)!r}",
                advice="`agent model served` shows its models",
            )
        if not server.manages:
            raise ModelRefused(
                f"the server at {server.url} loads and unloads no models on request",
                advice="llama.cpp's router (llama-server without a model), Ollama, and LM Studio from 0.4 on do",
            )
        return server, listed

    async def _becomes(self, model: str, wanted: frozenset[ModelStatus], deadline: float) -> ListedModel:
        """Wait until a model has a wanted status; raise `ModelUnavailable` if it failed, or not in time."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            listed = (await self._listed(min(self._now() + LIST_SECONDS, deadline))).model(model)
            if listed is not None and listed.status in wanted:
                return listed
            if listed is None or listed.status is ModelStatus.FAILED:
                raise ModelUnavailable(
                    f"the server at {self._endpoint.address} could not load {model}",
                    advice="check the server's log: there may be too little memory for it",
                )
            if self._now() + pause >= deadline:
                raise ModelUnavailable(
                    f"at the server at {self._endpoint.address} {model} is {listed.status} after all the time it had",
                    advice="check the server's log",
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)

    async def _post(self, path: str, body: Mapping[str, object], deadline: float) -> None:
        await self._checked(await self._endpoint.post(path, body, deadline))

    async def _checked(self, reply: Reply | None) -> None:
        """Raise the error in a reply."""
        if reply is not None and not reply.ok:
            raise model_error(self._endpoint.fault(reply), self._endpoint.address)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
