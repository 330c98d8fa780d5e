"""Models found on this machine: those that can be used, and a line for each."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.local_models.server_options import ServerOptions
from agent_workbench.core.text.amounts import bytes_text

PULL_ADVICE = (
    "`agent model pull OWNER/NAME` brings a GGUF file of a hub (or put one into ~/models), or start a llama-server; "
    "then run this again"
)
NOTHING_FOUND = "no server answers at the usual ports, and no GGUF file is in the usual folders"


class ModelStatus(StrEnum):
    """Status of a model at its server; `unknown`: the server does not say it."""

    UNKNOWN = "unknown"
    UNLOADED = "not loaded"
    LOADING = "loading"
    LOADED = "loaded"
    SLEEPING = "sleeping"
    FAILED = "failed to load"


class ListedModel(Struct, frozen=True):
    """A model that a server lists, its context there (0: unknown), and whether it is in memory."""

    name: str
    context_tokens: int = 0
    status: ModelStatus = ModelStatus.UNKNOWN


class FoundServer(Struct, frozen=True):
    """A server on this machine: what usually is at its port, its address, its models of text.

    `problem` says why none of them can be used now. `names_needed`: it wants a model's name in each request. `manages`:
    it loads and unloads models on request. It lists `left_out` more models. `endpoint` is its name in the settings,
    empty for a server that was only found.
    """

    program: str
    url: str
    models: tuple[ListedModel, ...] = ()
    problem: str = ""
    names_needed: bool = True
    manages: bool = False
    left_out: int = 0
    endpoint: str = ""

    def model(self, name: str) -> ListedModel | None:
        """Return the listed model with this name; Ollama's `:latest` may be left out."""
        same = {name, f"{name}:latest"}
        return next((each for each in self.models if each.name in same), None)

    def lines(self) -> Iterator[str]:
        """Yield a line for each model with its status, or one that says why there is none."""
        by = f"{self.program} at {self.url}" if self.program else self.url
        if self.problem:
            yield f"{by}: {self.problem}"
            return
        for model in self.models:
            status = "" if model.status is ModelStatus.UNKNOWN else f"  {model.status}"
            yield f"{_with_context(model)}{status}  {by}"
        if self.left_out:
            yield f"and {self.left_out:,} more  {by}"


class FoundFile(Struct, frozen=True):
    """A model in a GGUF file (the first part of a split one), and how it would be served here.

    `left_out` says why it is no model that answers; it has no options then.
    """

    path: str
    name: str
    size: int
    options: ServerOptions = ServerOptions()
    left_out: str = ""

    @property
    def usable(self) -> bool:
        """True if it can answer on this machine."""
        return not self.left_out and self.options.fits


class ModelChoice(Struct, frozen=True):
    """A model that can be used: the values of `model.url` and `model.name`, or of `model.path`, with the reasons."""

    label: str
    url: str = ""
    name: str = ""
    path: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """The settings below `model`, without the empty ones."""
        said = {"url": self.url, "name": self.name, "path": self.path}
        return {key: value for key, value in said.items() if value}


class FoundModels(Struct, frozen=True):
    """The servers and files that were found. `cut`: not all folders were searched."""

    servers: tuple[FoundServer, ...] = ()
    files: tuple[FoundFile, ...] = ()
    cut: bool = False

    @property
    def choices(self) -> tuple[ModelChoice, ...]:
        """The models that can be used, best first: those that run, then the largest file with the largest context."""
        running = (_served(server, model) for server in self.servers for model in server.models if not server.problem)
        usable = (file for file in self.files if file.usable)
        files = sorted(usable, key=lambda file: (-_comfort(file), -file.size, file.path))
        return (*running, *map(_filed, files))

    def lines(self, named: Mapping[str, str] | None = None) -> Iterator[str]:
        """Yield a line for each server and each file; `named` are other names of files, by path."""
        for server in self.servers:
            names = ", ".join(_with_context(model) for model in server.models)
            yield f"found   {server.program} at {server.url}: {server.problem or names}"
        for file in self.files:
            name = (named or {}).get(file.path, f"found   {file.name}")
            yield f"{name}  {bytes_text(file.size)}  {file.path}  {_fit_words(file)}"
        if self.cut:
            yield "not all folders were searched: they hold too much"


def _comfort(file: FoundFile) -> int:
    """Return the context as far as it matters for a choice."""
    return min(file.options.context_tokens, 16_384)


def _fit_words(file: FoundFile) -> str:
    if file.left_out:
        return f"left out: {file.left_out}"
    if not file.options.fits:
        return file.options.reasons[-1] if file.options.reasons else "does not fit"
    return f"fits, context {file.options.context_tokens:,}"


def _with_context(model: ListedModel) -> str:
    return f"{model.name} (context {model.context_tokens:,})" if model.context_tokens else model.name


def _served(server: FoundServer, model: ListedModel) -> ModelChoice:
    label = f"{_with_context(model)}, served by {server.program} at {server.url}"
    return ModelChoice(label, url=server.url, name=model.name if server.names_needed else "")


def _filed(file: FoundFile) -> ModelChoice:
    label = f"{file.name}, {bytes_text(file.size)}, served by the workbench"
    return ModelChoice(label, path=file.path, reasons=file.options.reasons)
