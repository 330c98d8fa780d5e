"""Makes the model of one endpoint."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from agent_workbench.adapters.llama_cpp.http_client.backoff import OnStatus
from agent_workbench.adapters.llama_cpp.http_client.client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.server.embedded import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.server.shared_models import SharedModels
from agent_workbench.core.errors import ModelError, ModelUnavailable
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.model_settings import ModelSettings
from agent_workbench.core.ports.services import Model

URL_VARIABLE = "LLAMA_SERVER_URL"
SERVER_VARIABLE = "LLAMA_SERVER"


def model_from_settings(
    settings: ModelSettings,
    environ: Mapping[str, str],
    log_path: Path,
    on_status: OnStatus,
    shared: SharedModels | None = None,
) -> Model:
    """Return the model at `url`, or one that serves `path` itself, or with neither set the one at `LLAMA_SERVER_URL`.

    A server of ours is one of `shared`, and writes to `log_path`; `on_status` gets a line on what is waited for.
    Nothing is started and nobody asked before the first request; with no model configured that one raises
    `ModelUnavailable`. Raises `ConfigError` for an address or a key that cannot be used.
    """
    # A file that was named, in the settings or by a flag, was meant; the variable may be there for other programs.
    url = settings.url or ("" if settings.path else environ.get(URL_VARIABLE, ""))
    if url:
        key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
        return LlamaCppModel(url, api_key=key.strip(), model_name=settings.name, on_status=on_status)
    if settings.path:

        def make(say: OnStatus) -> EmbeddedModel:
            server = embedded_server(settings, environ, log_path, say)
            return EmbeddedModel(server, model_name=settings.name, on_status=say)

        served = settings.path, settings.server, settings.context_tokens
        return shared.take(served, make, on_status) if shared is not None else make(on_status)
    return unconfigured()


def embedded_server(
    settings: ModelSettings, environ: Mapping[str, str], log_path: Path, on_status: OnStatus
) -> EmbeddedServer:
    """Return the server for `settings.path`, not yet started."""
    return EmbeddedServer(
        Path(settings.path),
        log=log_path,
        environ=environ,
        context_tokens=settings.context_tokens,
        server=settings.server or environ.get(SERVER_VARIABLE, ""),
        on_status=on_status,
    )


class UnusableModel:
    """Stands where no model can be asked, and says why to whoever tries."""

    def __init__(self, error: type[ModelError], what: str, advice: str) -> None:
        self._error = error
        self._what = what
        self._advice = advice

    async def observe(self, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
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
        # Settings are read once: what was trusted at the start is what counts.
        refusal.lasting = True
        return refusal


def unconfigured() -> UnusableModel:
    """Return what stands where no model was named."""
    advice = "set model.path (a GGUF file) or model.url in .agent.yml, then start again"
    return UnusableModel(ModelUnavailable, "no model is configured", advice)
