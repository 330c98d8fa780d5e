"""Draft of the next prompt with its token count, and the room that it leaves for an answer and a summary."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from agent_workbench.core.events import (
    ContextCompacted,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    PromptBuilt,
    Recorded,
)
from agent_workbench.core.model import Message, ModelFacts, Purpose
from agent_workbench.engine.prompt.messages import build_parts, to_messages
from agent_workbench.engine.prompt.parts import Part
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from agent_workbench.engine.runtime.session_context import SessionContext

CHARS_PER_TOKEN = 3
"""A low estimate, for servers that cannot count; of UTF-8 bytes where a prompt must not be too long."""
MARK_TOKENS = 12
"""Tokens a chat template adds to a message, until the server has shown the true number."""


def summary_tokens(context_tokens: int) -> int:
    """Return the token limit of a summary in a context of this size."""
    return min(1024, max(128, context_tokens // 8))


def least_answer_tokens(context_tokens: int) -> int:
    """Return the least room in tokens at which asking for a step makes sense."""
    return min(512, max(64, context_tokens // 16))


class PromptDraft(Struct, frozen=True):
    """A prompt that is ready to be sent; `after` is the number of its last event.

    `counts` are the tokens of its parts. `size` adds those of the chat template; it is an estimate if the server cannot
    count, and 0 if its context is unknown as well. `question` are the tokens that a request for a summary adds.
    """

    purpose: Purpose
    after: int
    facts: ModelFacts
    parts: tuple[Part, ...]
    messages: tuple[Message, ...]
    counts: tuple[int, ...]
    size: int
    question: int

    @property
    def tokens(self) -> int:
        """Tokens of all parts."""
        return sum(self.counts)

    @property
    def likely_size(self) -> int:
        """Tokens of the whole prompt, estimated from its characters if the server cannot count."""
        return self.size or sum(len(part.text) for part in self.parts) // CHARS_PER_TOKEN

    @property
    def context_tokens(self) -> int:
        """Context size, 0 if unknown."""
        return self.facts.context_tokens

    @property
    def room(self) -> int | None:
        """Largest number of tokens of an answer, None if unknown."""
        return self.context_tokens - self.size if self.context_tokens else None

    @property
    def reserve(self) -> int:
        """Tokens to keep free after the answer, so that a summary can still be requested."""
        return self.question + summary_tokens(self.context_tokens) if self.context_tokens else 0


async def draft_prompt(session: SessionContext, facts: ModelFacts, purpose: Purpose) -> PromptDraft:
    """Return the next prompt with its size, counted by the model of `purpose`; raise `ModelError`."""
    state = session.state
    parts = build_parts(state, purpose)
    messages = to_messages(parts)
    *counts, question = await session.ports.model.count_tokens([*(part.text for part in parts), SUMMARY], purpose)
    mark = template_tokens(session.run.history)
    size = prompt_size(facts, session.run.history, messages, sum(counts))
    question = question or _estimated(SUMMARY)
    return PromptDraft(purpose, state.seq, facts, parts, messages, tuple(counts), size, question + ceil(2 * mark))


def prompt_size(facts: ModelFacts, history: Sequence[Recorded], messages: Sequence[Message], counted: int) -> int:
    """Return the tokens of a prompt whose texts have `counted` of them, with those of the chat template.

    For a server that cannot count it is a high estimate, beside what the server told of the prompt before: too long a
    prompt would be cut. 0 if neither the tokens nor the context are known.
    """
    if facts.counts_tokens:
        return counted + ceil(template_tokens(history) * len(messages))
    if not facts.context_tokens:
        return 0
    told, known = _last_told(history)
    if known > len(messages):
        told = known = 0
    return told + sum(_estimated(message.text) + MARK_TOKENS for message in messages[known:])


def _estimated(text: str) -> int:
    return ceil(len(text.encode("utf-8", "surrogatepass")) / CHARS_PER_TOKEN)


def _last_told(history: Sequence[Recorded]) -> tuple[int, int]:
    """Return the tokens of the last prompt that the server told, and its number of messages; zeros if there is none."""
    told = 0
    for recorded in reversed(history):
        match recorded.event:
            case ModelAnswered(figures=figures) | ModelInterrupted(figures=figures):
                told = figures.prompt_tokens
            case PromptBuilt(messages=messages) if told:
                return told, messages
            case ModelObserved() | ContextCompacted():
                break
            case _:
                pass
    return 0, 0


def template_tokens(history: Sequence[Recorded]) -> float:
    """Return the tokens that the chat template adds to each message, measured at the last prompt of known size."""
    told = 0
    for recorded in reversed(history):
        match recorded.event:
            case ModelAnswered(figures=figures) | ModelInterrupted(figures=figures):
                told = figures.prompt_tokens
            case PromptBuilt(tokens=tokens, messages=messages) if told and tokens and messages:
                return max(0.0, (told - tokens) / messages)
            case ModelObserved():
                break
            case _:
                pass
    return MARK_TOKENS
