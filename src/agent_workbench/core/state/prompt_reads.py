"""How much of its prompts a server read: what was new, and what it had read before and read again."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ContextCompacted,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
)
from agent_workbench.core.model import AnswerFigures, Purpose


class PromptReads(Struct, frozen=True):
    """Tokens of some prompts: all, those that were new in them, and those that were read again.

    Read again is what a prompt has in common with the prompt and the answer before it and what the server did not find
    in its cache.
    """

    prompt_tokens: int = 0
    new_tokens: int = 0
    again_tokens: int = 0

    @property
    def again_share(self) -> float:
        """Which share of all tokens was read again, 0.0 to 1.0."""
        return self.again_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def plus(self, other: "PromptReads") -> "PromptReads":
        """Return the sums."""
        return PromptReads(
            self.prompt_tokens + other.prompt_tokens,
            self.new_tokens + other.new_tokens,
            self.again_tokens + other.again_tokens,
        )


def reads_of(figures: AnswerFigures, before: AnswerFigures | None) -> PromptReads:
    """Return what was read for an answer; `before` are the figures of the prompt it grew from (None: it is a new one).

    What was read for a wholly new prompt counts as new. So does the last token of the answer before: a server says it
    and does not read it.
    """
    read = max(0, figures.prompt_tokens - figures.cached_tokens)
    known = 0 if before is None else before.prompt_tokens + max(0, before.answer_tokens - 1)
    common = min(known, figures.prompt_tokens)
    again = min(read, max(0, common - figures.cached_tokens))
    return PromptReads(figures.prompt_tokens, read - again, again)


def grown_from(answer: ModelAnswered | ModelInterrupted, *, thinks: bool = False) -> AnswerFigures:
    """Return an answer's figures as far as the next prompt begins with what they count.

    An answer that broke off or was cut is no part of it, or not whole. One of a model that `thinks` stood behind its
    thought, even an empty one, which is not sent back: it stands in another place there.
    """
    broken = isinstance(answer, ModelInterrupted)
    return replace(answer.figures, answer_tokens=0) if broken or thinks or answer.reasoning else answer.figures


def newest_reads(history: Sequence[Recorded], *, thinks: bool = False) -> PromptReads | None:
    """Return what was read of the newest prompt whose answer told, None where there is none since a compaction.

    `thinks`: the model that answered thinks before it answers.
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
        summing_up = event.purpose is Purpose.SUMMARY
        if newest is None and summing_up:
            return reads_of(answer.figures, None)
        if newest is not None and not summing_up:
            return reads_of(newest, grown_from(answer, thinks=thinks))
        newest, answer = newest or answer.figures, None
    return reads_of(newest, None) if newest is not None else None
