"""Requests to a model and its answers, as values."""

from enum import StrEnum

from msgspec import Struct, field

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.task_estimates import Complexity


class Role(StrEnum):
    """Author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Message(Struct, frozen=True):
    """One message of a prompt."""

    role: Role
    text: str


class Purpose(StrEnum):
    """Purpose of an answer; each role's endpoints are chosen by it."""

    EXECUTOR = "executor"
    REFLEXION = "reflexion"
    PLANNER = "planner"
    SUMMARY = "summary"
    CHAT = "chat"
    CONSULTANT = "consultant"


class Sampling(RecordedValue, frozen=True):
    """Sampling parameters under llama.cpp's names; None leaves one to the server.

    `thinking_budget_tokens` is the limit of the thought before an answer: the server ends it, and the answer follows.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    thinking_budget_tokens: int | None = None


class ModelRequest(Struct, frozen=True):
    """A prompt with its limits.

    `grammar` is GBNF (empty: free text). `answer_seconds` is how long a server may be silent. `prompt_tokens` is the
    counted size of the prompt (0: unknown). `dollars_left` is what the task may still cost (None: unlimited); an
    endpoint with a price checks it before it is asked. `answered` counts the answers to this subject so far that the
    user did not reject, including those that a compaction removed from the messages (None: the messages show them all).

    `exact`: the prompt is read without the cache. Cached tokens change rounding, and now and then the result of a seed.
    A request that is not `patient` does not wait for a server that is busy or loading: another one can be asked.
    """

    messages: tuple[Message, ...]
    purpose: Purpose = Purpose.EXECUTOR
    grammar: str = ""
    answer_tokens: int = 2048
    answer_seconds: float = 600.0
    subject: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    prompt_tokens: int = 0
    dollars_left: float | None = None
    answered: int | None = None
    exact: bool = False
    patient: bool = True


class ModelFacts(RecordedValue, frozen=True):
    """Facts that a server reports of itself. They are journaled once and never asked again in a replay.

    `context_tokens` is the context of one slot (0: unknown), `context_source` the server's route that states it, or
    what else it is known by. `template_hash` is SHA-256 of the chat template. `thinks`: the model reasons before it
    answers. `tells_cache`: the server reports how many prompt tokens were cached. `off` names each missing capability
    in a sentence. `passed` names the earlier endpoints of the role's chain and why they do not answer.
    """

    endpoint: str
    model: str
    context_tokens: int
    template_hash: str = ""
    build: str = ""
    takes_grammar: bool = True
    counts_tokens: bool = True
    scripted: bool = False
    tells_cache: bool = True
    thinks: bool = False
    off: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    context_source: str = ""


class PromptProgress(Struct, frozen=True):
    """Progress of the server in the prompt: tokens read of all, and those from its cache."""

    processed_tokens: int
    total_tokens: int
    cached_tokens: int = 0


class ThoughtDelta(Struct, frozen=True):
    """Next piece of the reasoning before an answer; displayed and recorded, never sent back."""

    text: str


class TextDelta(Struct, frozen=True):
    """Next piece of the answer."""

    text: str


class ChoiceReason(StrEnum):
    """Reason for the order in which a chain with paid endpoints is asked.

    `order`: it is the chain's own. `complexity`: a complex task begins with the paid ones. `quota`: little is left of
    the day's cap, or it is not known, so those that cost nothing come first.
    """

    ORDER = "order"
    COMPLEXITY = "complexity"
    QUOTA = "quota"


class EndpointChoice(RecordedValue, frozen=True):
    """Choice of an endpoint of a chain in which at least one costs money; the first item of its answer.

    `quota` is the part of the day's cap that is left, from 0.0 to 1.0 (None: unknown). `fallback`: it is not of the
    kind that should have been asked first, and `passed` tells why. The prompt has `prompt_tokens` (0: not counted);
    the answer costs at most `most_dollars`.
    """

    endpoint: str
    paid: bool
    reason: ChoiceReason
    complexity: Complexity = Complexity.SIMPLE
    quota: float | None = None
    fallback: bool = False
    passed: tuple[str, ...] = ()
    prompt_tokens: int = 0
    most_dollars: float = 0.0

    @property
    def why(self) -> str:
        """The reason in words."""
        order = {
            ChoiceReason.ORDER: "the chain's order",
            ChoiceReason.COMPLEXITY: f"a {self.complexity} task begins with paid endpoints",
            ChoiceReason.QUOTA: "paid endpoints come last",
        }[self.reason]
        left = "it is not known what is left" if self.quota is None else f"{self.quota:.0%} is left"
        fallback = f"; not as it should be: {'; '.join(self.passed)}" if self.fallback else ""
        return f"{'paid' if self.paid else 'free'}, {order}; {left} of the day's cap{fallback}"


class AnswerCost(Struct, frozen=True):
    """Cost so far of a priced answer; it counts if the answer is stopped."""

    dollars: float


class StopCause(StrEnum):
    """Reason why an answer ended; `repetition`: the workbench stopped it."""

    END = "end"
    LENGTH = "length"
    REPETITION = "repetition"


class AnswerFigures(RecordedValue, frozen=True):
    """Figures of an answer as the server measured them (0: not reported); `dollars` by the endpoint's price."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_seconds: float = 0.0
    answer_seconds: float = 0.0
    dollars: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Generation speed; 0.0 if unknown."""
        return self.answer_tokens / self.answer_seconds if self.answer_seconds else 0.0


class AnswerEnd(Struct, frozen=True):
    """Last item of an answer's stream; `endpoint` and `model` are who answered, `what` says why it was stopped."""

    stop: StopCause
    figures: AnswerFigures
    endpoint: str = ""
    model: str = ""
    what: str = ""


AnswerItem = EndpointChoice | PromptProgress | ThoughtDelta | TextDelta | AnswerCost | AnswerEnd
