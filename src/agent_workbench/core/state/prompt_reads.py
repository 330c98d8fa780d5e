"""Prompt tokens that a server read: new ones, and ones it read again."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ContextCompacted,
    Event,
    ModelAnswered,
    ModelInterrupted,
    ModelSwitched,
    PromptBuilt,
    Recorded,
)
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose

MEASURED_TOKENS = 100
"""Fewer tokens are read too quickly to say how fast a server reads."""


class PromptReads(Struct, frozen=True):
    """Token counts of some prompts: all, new, and re-read.

    Re-read tokens are those that a prompt shares with the previous prompt and answer, but that were not in the cache.
    """

    prompt_tokens: int = 0
    new_tokens: int = 0
    again_tokens: int = 0

    @property
    def again_share(self) -> float:
        """Share of all tokens that was re-read, 0.0 to 1.0."""
        return self.again_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def plus(self, other: "PromptReads") -> "PromptReads":
        """Return the sums."""
        return PromptReads(
            self.prompt_tokens + other.prompt_tokens,
            self.new_tokens + other.new_tokens,
            self.again_tokens + other.again_tokens,
        )


def reads_of(figures: AnswerFigures, before: AnswerFigures | None) -> PromptReads:
    """Return the reads of one answer; `before` are the figures of the prompt it grew from (None: a new prompt).

    All tokens of a new prompt count as new. So does the last token of the previous answer: a server generates it and
    does not read it.
    """
    read = max(0, figures.prompt_tokens - figures.cached_tokens)
    known = 0 if before is None else before.prompt_tokens + max(0, before.answer_tokens - 1)
    common = min(known, figures.prompt_tokens)
    again = min(read, max(0, common - figures.cached_tokens))
    return PromptReads(figures.prompt_tokens, read - again, again)


def reusable_figures(answer: ModelAnswered | ModelInterrupted, *, thinks: bool = False) -> AnswerFigures:
    """Return an answer's figures, limited to the tokens that the server can reuse for the next prompt.

    The next prompt repeats the prompt and normally the answer. It has at most a part of an interrupted answer. After
    reasoning (even empty, of a model that `thinks`) the answer moves, because the reasoning is not sent back.
    """
    broken = isinstance(answer, ModelInterrupted)
    return replace(answer.figures, answer_tokens=0) if broken or thinks or answer.reasoning else answer.figures


def newest_reads(history: Sequence[Recorded], *, thinks: bool = False) -> PromptReads | None:
    """Return the reads of the newest prompt with a reported answer, None if there is none since a compaction.

    `thinks`: the model reasons before it answers.
    """
    newest: AnswerFigures | None = None
    answer: ModelAnswered | ModelInterrupted | None = None
    for recorded in reversed(history):
        event = recorded.event
        if isinstance(event, ContextCompacted):
            break
        if isinstance(event, ModelAnswered | ModelInterrupted) and event.figures.prompt_tokens:
            answer = event
        if not isinstance(event, PromptBuilt) or answer is None:
            continue
        is_summary = event.purpose is Purpose.SUMMARY
        if newest is None and is_summary:
            return reads_of(answer.figures, None)
        if newest is not None and not is_summary:
            return reads_of(newest, reusable_figures(answer, thinks=thinks))
        newest, answer = newest or answer.figures, None
    return reads_of(newest, None) if newest is not None else None


def is_switched_since(history: Sequence[Recorded]) -> bool:
    """Return True if the user chose another model after the newest prompt: it has nothing of it in its cache."""
    for recorded in reversed(history):
        if isinstance(recorded.event, ModelSwitched | PromptBuilt):
            return isinstance(recorded.event, ModelSwitched)
    return False


def reading_speed(events: Iterable[Event], facts: ModelFacts) -> float:
    """Return the prompt tokens that the model read in a second, of the first answer in `events` that tells; else 0.0.

    Give the newest events first.
    """
    for event in events:
        if not isinstance(event, ModelAnswered | ModelInterrupted):
            continue
        if event.endpoint not in {"", facts.endpoint} or event.model not in {"", facts.model}:
            continue
        read = event.figures.prompt_tokens - event.figures.cached_tokens
        if read >= MEASURED_TOKENS and event.figures.prompt_seconds > 0:
            return read / event.figures.prompt_seconds
    return 0.0
