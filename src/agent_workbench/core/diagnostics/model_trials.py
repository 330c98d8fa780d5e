"""Results of a model test: the answers, their speed, and the roles for which the model is fit."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.state.prompt_reads import PromptReads


class QuestionKind(StrEnum):
    """Kind of a test question."""

    CALL = "call"
    DIFF = "diff"
    REFLEXION = "reflexion"
    PLAN = "plan"


class TrialAnswer(Struct, frozen=True):
    """One test question with its answer: whether it ended, is well-formed, kept the grammar, and is right.

    `seconds` and `first_seconds` (until the first token) were measured here, `figures` by the server.
    """

    name: str
    kind: QuestionKind
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
    """Report of a model test. `reads` are those of growing prompts (None: the server does not report them).

    `keeps_grammar` and `repeats` are None if they could not be tried; `repeats_cached` is the same with the cache.
    `stopped` is the reason why not everything was asked.
    """

    facts: ModelFacts
    asked: tuple[TrialAnswer, ...]
    reads: PromptReads | None = None
    keeps_grammar: bool | None = None
    repeats: bool | None = None
    repeats_cached: bool | None = None
    stopped: str = ""

    @property
    def valid_share(self) -> float:
        """Share of the well-formed answers."""
        return _share([each.valid for each in self.asked])

    @property
    def right_share(self) -> float:
        """Share of the right answers."""
        return _share([each.right for each in self.asked])

    @property
    def tokens_per_second(self) -> float:
        """Generation speed, 0.0 if unknown."""
        tokens = sum(each.figures.answer_tokens for each in self.asked)
        told = sum(each.figures.answer_seconds for each in self.asked)
        seconds = told or sum(each.seconds - each.first_seconds for each in self.asked)
        return tokens / seconds if seconds > 0 else 0.0

    @property
    def prefill_tokens_per_second(self) -> float:
        """Speed at which the largest uncached prompt part was read, 0.0 if unknown."""
        read = max(self.asked, key=lambda each: each.figures.prompt_tokens - each.figures.cached_tokens, default=None)
        if read is None:
            return 0.0
        seconds = read.figures.prompt_seconds or read.first_seconds
        return (read.figures.prompt_tokens - read.figures.cached_tokens) / seconds if seconds > 0 else 0.0


def _share(held: list[bool]) -> float:
    return sum(held) / len(held) if held else 0.0


class Fitness(Struct, frozen=True):
    """Fitness of a model for a role: `because` is the reason, `but` are its limitations."""

    role: Purpose
    fit: bool
    because: str
    but: tuple[str, ...] = ()
