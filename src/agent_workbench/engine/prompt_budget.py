"""Token budget of the prompt after a compaction."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from agent_workbench.core.errors import ModelError
from agent_workbench.core.events import ContextCompacted, ContextFilled, Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.model import Purpose
from agent_workbench.core.state.session_state import Phase
from agent_workbench.engine.prompt.messages import build_parts, to_messages
from agent_workbench.engine.prompt.prompt_size import (
    CHARS_PER_TOKEN,
    least_answer_tokens,
    summary_tokens,
    template_tokens,
)
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from agent_workbench.engine.prompt.step_history import answers_of
from agent_workbench.engine.runtime.text_limits import clip
from agent_workbench.engine.runtime.tool_context import ToolContext

MIN_CONTEXT = 2_048
MIN_CHARS = 250
"""Pieces are not cut to less than this, and the scratchpad keeps at least as much."""


class PromptBudget(Struct, frozen=True):
    """Token limits of the next prompt, and exact or estimated token counts of texts."""

    context: ToolContext

    @property
    def purpose(self) -> Purpose:
        """Purpose of the next prompt."""
        return Purpose.REFLEXION if self.context.run.compacts_for is Phase.REFLECTING else Purpose.EXECUTOR

    @property
    def context_tokens(self) -> int:
        """Size of the context, as known when it was full."""
        filled = [each.event for each in self.context.run.history if isinstance(each.event, ContextFilled)]
        facts = self.context.state.model_for(self.purpose)
        known = (filled[-1].context_tokens if filled else 0) or (facts.context_tokens if facts else 0)
        if known or not self.context.run.compaction_asked:
            return known or MIN_CONTEXT
        # The user asked for a summary, and the server does not report its context: what was read so far fits.
        parts = build_parts(self.context.state, self.purpose)
        return max(MIN_CONTEXT, sum(len(part.text) for part in parts) // CHARS_PER_TOKEN)

    def target_tokens(self, fixed: int) -> int:
        """Return the target size: half the context, or half of the free room beside the `fixed` tokens.

        Before the first step, found code may take three quarters of the free room.
        """
        begun = bool(answers_of(self.context.run.history))
        share = (fixed + self.max_tokens) // 2 if begun else (fixed + 3 * self.max_tokens) // 4
        return min(self.max_tokens, max(self.context_tokens // 2, share))

    @property
    def max_tokens(self) -> int:
        """Maximum size of the next prompt, which leaves room for an answer and the next summary."""
        context = self.context_tokens
        return context - summary_tokens(context) - least_answer_tokens(context)

    @property
    def notes_chars(self) -> int:
        """Characters of the scratchpad that always stay; more stay if the code leaves room."""
        return max(MIN_CHARS, self.context_tokens // 16 * CHARS_PER_TOKEN)

    @property
    def about_chars(self) -> int:
        """Characters of the repository's map, and of all its instructions."""
        return max(MIN_CHARS, self.context_tokens // 8 * CHARS_PER_TOKEN)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the tokens of each text, after redaction; an estimate if the server cannot count."""
        texts = [self.context.ports.redacted(text) for text in texts]
        facts = self.context.state.model_for(self.purpose)
        if facts is None or facts.counts_tokens:
            try:
                return await self.context.ports.model.count_tokens(texts, self.purpose)
            except ModelError:
                pass  # a lost server is reported by the next question; a summary must not fail for it
        return tuple(len(text) // CHARS_PER_TOKEN + 1 for text in texts)

    async def size_after(self, compacted: ContextCompacted) -> int:
        """Return the size of the next prompt after this compaction, with the request for the next summary."""
        state = self.context.state
        parts = build_parts(fold(state, Recorded(state.seq + 1, "", compacted)), self.purpose)
        counts = await self.count([*(part.text for part in parts), SUMMARY])
        # The request and its answer are two more messages.
        return sum(counts) + ceil(template_tokens(self.context.run.history) * (len(to_messages(parts)) + 2))

    async def cut(self, text: str, tokens: int) -> str:
        """Return the text in about `tokens` tokens, the cut stated; empty if not even a few lines fit."""
        (size,) = await self.count([text])
        if size <= tokens:
            return text
        chars = len(text) * tokens * 9 // (size * 10)
        return clip(text, chars) if chars >= MIN_CHARS // 2 else ""
