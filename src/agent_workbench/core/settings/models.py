"""Settings of model endpoints: addresses, roles, sampling and prices."""

from msgspec import Struct, field

from agent_workbench.core.model import Purpose, Sampling


class ModelSettings(Struct, frozen=True):
    """The default endpoint: a GGUF file to serve (`path`) or the address of a running server (`url`)."""

    path: str = ""
    url: str = ""
    name: str = ""
    server: str = ""
    context_tokens: int = 16384
    api_key_env: str = ""
    answer_seconds: float = 600.0
    answer_tokens: int = 2048


# Name of the default endpoint (the group `model`) in chains.
SHORT_FORM = "model"

MAX_DOLLARS = 1e9
"""Maximum price; a larger one counts as this."""


class TokenPrice(Struct, frozen=True):
    """Price in dollars for a million tokens; zero for a free endpoint."""

    input: float = 0.0
    output: float = 0.0

    @property
    def is_free(self) -> bool:
        """True if tokens cost nothing."""
        return not (self.input or self.output)

    def dollars(self, prompt_tokens: int, answer_tokens: int) -> float:
        """Return the price of a prompt and its answer; cached tokens count in full."""
        return min((prompt_tokens * self.input + answer_tokens * self.output) / 1_000_000, MAX_DOLLARS)


class EndpointSettings(Struct, frozen=True):
    """One server that a chain may name: the address of a running one (`url`) or a GGUF file to serve (`path`).

    `model` is the model's name in requests.
    """

    url: str = ""
    path: str = ""
    model: str = ""
    server: str = ""
    context_tokens: int = 16384
    api_key_env: str = ""
    dollars_per_million_tokens: TokenPrice = field(default_factory=TokenPrice)


Chain = tuple[str, ...]


class RoleSettings(Struct, frozen=True):
    """Endpoints of each role by name, in the order in which they are asked; () follows the other roles.

    The `verifier` checks the answers of consultants; () checks none.
    """

    planner: Chain = ()
    executor: Chain = ()
    reflexion: Chain = ()
    verifier: Chain = ()
    skills: tuple[tuple[str, Chain], ...] = ()


class RoleSampling(Struct, frozen=True):
    """Sampling of a role. None leaves a parameter to the server, and gives each prompt its own `seed`."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None

    @property
    def sampling(self) -> Sampling:
        """The parameters without the seed."""
        return Sampling(self.temperature, self.top_p, self.top_k, self.min_p)


class SamplingSettings(Struct, frozen=True):
    """Sampling of each role; a summary and a chat are sampled like the executor."""

    planner: RoleSampling = field(default_factory=RoleSampling)
    executor: RoleSampling = field(default_factory=RoleSampling)
    reflexion: RoleSampling = field(default_factory=RoleSampling)

    def of(self, purpose: Purpose) -> RoleSampling:
        """Return the sampling for `purpose`."""
        match purpose:
            case Purpose.PLANNER:
                return self.planner
            case Purpose.REFLEXION:
                return self.reflexion
            case Purpose.EXECUTOR | Purpose.SUMMARY | Purpose.CONSULTANT | Purpose.CHAT:
                return self.executor
