"""Models on this machine: files and servers that were found, and the options that a server is started with."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.settings.models import USUAL_CONTEXT_TOKENS, CacheType, ServingSettings
from agent_workbench.core.text.amounts import bytes_text
from agent_workbench.core.workers import MachineResources

# A pooling type makes a model one of embeddings or of rankings: it returns vectors, not text.
_NO_POOLING = 0
_NO_LANGUAGE_MODEL = {
    "adapter": "it is an adapter for another model",
    "imatrix": "it holds measurements for quantization",
    "mmproj": "it is a projector for images, part of another model",
    "vocab": "it is a vocabulary without weights",
}
_IMAGES = frozenset({"clip", "mllama", "mtmd"})
_BERT = "bert"

CONTEXTS = (32_768, 24_576, USUAL_CONTEXT_TOKENS, 12_288, 8_192, 4_096)
"""Contexts that are tried, the largest first. A larger one makes each full prompt slower than it helps."""
TINY_BYTES = 50_000_000
"""Size below which threads of a model only wait for each other."""
COMPUTE_BYTES = 500_000_000
PROMPT_CACHE_BYTES = 2 << 30
"""Most memory for prompts of other conversations that the server keeps."""
_BYTES_PER_NUMBER = {CacheType.F16: 2.0, CacheType.Q8_0: 34 / 32, CacheType.Q4_0: 18 / 32}
_GIB = 1 << 30
_RAM_RESERVE, _RAM_RESERVE_SHARE = _GIB, 0.1
_VRAM_RESERVE, _VRAM_RESERVE_SHARE = 3 * _GIB // 4, 0.05
# Share of the memory that counts as free where the system does not say how much is.
_GUESSED_SHARE = 0.7

PULL_ADVICE = (
    "`agent model pull OWNER/NAME` brings a GGUF file of a hub (or put one into ~/models), or start a llama-server; "
    "then run this again"
)
NOTHING_FOUND = "no server answers at the usual ports, and no GGUF file is in the usual folders"


class GgufFacts(Struct, frozen=True):
    """Architecture, kind and sizes of a model; 0 or empty is unknown.

    `kv_heads` has the number of heads in the KV cache for each layer (0: the layer needs no cache). A head stores
    `key_length` and `value_length` numbers for each token. `trained_tokens` is the context of the training. `experts`
    is the number of each layer's experts. A `recurrent` model has layers with a state in place of a cache. `sampling`
    are the parameters that the file recommends, by llama.cpp's names.
    """

    architecture: str = ""
    name: str = ""
    kind: str = ""
    tensors: int = 0
    layers: int = 0
    trained_tokens: int = 0
    kv_heads: tuple[int, ...] = ()
    key_length: int = 0
    value_length: int = 0
    pooling: int = _NO_POOLING
    experts: int = 0
    recurrent: bool = False
    sampling: tuple[tuple[str, float], ...] = ()

    @property
    def cached_numbers(self) -> int:
        """Numbers that the KV cache stores for each token, at most; 0 if the header does not say it.

        Layers with a sliding window count as if they had none.
        """
        return sum(self.kv_heads) * (self.key_length + self.value_length)

    @property
    def no_language_model(self) -> str:
        """Reason why this file cannot answer, empty if it can."""
        if self.kind in _NO_LANGUAGE_MODEL:
            return _NO_LANGUAGE_MODEL[self.kind]
        if self.architecture in _IMAGES:
            return _NO_LANGUAGE_MODEL["mmproj"]
        if self.pooling or _BERT in self.architecture:
            return "it makes embeddings, no text"
        return "" if self.tensors else _NO_LANGUAGE_MODEL["vocab"]


class ServerOptions(Struct, frozen=True):
    """Options of a server, and a line for each that says why it has this value.

    `threads` 0 and `gpu_layers` None leave the choice to llama.cpp. `fits` is False if the machine has too little free
    memory; the last reason says so.
    """

    context_tokens: int = USUAL_CONTEXT_TOKENS
    threads: int = 0
    gpu_layers: int | None = None
    cache_type: CacheType = CacheType.F16
    prompt_cache_bytes: int = PROMPT_CACHE_BYTES
    fits: bool = True
    reasons: tuple[str, ...] = ()


class _Model(Struct, frozen=True):
    """A file of `size` bytes, and the memory it needs."""

    facts: GgufFacts
    size: int

    def cache(self, tokens: int, kind: CacheType) -> float:
        """Return the bytes of a KV cache."""
        return self.facts.cached_numbers * tokens * _BYTES_PER_NUMBER[kind]

    def needs(self, tokens: int, kind: CacheType) -> float:
        """Return the bytes of weights, KV cache and computation."""
        return self.size + COMPUTE_BYTES + self.cache(tokens, kind)

    def largest(self, contexts: Sequence[int], kind: CacheType, room: float) -> int:
        """Return the largest context with which it fits into `room` bytes, 0 if it fits with none."""
        return next((each for each in contexts if self.needs(each, kind) <= room), 0)


def server_options(facts: GgufFacts, size: int, machine: MachineResources, said: ServingSettings) -> ServerOptions:
    """Return the options for a file of `size` bytes; what the user `said` is taken as it is.

    A server of the user's own is expected to use the GPUs of `machine`; the built-in one uses none. It is not expected
    to compress its cache, which older builds refuse.
    """
    model = _Model(facts, size)
    free, vram = _free_memory(machine), _free_vram(machine) if said.server else 0.0
    ram = max(0.0, free - max(_RAM_RESERVE, free * _RAM_RESERVE_SHARE))
    contexts = (said.context_tokens,) if said.context_tokens else _contexts(facts.trained_tokens)
    if not (free and facts.cached_numbers):
        tokens, kind, fits = said.context_tokens or min(contexts[0], USUAL_CONTEXT_TOKENS), said.cache_type, True
        kind = CacheType.F16 if kind is CacheType.AUTO else kind
        fits = not free or size + COMPUTE_BYTES <= ram + vram
    else:
        exact = said.server and said.cache_type is CacheType.AUTO
        wanted = CacheType.F16 if exact else said.cache_type
        tokens, kind, fits = _fitted(model, contexts, wanted, (vram, ram + vram))
    layers = _gpu_layers(model, tokens, kind, vram, said)
    threads = said.threads or _threads(size, machine)
    left = ram + vram - model.needs(tokens, kind)
    reasons = (
        _context_reason(model, tokens, kind, free + vram, said),
        *_cache_type_reason(model, tokens, kind, said),
        _threads_reason(threads, size, machine, said),
        *_gpu_reason(layers, facts, vram, said),
        *_model_reasons(facts),
        *(() if fits else (_too_large(model, tokens, kind, ram + vram),)),
    )
    cache = PROMPT_CACHE_BYTES if not free else int(min(PROMPT_CACHE_BYTES, max(0.0, left)))
    return ServerOptions(tokens, threads, layers, kind, cache, fits, reasons)


def _fitted(
    model: _Model, contexts: Sequence[int], wanted: CacheType, rooms: tuple[float, float]
) -> tuple[int, CacheType, bool]:
    """Return context, type of the cache, and True if they fit into the GPUs alone, or into all memory."""
    kinds = (CacheType.F16, CacheType.Q8_0) if wanted is CacheType.AUTO else (wanted,)
    enough = min(contexts[0], USUAL_CONTEXT_TOKENS)
    best, chosen = 0, kinds[0]
    for room in rooms:
        for kind in kinds:
            tokens = model.largest(contexts, kind, room)
            if tokens >= enough:
                return tokens, kind, True
            if tokens > best:
                best, chosen = tokens, kind
    return (best, chosen, True) if best else (contexts[-1], kinds[-1], False)


def _contexts(trained: int) -> tuple[int, ...]:
    """Return the contexts to try for a model that was trained for `trained` tokens (0: unknown)."""
    within = tuple(each for each in CONTEXTS if not trained or each <= trained)
    return (trained, *within) if 0 < trained < CONTEXTS[0] and trained not in within else within


def _gpu_layers(model: _Model, tokens: int, kind: CacheType, vram: float, said: ServingSettings) -> int | None:
    """Return the number of layers that fit into the GPUs, one more than there are for all with the output layer.

    None leaves them to llama.cpp: of a mixture of experts that does not fit, its `--fit` keeps only experts in memory,
    which is faster than whole layers there.
    """
    if said.gpu_layers is not None or not (vram and model.facts.layers):
        return said.gpu_layers
    parts = model.facts.layers + 1
    each = (model.size + model.cache(tokens, kind)) / parts
    fitting = min(parts, int(max(0.0, vram - COMPUTE_BYTES) / each))
    return None if model.facts.experts and fitting < parts else fitting


def _threads(size: int, machine: MachineResources) -> int:
    if size < TINY_BYTES:
        return 1
    return min(machine.physical_cores or machine.cores, machine.cores)


def _free_memory(machine: MachineResources) -> float:
    """Return the free bytes of memory, 0 if unknown."""
    return (machine.memory_available_gb or machine.memory_total_gb * _GUESSED_SHARE) * _GIB


def _free_vram(machine: MachineResources) -> float:
    room = [each.vram_free_gb * _GIB * (1 - _VRAM_RESERVE_SHARE) - _VRAM_RESERVE for each in machine.gpus]
    used = [each for each in room if each > COMPUTE_BYTES]
    # Each card computes, and the need of a model includes this for one.
    return sum(used) - COMPUTE_BYTES * max(0, len(used) - 1)


def _context_reason(model: _Model, tokens: int, kind: CacheType, free: float, said: ServingSettings) -> str:
    trained = model.facts.trained_tokens
    if model.facts.cached_numbers and free:
        why = f"KV cache {_gb(model.cache(tokens, kind))} of {_gb(free)} free, beside {_gb(model.size)} of weights"
    elif free:
        why = "the file does not say how large its KV cache is"
    else:
        why = "how much memory is free is unknown here"
    why = f"set in the settings; {why}" if said.context_tokens else why
    return f"context {tokens:,}: {why}" + (f"; the model was trained for {trained:,}" if trained else "")


def _cache_type_reason(model: _Model, tokens: int, kind: CacheType, said: ServingSettings) -> tuple[str, ...]:
    if said.cache_type is not CacheType.AUTO:
        return (f"cache type {kind}: set in the settings",)
    if kind is CacheType.F16:
        return (f"cache type {kind}: exact",)
    saved = _gb(model.cache(tokens, CacheType.F16) - model.cache(tokens, kind))
    return (f"cache type {kind}: saves {saved} against f16, for the context; it needs flash attention (auto)",)


def _threads_reason(threads: int, size: int, machine: MachineResources, said: ServingSettings) -> str:
    if said.threads:
        return f"threads {threads}: set in the settings"
    if not threads:
        return "threads: left to llama.cpp, the cores are unknown"
    if size < TINY_BYTES:
        return "threads 1: more would only wait for each other in so small a model"
    limited = machine.cores < (machine.physical_cores or machine.cores)
    why = "as many cores as the container may use" if limited else "the physical cores"
    return f"threads {threads}: {why}" + (", which sleep while they wait for each other" if threads > 1 else "")


def _gpu_reason(layers: int | None, facts: GgufFacts, vram: float, said: ServingSettings) -> tuple[str, ...]:
    if said.gpu_layers is not None:
        return (f"GPU layers {layers}: set in the settings",)
    if layers is None and vram and facts.experts:
        return (f"GPU layers: left to llama.cpp's --fit, which keeps experts (of {facts.experts}) in memory",)
    if layers is None:
        return ("GPU layers: left to llama.cpp",)
    share = "all" if layers > facts.layers else f"{layers} of {facts.layers}"
    return (f"GPU layers {share}: {_gb(vram)} of GPU memory are free",)


def _model_reasons(facts: GgufFacts) -> Iterator[str]:
    """Yield what is left to llama.cpp because of the model."""
    if facts.recurrent:
        yield "checkpoints: llama.cpp's own, from which it goes on where prompts part: a state cannot be rolled back"
    if facts.sampling:
        said = ", ".join(f"{name} {value:g}" for name, value in facts.sampling)
        yield f"sampling: the file recommends {said}; the server uses what a request does not state"


def _too_large(model: _Model, tokens: int, kind: CacheType, room: float) -> str:
    return (
        f"does not fit: it needs {_gb(model.needs(tokens, kind))} with a context of {tokens:,}, "
        f"{_gb(room)} can be used; take a smaller model or quantization"
    )


def _gb(size: float) -> str:
    return bytes_text(int(size))


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
