"""The port `EndpointModels` over the registry of endpoints, which is made when the first one is asked for."""

import asyncio
from collections.abc import Callable

from agent_workbench.adapters.llama_cpp.routing.model_registry import ModelRegistry
from agent_workbench.core.ports.model import Model


class RegisteredEndpoints:
    """Implements `core.ports.model.EndpointModels`; `wrap` is applied to each model."""

    def __init__(self, registry: Callable[[], ModelRegistry], wrap: Callable[[Model], Model]) -> None:
        self._make = registry
        self._wrap = wrap
        self._registry: ModelRegistry | None = None
        self._models: dict[str, Model] = {}
        self._turn = asyncio.Lock()

    async def named(self, name: str) -> Model:
        async with self._turn:
            if name not in self._models:
                self._models[name] = await asyncio.to_thread(self._made, name)
            return self._models[name]

    def _made(self, name: str) -> Model:
        if self._registry is None:
            self._registry = self._make()
        return self._wrap(self._registry.for_one(name))

    async def close(self) -> None:
        await asyncio.gather(*(model.close() for model in self._models.values()))
