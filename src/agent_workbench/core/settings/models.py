"""Settings of model endpoints: addresses, roles, sampling and prices."""

from enum import StrEnum
from typing import TypeVar

from msgspec import Struct, field

from agent_workbench.core.model import Purpose, Sampling

Value = TypeVar("Value")

USUAL_CONTEXT_TOKENS = 16_384
"""Context that a task is comfortable with."""


class CacheType(StrEnum):
    """Type of the numbers in a KV cache; `auto`: chosen at the server's start."""

    AUTO = "auto"
    F16 = "f16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"


class ServingSettings(Struct, frozen=True):
    """Settings of a server that we start; None and `auto` are computed at its start, for the machine it runs on.

    `server` is the user's own `llama-server`; empty: the one that comes with the workbench.
    """

    context_tokens: int | None = None
    threads: int | None = None
    gpu_layers: int | None = None
    cache_type: CacheType = CacheType.AUTO
    server: str = ""


class ModelSettings(Struct, frozen=True):
    """The default endpoint: a GGUF file to serve, or the address of a running server."""

    path: str = ""
    """A GGUF file that the workbench serves itself; `~` is your home. Not together with `model.url`."""
    url: str = ""
    """The address of a running `llama-server`, or of another server with OpenAI's chat endpoint."""
    name: str = ""
    """The model's name in requests, for servers that have several."""
    server: str = ""
    """A `llama-server` binary to start with `model.path` in place of the built-in one."""
    context_tokens: int | None = None
    """The context with which the workbench starts a server; without it computed for the machine. With an address it is
    the context of that server, if it states none or a larger one.
    """
    threads: int | None = None
    """Threads of a server that the workbench starts; without it computed."""
    gpu_layers: int | None = None
    """Layers of the model on the GPU; without it computed."""
    cache_type: CacheType = CacheType.AUTO
    """Type of the numbers in the KV cache; `auto`: `f16`, or `q8_0` where only that leaves room for 16,384 tokens."""
    api_key_env: str = ""
    """The environment variable that holds the server's key; keys do not belong in files."""
    answer_seconds: float = 600.0
    """Longest silence of a server while it answers. The whole answer may take six times as long; reading a prompt has
    no limit while the server reports progress.
    """
    answer_tokens: int = 2048
    """The maximum length of an answer."""

    @property
    def serving(self) -> ServingSettings:
        """The settings of the server for `path`."""
        return ServingSettings(self.context_tokens, self.threads, self.gpu_layers, self.cache_type, self.server)


# Name of the default endpoint (the group `model`) in chains.
SHORT_FORM = "model"

MAX_DOLLARS = 1e9
"""Maximum price; a larger one counts as this."""


class TokenPrice(Struct, frozen=True):
    """Price in dollars for a million tokens; zero for a free endpoint."""

    input: float = 0.0
    """Price of a million prompt tokens."""
    output: float = 0.0
    """Price of a million answer tokens."""

    @property
    def is_free(self) -> bool:
        """True if tokens cost nothing."""
        return not (self.input or self.output)

    def dollars(self, prompt_tokens: int, answer_tokens: int) -> float:
        """Return the price of a prompt and its answer; cached tokens count in full."""
        return min((prompt_tokens * self.input + answer_tokens * self.output) / 1_000_000, MAX_DOLLARS)


class EndpointSettings(Struct, frozen=True):
    """One server that a chain may name: the address of a running one, or a GGUF file to serve."""

    url: str = ""
    """The address of a server that chains may name."""
    path: str = ""
    """A GGUF file in place of an address, which the workbench serves itself; endpoints with the same file share one
    server.
    """
    model: str = ""
    """The model's name in requests."""
    server: str = ""
    """A `llama-server` binary to start with `path`."""
    context_tokens: int | None = None
    """The context with which the workbench starts a server; without it computed for the machine. With an address it is
    the context of that server, if it states none or a larger one.
    """
    threads: int | None = None
    """Threads of a server that the workbench starts; without it computed."""
    gpu_layers: int | None = None
    """Layers of the model on the GPU; without it computed."""
    cache_type: CacheType = CacheType.AUTO
    """Type of the numbers in the KV cache; `auto`: `f16`, or `q8_0` where only that leaves room for 16,384 tokens."""
    api_key_env: str = ""
    """The environment variable that holds this server's key; it is sent to no other."""
    dollars_per_million_tokens: TokenPrice = field(default_factory=TokenPrice)


Chain = tuple[str, ...]


class RoleSettings(Struct, frozen=True):
    """Endpoints of each role by name, in the order in which they are asked; () follows the other roles."""

    planner: Chain = ()
    """The endpoints for plans, by name, in this order."""
    executor: Chain = ()
    """The endpoints for steps and their summaries."""
    reflexion: Chain = ()
    """The endpoints for reflexions on failed steps."""
    verifier: Chain = ()
    """The endpoints that check a consultant's answer before it is taken, the first that answers (none: no check)."""
    skills: tuple[tuple[str, Chain], ...] = ()
    """The endpoints for a skill."""


USUAL_TEMPERATURE, USUAL_RETRY_TEMPERATURE = 0.2, 0.5
"""Temperature that is not set, and what retries add. A model that thinks keeps its server's: cold it thinks in circles.
"""
MOST_RETRY_TEMPERATURE = 0.8
"""Temperature that retries do not exceed; one that is set higher holds as it is."""
USUAL_THINKING_TOKENS = 2048


class RoleSampling(Struct, frozen=True):
    """Sampling, or what a role has of its own. None leaves a parameter to its usual value, or to the server."""

    temperature: float | None = None
    """Sampling temperature; 0: always the likeliest token. Without it 0.2, or the server's own for a model that thinks.
    """
    retry_temperature: float | None = None
    """Added to the temperature for each failed attempt since the last success, up to 0.8, so that a retry differs.
    Without it 0.5.
    """
    top_p: float | None = None
    """Only the likeliest tokens that make up this share, 0 to 1."""
    top_k: int | None = None
    """Only so many of the likeliest tokens."""
    min_p: float | None = None
    """Only tokens with this share of the likeliest one's chance, 0 to 1."""
    thinking_tokens: int | None = None
    """The longest thought of a model that thinks, in tokens, at most as long as an answer may be; then it answers.
    Without it 2,048.
    """
    seed: int | None = None
    """One seed for all prompts; without it each prompt has its own, which is recorded."""

    def sampling(self, failed: int = 0, *, thinks: bool = False) -> Sampling:
        """Return the parameters without the seed, after so many failed attempts; `thinks`: the model reasons first."""
        thinking = _or(self.thinking_tokens, USUAL_THINKING_TOKENS) if thinks else None
        if self.temperature is None and thinks:
            return Sampling(None, self.top_p, self.top_k, self.min_p, thinking)
        base = _or(self.temperature, USUAL_TEMPERATURE)
        warmer = failed * _or(self.retry_temperature, USUAL_RETRY_TEMPERATURE)
        raised = round(min(base + warmer, MOST_RETRY_TEMPERATURE), 3)
        return Sampling(max(base, raised), self.top_p, self.top_k, self.min_p, thinking)


class SamplingSettings(RoleSampling, frozen=True):
    """Sampling of every role, and what a role has of its own; a summary and a chat are sampled like the executor."""

    planner: RoleSampling = field(default_factory=RoleSampling)
    executor: RoleSampling = field(default_factory=RoleSampling)
    reflexion: RoleSampling = field(default_factory=RoleSampling)

    def of(self, purpose: Purpose) -> RoleSampling:
        """Return the sampling for `purpose`."""
        own = {Purpose.PLANNER: self.planner, Purpose.REFLEXION: self.reflexion}.get(purpose, self.executor)
        names = RoleSampling.__struct_fields__
        return RoleSampling(*(_or(getattr(own, name), getattr(self, name)) for name in names))


def _or(said: Value | None, usual: Value) -> Value:
    return usual if said is None else said
