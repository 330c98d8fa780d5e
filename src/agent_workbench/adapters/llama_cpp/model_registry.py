"""Registry of model endpoints by role, made when the first is asked for: one server a model file."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink, StatusRelay
from agent_workbench.adapters.llama_cpp.endpoint_chain import ChainedModel
from agent_workbench.adapters.llama_cpp.endpoint_order import quota_of
from agent_workbench.adapters.llama_cpp.gguf_header import read_model_file
from agent_workbench.adapters.llama_cpp.model_factory import (
    UnusableModel,
    address_of,
    key_of,
    model_from_settings,
)
from agent_workbench.adapters.llama_cpp.priced_model import PricedModel
from agent_workbench.adapters.llama_cpp.served_models import ServedModels
from agent_workbench.adapters.llama_cpp.shared_models import SharedModels
from agent_workbench.adapters.llama_cpp.spending_ledger import LocalSpending, SpendingLedger
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.diagnostics import endpoint_named
from agent_workbench.core.errors import ConfigError, ModelRefused
from agent_workbench.core.local_models import FoundServer, ListedModel
from agent_workbench.core.model import Purpose
from agent_workbench.core.ports.machine import Machine
from agent_workbench.core.ports.model import Model, Spending
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import SHORT_FORM, EndpointSettings, ModelSettings

ONE = (SHORT_FORM,)
SERVERS_ADVICE = "`agent model served` shows the servers whose models can be chosen; those with a price are left out"


class ModelRegistry:
    """The endpoints of `settings`, each created once, at its first use. `shared` holds our own servers.

    `environ` has the API keys, `log` is the log of our own server, `state_dir` has the spending ledger, unless
    `spending` is another one.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        log: Path,
        state_dir: Path,
        on_status: OnStatus,
        shared: SharedModels | None = None,
        spending: Spending | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._log = log
        self.spending: Spending = spending or LocalSpending(SpendingLedger(state_dir))
        self._on_status = on_status
        self._shared = shared
        self._machine = machine
        self._links: dict[tuple[str, str], ChainLink] = {}
        self._made: list[Model] = []
        self._served: dict[tuple[str, str], tuple[Model, StatusRelay]] = {}

    def for_roles(self) -> Model:
        """Return the model of all roles; raise `ConfigError` if the only endpoint has an invalid address or key."""
        chains = {purpose: self._settings.chain(purpose) for purpose in Purpose}
        if set(chains.values()) == {ONE}:
            # One model for everything needs no chain.
            return model_from_settings(
                self._settings.model, self._environ, self._log, self._on_status, self._shared, self._machine
            )
        return ChainedModel(
            {purpose: tuple(map(self._link, chain)) for purpose, chain in chains.items()},
            self._on_status,
            quota=quota_of(self.spending, self._settings.cost_cap_daily),
        )

    def for_one(self, name: str, model: str = "") -> Model:
        """Return the model of one endpoint by its name, or another `model` of its server, with its spending cap."""
        quota = quota_of(self.spending, self._settings.cost_cap_daily)
        return ChainedModel({Purpose.EXECUTOR: (self._link(name, model),)}, self._on_status, quota=quota)

    def served(self) -> Mapping[str, ServedModels]:
        """Return the servers whose models can be listed, loaded and chosen, by the name of an endpoint in a chain.

        An endpoint with a price is left out: its price is that of one model.
        """
        found: dict[str, ServedModels] = {}
        addresses: set[str] = set()
        for name in dict.fromkeys(name for purpose in Purpose for name in self._settings.chain(purpose)):
            endpoint = self._endpoint(name)
            meant = _as_model(endpoint, None)
            url = address_of(meant, self._environ) if endpoint.dollars_per_million_tokens.is_free else ""
            if url and url not in addresses:
                addresses.add(url)
                with suppress(ConfigError):  # whoever asks its model is told
                    found[name] = ServedModels(url, name, self._on_status, api_key=key_of(meant, self._environ))
        return found

    def looked_at(self, name: str) -> Model | None:
        """Return the model of one endpoint for inspection only: its answers would not be counted against the cap.

        Its server is not made to load a model, which may take longer than an inspection.
        None for a model file of our own server, which starts with the first request. Raises `ModelUnavailable` if there
        is no such file. Blocks.
        """
        endpoint = self._endpoint(name)
        if endpoint.path:
            read_model_file(Path(endpoint.path).expanduser())
            return None
        return self._model(name, endpoint, loads=False)[0]

    @property
    def log(self) -> Path:
        """Log file of the first of our own servers in the executor's chain."""
        chain = self._settings.chain(Purpose.EXECUTOR)
        served = (name for name in chain if self._endpoint(name).path)
        return self._log_of(next(served, SHORT_FORM))

    async def close(self) -> None:
        """Close the models that were created."""
        await asyncio.gather(*(model.close() for model in self._made))

    def _link(self, name: str, other: str = "") -> ChainLink:
        if (name, other) not in self._links:
            endpoint = self._endpoint(name)
            if other:
                endpoint = replace(endpoint, model=other)
            model, status_relay = self._model(name, endpoint)
            price = endpoint.dollars_per_million_tokens
            if not price.is_free:
                model = PricedModel(model, name, price, self._settings.cost_cap_daily, self.spending, self._on_status)
            self._links[name, other] = ChainLink(name, model, status_relay, price)
        return self._links[name, other]

    def _endpoint(self, name: str) -> EndpointSettings:
        endpoint = endpoint_named(self._settings, name)
        if endpoint is None:
            raise ConfigError(f"there is no endpoint {name!r}", advice="endpoints are named in .agent.yml")
        return endpoint

    def _model(self, name: str, endpoint: EndpointSettings, *, loads: bool = True) -> tuple[Model, StatusRelay]:
        shared = (endpoint.path, endpoint.server)
        if endpoint.path and shared in self._served:
            return self._served[shared]
        status_relay = StatusRelay(self._on_status)
        model = self._usable(name, endpoint, status_relay, loads=loads)
        self._made.append(model)
        if endpoint.path:
            self._served[shared] = model, status_relay
        return model, status_relay

    def _usable(self, name: str, endpoint: EndpointSettings, status_relay: StatusRelay, *, loads: bool = True) -> Model:
        key = endpoint.api_key_env
        if name != SHORT_FORM and key and not self._environ.get(key, "").strip():
            what = f"the environment variable {key} with the API key of {name} is not set"
            return UnusableModel(ModelRefused, what, f"set {key} where you start the workbench")
        try:
            return model_from_settings(
                _as_model(endpoint, self._context_tokens(endpoint)),
                self._environ,
                self._log_of(name),
                status_relay,
                self._shared,
                self._machine,
                loads=loads,
            )
        except ConfigError as error:
            return UnusableModel(ModelRefused, str(error), error.advice)

    def _context_tokens(self, endpoint: EndpointSettings) -> int | None:
        """Return the largest context size that endpoints with the same file set, None if none does."""
        named = (endpoint_named(self._settings, name) for name in (*dict(self._settings.endpoints), SHORT_FORM))
        same = (each for each in named if each and each.path == endpoint.path and each.server == endpoint.server)
        said = (each.context_tokens for each in same if endpoint.path and each.context_tokens)
        return max(said, default=endpoint.context_tokens)

    def _log_of(self, name: str) -> Path:
        return self._log if name == SHORT_FORM else self._log.with_stem(f"{self._log.stem}-{name}")


def _as_model(endpoint: EndpointSettings, context_tokens: int | None) -> ModelSettings:
    return ModelSettings(
        path=endpoint.path,
        url=endpoint.url,
        name=endpoint.model,
        server=endpoint.server,
        context_tokens=context_tokens,
        threads=endpoint.threads,
        gpu_layers=endpoint.gpu_layers,
        cache_type=endpoint.cache_type,
        api_key_env=endpoint.api_key_env,
    )


class RegisteredEndpoints:
    """Implements `core.ports.model.EndpointModels`; `wrap` is applied to each model."""

    def __init__(self, registry: Callable[[], ModelRegistry], wrap: Callable[[Model], Model]) -> None:
        self._make = registry
        self._wrap = wrap
        self._registry: ModelRegistry | None = None
        self._models: dict[tuple[str, str], Model] = {}
        self._served: Mapping[str, ServedModels] | None = None
        self._turn = asyncio.Lock()

    async def named(self, name: str, model: str = "") -> Model:
        async with self._turn:
            if (name, model) not in self._models:
                self._models[name, model] = await asyncio.to_thread(self._made, name, model)
            return self._models[name, model]

    async def servers(self) -> tuple[FoundServer, ...]:
        return tuple(await asyncio.gather(*(each.list() for each in (await self._all_served()).values())))

    async def load(self, endpoint: str, model: str) -> ListedModel:
        return await (await self._server(endpoint)).load(model)

    async def unload(self, endpoint: str, model: str) -> None:
        await (await self._server(endpoint)).unload(model)

    async def _server(self, endpoint: str) -> ServedModels:
        served = await self._all_served()
        if endpoint not in served:
            raise ConfigError(f"there is no server of an endpoint {endpoint!r}", advice=SERVERS_ADVICE)
        return served[endpoint]

    async def _all_served(self) -> Mapping[str, ServedModels]:
        async with self._turn:
            if self._served is None:
                self._served = await asyncio.to_thread(lambda: self._registered().served())
            return self._served

    def _made(self, name: str, model: str) -> Model:
        return self._wrap(self._registered().for_one(name, model))

    def _registered(self) -> ModelRegistry:
        if self._registry is None:
            self._registry = self._make()
        return self._registry

    async def close(self) -> None:
        closing: list[Model | ServedModels] = [*self._models.values(), *(self._served or {}).values()]
        await asyncio.gather(*(each.close() for each in closing))
