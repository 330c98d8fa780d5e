"""Streaming of the model's answer: published as it arrives, recorded when it ends or breaks."""

import asyncio
from contextlib import aclosing

from msgspec.structs import replace

from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.events import ActionRejected, InterruptCause, ModelAnswered, ModelInterrupted
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import (
    AnswerCost,
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    ModelRequest,
    PromptProgress,
    Purpose,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.engine.runtime.session_context import SessionContext

NEVER_WRITTEN = "it holds the value of a secret environment variable, which is never written anywhere"
ACTIVITIES = {Purpose.REFLEXION: "reflecting", Purpose.SUMMARY: "summarizing"}


async def stream(session: SessionContext, request: ModelRequest) -> None:
    """Publish an answer as it arrives, and record its end or interruption; raise `ModelError`."""
    step = session.run.step
    started = session.ports.clock.monotonic_seconds()
    shown = Streaming()
    session.publisher.show_activity(ACTIVITIES.get(request.purpose, "thinking"))
    try:
        async with aclosing(session.ports.model.answer(request)) as items:
            async for item in items:
                if isinstance(item, AnswerEnd):
                    await _record_end(session, step, request.purpose, shown, item)
                    return
                shown = _with(shown, item, session.ports.clock.monotonic_seconds() - started)
                session.publisher.show_streaming(shown)
        raise ModelUnavailable("the model's answer has no end", advice="try again", partial=shown.text)
    except ModelUnavailable as error:
        died = replace(shown, text=error.partial or shown.text)
        await _record_break(session, step, died, InterruptCause.DIED, str(error), error.dollars)
        raise
    except asyncio.CancelledError:
        await _record_break(session, step, shown, InterruptCause.STOPPED, "stopped by the user", shown.dollars)
        raise
    finally:
        session.publisher.show_activity("")


def _with(shown: Streaming, item: AnswerItem, seconds: float) -> Streaming:
    match item:
        case PromptProgress():
            return replace(
                shown,
                seconds=seconds,
                prompt_processed=item.processed_tokens,
                prompt_total=item.total_tokens,
                prompt_cached=item.cached_tokens,
            )
        case ThoughtDelta():
            return replace(shown, thought=shown.thought + item.text, tokens=shown.tokens + 1, seconds=seconds)
        case TextDelta():
            return replace(shown, text=shown.text + item.text, tokens=shown.tokens + 1, seconds=seconds)
        case AnswerCost():
            return replace(shown, dollars=item.dollars)
        case AnswerEnd():
            return shown


async def _record_end(session: SessionContext, step: int, purpose: Purpose, shown: Streaming, end: AnswerEnd) -> None:
    text = shown.text
    if end.stop is StopCause.LENGTH:
        cut = "cut at the token limit"
        await session.record(
            ModelInterrupted(
                step, text, InterruptCause.LENGTH, cut, end.figures, end.endpoint, end.model, shown.thought
            )
        )
        return
    await session.record(ModelAnswered(step, text, end.figures, end.endpoint, end.model, shown.thought))
    if purpose is Purpose.EXECUTOR and session.run.answer is not None and session.run.answer.text != _joined(text):
        await session.record(ActionRejected(step, NEVER_WRITTEN))


def _joined(text: str) -> str:
    """Return the text with surrogate pairs joined, as a journal keeps it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


async def _record_break(
    session: SessionContext, step: int, shown: Streaming, cause: InterruptCause, what: str, dollars: float = 0.0
) -> None:
    figures = AnswerFigures(dollars=dollars)
    await session.record(ModelInterrupted(step, shown.text, cause, what, figures, reasoning=shown.thought))
