"""Registry of model endpoints by role: the model of each is made from its settings when first asked for."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink, StatusRelay
from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.endpoint_chain import ChainedModel, quota_of
from agent_workbench.adapters.llama_cpp.gguf_files import read_model_file
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.model_servers import ServedModels
from agent_workbench.adapters.llama_cpp.priced_model import LocalSpending, PricedModel, SpendingLedger
from agent_workbench.adapters.llama_cpp.shared_models import SharedModels
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.diagnostics import endpoint_named
from agent_workbench.core.errors import ConfigError, ModelError, ModelRefused, ModelUnavailable
from agent_workbench.core.local_models import FoundServer, ListedModel
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.ports.machine import Machine
from agent_workbench.core.ports.model import Model, Spending
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import SHORT_FORM, EndpointSettings, ModelSettings
from agent_workbench.core.task_estimates import Complexity

ONE = (SHORT_FORM,)
SERVERS_ADVICE = "`agent model served` shows the servers whose models can be chosen; those with a price are left out"

URL_VARIABLE = "LLAMA_SERVER_URL"
SERVER_VARIABLE = "LLAMA_SERVER"


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


def model_from_settings(
    settings: ModelSettings,
    environ: Mapping[str, str],
    log_path: Path,
    on_status: OnStatus,
    shared: SharedModels | None = None,
    machine: Machine | None = None,
    *,
    loads: bool = True,
) -> Model:
    """Return the model at `url`, else one with our own server for `path`, else the one at `LLAMA_SERVER_URL`.

    Our own server is one of `shared` and logs to `log_path`; `on_status` gets status lines while a request waits.
    Nothing is started or asked before the first request, which raises `ModelUnavailable` if no model is configured.
    Without `loads` a server at an address is only asked about a model, and loads none for it.
    Raises `ConfigError` for an invalid address or key.
    """
    if url := address_of(settings, environ):
        turns = shared.turns(url) if shared is not None else None
        return LlamaCppModel(
            url,
            api_key=key_of(settings, environ),
            model_name=settings.name,
            on_status=on_status,
            turns=turns,
            context_tokens=settings.context_tokens or 0,
            loads=loads,
        )
    if settings.path:

        def make(say: OnStatus) -> EmbeddedModel:
            server = embedded_server(settings, environ, log_path, say, machine)
            return EmbeddedModel(server, model_name=settings.name, on_status=say)

        served = settings.path, settings.serving
        return shared.take(served, make, on_status) if shared is not None else make(on_status)
    return unconfigured()


def address_of(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """Return the address of the server that is asked, empty if it is one of ours or there is none."""
    # A file in the settings or a flag has priority; the variable may be set for other programs.
    return settings.url or ("" if settings.path else environ.get(URL_VARIABLE, ""))


def key_of(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """Return the API key of the server, empty if it has none."""
    return environ.get(settings.api_key_env, "").strip() if settings.api_key_env else ""


def embedded_server(
    settings: ModelSettings,
    environ: Mapping[str, str],
    log_path: Path,
    on_status: OnStatus,
    machine: Machine | None = None,
) -> EmbeddedServer:
    """Return the server for `settings.path` on this `machine`, not yet started."""
    return EmbeddedServer(
        Path(settings.path),
        log=log_path,
        environ=environ,
        serving=replace(settings.serving, server=settings.server or environ.get(SERVER_VARIABLE, "")),
        machine=machine,
        on_status=on_status,
    )


class UnusableModel:
    """The port `Model` where none can be used; every request raises the reason."""

    def __init__(self, error: type[ModelError], what: str, advice: str) -> None:
        self._error = error
        self._what = what
        self._advice = advice

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        raise self._refusal()

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        for item in self._no_answer(request):
            yield item

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return (0,) * len(texts)

    async def close(self) -> None:
        return None

    def _no_answer(self, _: ModelRequest) -> Sequence[AnswerItem]:
        raise self._refusal()

    def _refusal(self) -> ModelError:
        refusal = self._error(self._what, advice=self._advice)
        # Settings are read once, at the start, so a retry cannot help.
        refusal.lasting = True
        return refusal


def unconfigured() -> UnusableModel:
    """Return the model for settings without one."""
    advice = (
        "`agent init` finds models of this machine, `agent model pull OWNER/NAME` brings one; "
        "or set model.path (a GGUF file) or model.url; then start again"
    )
    return UnusableModel(ModelUnavailable, "no model is configured", advice)
