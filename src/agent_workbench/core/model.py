"""What is asked of a model and what comes back, as values."""

from enum import StrEnum

from msgspec import Struct, field

from agent_workbench.core.recorded_value import RecordedValue


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Message(Struct, frozen=True):
    """One message of a prompt."""

    role: Role
    text: str


class Purpose(StrEnum):
    """What an answer is for; roles with their own endpoints are keyed by it."""

    EXECUTOR = "executor"
    REFLEXION = "reflexion"
    PLANNER = "planner"
    SUMMARY = "summary"


class Sampling(RecordedValue, frozen=True):
    """How the next token is chosen; None leaves it to the server. The words are llama.cpp's."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None


class ModelRequest(Struct, frozen=True):
    """A prompt with its bounds. `grammar` is GBNF (empty: free text); `answer_seconds` is how long a server may be
    silent.

    `prompt_tokens` is the prompt's size as it was counted (0: not known); `dollars_left` is what the task may still
    cost (None: no bound), which an endpoint with a price has to keep to before it is asked. `answered` counts the
    answers to this subject so far that the user did not reject, also those that a compaction took out of the messages
    (None: the messages show them all). With `exact` the whole prompt is read anew: with what comes from a cache
    rounding differs, and so, now and then, does what a seed leads to. One that is not `patient` does not wait for a
    server that is busy or loads: somebody else can be asked.
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
    """What the server says of itself; journaled once, never asked again in replay.

    `context_tokens` is the context of one slot (0: unknown). `template_hash` is SHA-256 of the chat template. `thinks`
    tells that it reasons before it answers, `tells_cache` that it says how much of a prompt it had read before; `off`
    says in a sentence each what is missing, `passed` who comes before it in its role's chain and why they do not
    answer.
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


class PromptProgress(Struct, frozen=True):
    """The server is reading the prompt: tokens done of all, and how many came from its cache."""

    processed_tokens: int
    total_tokens: int
    cached_tokens: int = 0


class ThoughtDelta(Struct, frozen=True):
    """The next piece of the reasoning before an answer; shown and kept, never sent back."""

    text: str


class TextDelta(Struct, frozen=True):
    """The next piece of the answer."""

    text: str


class AnswerCost(Struct, frozen=True):
    """What an answer that has a price has cost so far: it counts where the answer is stopped."""

    dollars: float


class StopCause(StrEnum):
    """Why an answer ended."""

    END = "end"
    LENGTH = "length"


class AnswerFigures(RecordedValue, frozen=True):
    """What an answer cost, as the server measured it (0 where it did not say); `dollars` by the endpoint's price."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_seconds: float = 0.0
    answer_seconds: float = 0.0
    dollars: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Speed of the answer; 0.0 when it is unknown."""
        return self.answer_tokens / self.answer_seconds if self.answer_seconds else 0.0


class AnswerEnd(Struct, frozen=True):
    """The last item of an answer's stream; `endpoint` and `model` say who answered."""

    stop: StopCause
    figures: AnswerFigures
    endpoint: str = ""
    model: str = ""


AnswerItem = PromptProgress | ThoughtDelta | TextDelta | AnswerCost | AnswerEnd
