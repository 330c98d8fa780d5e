"""What is asked of a model and what comes back, as values."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    text: str


class Purpose(StrEnum):
    """What an answer is for; roles with their own endpoints are keyed by it."""

    EXECUTOR = "executor"
    REFLEXION = "reflexion"
    PLANNER = "planner"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A prompt with its bounds. `grammar` is GBNF (empty: free text); `answer_seconds` is a total deadline."""

    messages: tuple[Message, ...]
    purpose: Purpose = Purpose.EXECUTOR
    grammar: str = ""
    answer_tokens: int = 2048
    answer_seconds: float = 600.0
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server says of itself; journaled once, never asked again in replay.

    `context_tokens` is the context of one slot (0: unknown). `template_hash` is SHA-256 of the chat template.
    """

    endpoint: str
    model: str
    context_tokens: int
    template_hash: str = ""
    build: str = ""
    takes_grammar: bool = True
    counts_tokens: bool = True
    scripted: bool = False


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """The server is reading the prompt: tokens done of all, and how many came from its cache."""

    processed_tokens: int
    total_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer."""

    text: str


class StopCause(StrEnum):
    """Why an answer ended."""

    END = "end"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """What an answer cost, as the server measured it (0 where it did not say)."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_seconds: float = 0.0
    answer_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Speed of the answer; 0.0 when it is unknown."""
        return self.answer_tokens / self.answer_seconds if self.answer_seconds else 0.0


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The last item of an answer's stream."""

    stop: StopCause
    figures: AnswerFigures


AnswerItem = PromptProgress | TextDelta | AnswerEnd
