"""Models of one server: listed, loaded and unloaded by the routes of llama.cpp's router, Ollama and LM Studio."""

import asyncio
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.context_size import (
    LM_STUDIO,
    OLLAMA,
    LoadedContext,
    instances_of,
    load_model,
)
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint, Reply
from agent_workbench.adapters.llama_cpp.server_errors import model_error
from agent_workbench.adapters.llama_cpp.server_search import ServerCandidate, ask_server
from agent_workbench.core.errors import ModelError, ModelRefused, ModelUnavailable
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.text.sanitizer import sanitize_line

LIST_SECONDS = 5.0
"""Longest time for a list of models: a server answers it at once, even while it loads one."""
LOAD_SECONDS = 600.0
_UNLOAD_SECONDS = 30.0
_FIRST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 0.1, 2.0
_IN_MEMORY = frozenset({ModelStatus.LOADED, ModelStatus.SLEEPING})

OnStatus = Callable[[str], None]


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
