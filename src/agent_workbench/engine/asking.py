"""Asking the model: the prompt is built and journaled, the answer streamed, its end or its breaking recorded."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from hashlib import sha256

from agent_workbench.core.errors import ContextOverflow, ModelError, ModelUnavailable
from agent_workbench.core.events import (
    ActionRejected,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    PromptBuilt,
    PromptPart,
    TroubleMet,
)
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import (
    AnswerEnd,
    ModelFacts,
    ModelRequest,
    PromptProgress,
    Purpose,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.state import SessionState
from agent_workbench.engine.budget import dollars_left
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.granting import granted
from agent_workbench.engine.prompt import build_parts, prompt_sha, to_messages

LEAST_ANSWER_TOKENS = 64
REFLEXION_TOKENS = 400
NEVER_WRITTEN = "it holds the value of a secret environment variable, which is never written anywhere"


async def ask(desk: Desk, purpose: Purpose) -> None:
    """Ask for a step or a reflexion. What stops it outside becomes `TroubleMet`; cancelling frees the server."""
    try:
        request = await _request(desk, purpose)
        if request is not None:
            await _stream(desk, request)
    except ContextOverflow as full:
        await desk.record(_context_full(desk, full.prompt_tokens, full.context_tokens))
    except ModelError as error:
        await desk.record(TroubleMet("model", str(error), error.advice))


async def observe_model(desk: Desk, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
    """Wait for who answers for `purpose` and journal what it says of itself, when that is news."""
    facts = await desk.ports.model.observe(purpose)
    if facts != desk.state.model_for(purpose):
        await desk.record(ModelObserved(facts, purpose))
    return facts


async def _request(desk: Desk, purpose: Purpose) -> ModelRequest | None:
    desk.board.show_activity("waiting for the model")
    facts = await observe_model(desk, purpose)
    run = desk.run
    parts = build_parts(desk.state, purpose)
    messages = to_messages(parts)
    counts = await desk.ports.model.count_tokens([part.text for part in parts], purpose)
    measured = zip(parts, counts, strict=True)
    new = tuple(PromptPart(part.label, count, text_sha(part.text)) for part, count in measured)[run.prompt_parts :]
    step = run.answered_step if purpose is Purpose.REFLEXION else run.answered_step + 1
    tokens = sum(counts)
    held = facts.takes_grammar and facts.endpoint not in desk.state.ungrammatical
    grammar = await granted(desk, purpose) if held else ""
    seed = seed_of(desk.state)
    await desk.record(
        PromptBuilt(
            step,
            purpose,
            len(messages),
            tokens,
            prompt_sha(messages),
            new,
            facts.endpoint,
            seed,
            text_sha(grammar) if grammar else "",
        )
    )
    room = facts.context_tokens - tokens if facts.context_tokens and facts.counts_tokens else None
    if room is not None and room < LEAST_ANSWER_TOKENS:
        await desk.record(_context_full(desk, tokens, facts.context_tokens))
        return None
    answer_tokens = REFLEXION_TOKENS if purpose is Purpose.REFLEXION else desk.settings.model.answer_tokens
    return ModelRequest(
        messages=messages,
        purpose=purpose,
        grammar=grammar,
        answer_tokens=answer_tokens if room is None else min(answer_tokens, room),
        answer_seconds=desk.settings.model.answer_seconds,
        subject=run.task,
        seed=seed,
        prompt_tokens=tokens,
        dollars_left=dollars_left(run),
    )


def text_sha(text: str) -> str:
    """Return SHA-256 of a part of a prompt, or of a grammar, by which a re-run finds what differs."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def seed_of(state: SessionState) -> int:
    """Return the seed of the next answer: another at each prompt, and the same whenever the journal is the same."""
    digest = sha256(f"{state.session}:{state.seq + 1}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


async def _stream(desk: Desk, request: ModelRequest) -> None:
    step = desk.run.step
    started = desk.ports.clock.monotonic_seconds()
    shown = Streaming()
    desk.board.show_activity("thinking" if request.purpose is Purpose.EXECUTOR else "reflecting")
    try:
        async with aclosing(desk.ports.model.answer(request)) as items:
            async for item in items:
                seconds = desk.ports.clock.monotonic_seconds() - started
                match item:
                    case PromptProgress():
                        shown = replace(
                            shown,
                            seconds=seconds,
                            prompt_processed=item.processed_tokens,
                            prompt_total=item.total_tokens,
                            prompt_cached=item.cached_tokens,
                        )
                    case ThoughtDelta():
                        shown = replace(
                            shown, thought=shown.thought + item.text, tokens=shown.tokens + 1, seconds=seconds
                        )
                    case TextDelta():
                        shown = replace(shown, text=shown.text + item.text, tokens=shown.tokens + 1, seconds=seconds)
                    case AnswerEnd():
                        await _record_end(desk, step, request.purpose, shown, item)
                        return
                desk.board.show_streaming(shown)
        raise ModelUnavailable("the model's answer has no end", advice="try again", partial=shown.text)
    except ModelUnavailable as error:
        died = replace(shown, text=error.partial or shown.text)
        await _record_break(desk, step, died, InterruptCause.DIED, str(error))
        raise
    except asyncio.CancelledError:
        await _record_break(desk, step, shown, InterruptCause.STOPPED, "stopped by the user")
        raise
    finally:
        desk.board.show_activity("")


async def _record_end(desk: Desk, step: int, purpose: Purpose, shown: Streaming, end: AnswerEnd) -> None:
    text = shown.text
    if end.stop is StopCause.LENGTH:
        cut = "cut at the token limit"
        await desk.record(
            ModelInterrupted(
                step, text, InterruptCause.LENGTH, cut, end.figures, end.endpoint, end.model, shown.thought
            )
        )
        return
    await desk.record(ModelAnswered(step, text, end.figures, end.endpoint, end.model, shown.thought))
    if purpose is Purpose.EXECUTOR and desk.run.answer is not None and desk.run.answer.text != _joined(text):
        await desk.record(ActionRejected(step, NEVER_WRITTEN))


def _joined(text: str) -> str:
    """Return the text with both halves of a character as one, as a journal keeps it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


async def _record_break(desk: Desk, step: int, shown: Streaming, cause: InterruptCause, what: str) -> None:
    await desk.record(ModelInterrupted(step, shown.text, cause, what, reasoning=shown.thought))


def _context_full(desk: Desk, prompt_tokens: int, context_tokens: int) -> TroubleMet:
    size = f"{prompt_tokens or 'too many'} tokens of {context_tokens or 'an unknown number'}"
    return TroubleMet(
        "model",
        f"the context is full: the prompt of step {desk.run.step} needs {size}",
        "serve the model with a larger context (model.context_tokens), or abort and split the task",
    )
