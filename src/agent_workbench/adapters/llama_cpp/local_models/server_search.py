"""Search for model servers on this machine, at the ports where they usually listen."""

import asyncio
import contextlib
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.local_models.found_models import FoundServer, ListedModel
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.system.loopback import is_loopback

if TYPE_CHECKING:
    from agent_workbench.adapters.llama_cpp.http_client.endpoint import Endpoint, Reply
    from agent_workbench.adapters.llama_cpp.http_client.json_values import JsonObject

SECONDS = 1.0
"""Longest time for the answers, whatever the servers do."""
CONNECT_SECONDS = 0.3
_LISTED_BYTES = 256 * 1024
_MOST_MODELS = 20
_NAME_CHARS = 120
_NO_TEXT = ("embed", "rerank", "whisper", "clip-")
_CONTEXT_KEYS = ("n_ctx", "max_model_len", "max_context_length", "context_length")
_LLAMA_CPP = "llamacpp"
_CLIENT = "agent_workbench.adapters.llama_cpp.http_client.endpoint"
_KEY_WANTED = frozenset({401, 403})


class ServerCandidate(Struct, frozen=True):
    """A program and the address where it usually listens."""

    program: str
    url: str


USUAL_SERVERS = (
    ServerCandidate("llama-server", "http://127.0.0.1:8080"),
    ServerCandidate("Ollama", "http://127.0.0.1:11434"),
    ServerCandidate("LM Studio", "http://127.0.0.1:1234"),
    ServerCandidate("vLLM", "http://127.0.0.1:8000"),
)


def candidates(environ: Mapping[str, str]) -> tuple[ServerCandidate, ...]:
    """Return the usual servers, with Ollama where `OLLAMA_HOST` has it, if that is this machine."""
    said = environ.get("OLLAMA_HOST", "").strip()
    with contextlib.suppress(ValueError):
        parts = urlsplit(said if "//" in said else f"http://{said}")
        host = "127.0.0.1" if parts.hostname == "0.0.0.0" else parts.hostname or ""  # noqa: S104 - compared, not bound
        if said and parts.scheme == "http" and is_loopback(host):
            shown = f"[{host}]" if ":" in host else host
            moved = ServerCandidate("Ollama", f"http://{shown}:{parts.port or 11434}")
            return tuple(moved if each.program == "Ollama" else each for each in USUAL_SERVERS)
    return USUAL_SERVERS


async def find_servers(among: Sequence[ServerCandidate], seconds: float = SECONDS) -> tuple[FoundServer, ...]:
    """Return those of the candidates that answer like a model server within `seconds`, in their order."""
    listening = await asyncio.gather(*(_listens(each.url) for each in among))
    there = [each for each, listens in zip(among, listening, strict=True) if listens]
    if not there:
        return ()
    # Loaded only for somebody, and before the time of their answers begins.
    await asyncio.to_thread(importlib.import_module, _CLIENT)
    deadline = asyncio.get_running_loop().time() + seconds
    found = await asyncio.gather(*(_ask(each, deadline) for each in there))
    return tuple(each for each in found if each is not None)


async def _listens(url: str) -> bool:
    """Return True if something takes connections there."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _ask(candidate: ServerCandidate, deadline: float) -> FoundServer | None:
    """Return what a server lists; None for another kind of server, and for one that is not done in time."""
    from agent_workbench.adapters.llama_cpp.http_client.endpoint import Endpoint

    endpoint = Endpoint(candidate.url)
    try:
        reply = await _get(endpoint, "/v1/models", deadline)
    except WorkbenchError:
        return None
    finally:
        await endpoint.close()
    if reply.status in _KEY_WANTED:
        problem = "wants an API key; set model.url and model.api_key_env"
        return FoundServer(candidate.program, candidate.url, problem=problem)
    if endpoint.fault(reply).is_loading:
        return FoundServer(candidate.program, candidate.url, problem="is still loading its model")
    return _listed(candidate, reply)


def _listed(candidate: ServerCandidate, reply: "Reply") -> FoundServer | None:
    from agent_workbench.adapters.llama_cpp.http_client.json_values import list_at, text_at

    said = reply.json if reply.ok else None
    if said is None or not isinstance(said.get("data"), list):
        return None
    entries = [entry for entry in list_at(said, "data") if isinstance(entry, dict)][:_MOST_MODELS]
    own = any(text_at(entry, "owned_by") == _LLAMA_CPP for entry in entries)
    models = tuple(model for entry in entries if (model := _model(entry)) is not None)
    problem = "" if models else "lists no model of text"
    program = "llama-server" if own else candidate.program
    return FoundServer(program, candidate.url, models, problem, names_needed=not (own and len(entries) == 1))


def _model(entry: "JsonObject") -> ListedModel | None:
    from agent_workbench.adapters.llama_cpp.http_client.json_values import number_at, object_at, text_at

    name = text_at(entry, "id")
    # A name goes into a settings file and into requests: one that would have to be changed for it is not offered.
    if not name or name != sanitize_line(name, _NAME_CHARS) or any(each in name.lower() for each in _NO_TEXT):
        return None
    places = (object_at(entry, "meta"), entry)
    found = (number for place in places for key in _CONTEXT_KEYS if (number := number_at(place, key)))
    return ListedModel(name, next(found, 0))


async def _get(endpoint: "Endpoint", path: str, deadline: float) -> "Reply":
    """Return the reply to a request, of its body so much as a list of models may have."""
    from agent_workbench.adapters.llama_cpp.http_client.endpoint import FixedDeadline, Reply

    async with endpoint.stream("GET", path, None, FixedDeadline(deadline)) as streamed:
        body = bytearray()
        while len(body) <= _LISTED_BYTES and (chunk := await streamed.next()):
            body += chunk
        return Reply(streamed.status, bytes(body[:_LISTED_BYTES]))
