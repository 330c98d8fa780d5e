"""Creation of the model of one endpoint from its settings."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.shared_models import SharedModels
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.errors import ModelError, ModelUnavailable
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.ports.machine import Machine
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings.models import ModelSettings
from agent_workbench.core.task_estimates import Complexity

URL_VARIABLE = "LLAMA_SERVER_URL"
SERVER_VARIABLE = "LLAMA_SERVER"


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
