"""What trying a model out brought: its answers, what they took, and for which role it is fit."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.state.prompt_reads import PromptReads


class Kind(StrEnum):
    """What a question is about."""

    CALL = "call"
    DIFF = "diff"
    REFLEXION = "reflexion"
    PLAN = "plan"


class Asked(Struct, frozen=True):
    """One question with its answer: whether it ended by itself, has the form, is right, and what it took.

    `seconds` and `first_seconds` (until the first token) were measured here, `figures` by the server.
    """

    name: str
    kind: Kind
    ended: bool
    valid: bool
    kept: bool
    right: bool
    why: str
    text: str
    thought: str
    seconds: float
    first_seconds: float
    figures: AnswerFigures


class ModelReport(Struct, frozen=True):
    """What the test found. `reads` are the prompts that grew (None: the server does not tell).

    `keeps_grammar` and `repeats` are None where it could not be tried; `repeats_cached` is the same with the cache.
    `stopped` says why not all was asked.
    """

    facts: ModelFacts
    asked: tuple[Asked, ...]
    reads: PromptReads | None = None
    keeps_grammar: bool | None = None
    repeats: bool | None = None
    repeats_cached: bool | None = None
    stopped: str = ""

    @property
    def valid_share(self) -> float:
        """The share of answers that have the form they were asked for."""
        return _share([each.valid for each in self.asked])

    @property
    def right_share(self) -> float:
        """The share of answers that do what was asked."""
        return _share([each.right for each in self.asked])

    @property
    def tokens_per_second(self) -> float:
        """The speed of answers, 0.0 where there is no telling."""
        tokens = sum(each.figures.answer_tokens for each in self.asked)
        told = sum(each.figures.answer_seconds for each in self.asked)
        seconds = told or sum(each.seconds - each.first_seconds for each in self.asked)
        return tokens / seconds if seconds > 0 else 0.0

    @property
    def prefill_tokens_per_second(self) -> float:
        """The speed at which the largest piece of a prompt was read, 0.0 where there is no telling."""
        read = max(self.asked, key=lambda each: each.figures.prompt_tokens - each.figures.cached_tokens, default=None)
        if read is None:
            return 0.0
        seconds = read.figures.prompt_seconds or read.first_seconds
        return (read.figures.prompt_tokens - read.figures.cached_tokens) / seconds if seconds > 0 else 0.0


def _share(held: list[bool]) -> float:
    return sum(held) / len(held) if held else 0.0


class Fitness(Struct, frozen=True):
    """Whether a model is fit for a role: `because` says what speaks for or against it, `but` what one has to know."""

    role: Purpose
    fit: bool
    because: str
    but: tuple[str, ...] = ()
