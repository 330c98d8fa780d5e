"""Streaming of the model's answer: published as it arrives, recorded when it ends or breaks."""

import asyncio
from contextlib import aclosing
from typing import Protocol

from msgspec.structs import replace

from agent_workbench.core.background import uninterrupted
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.events import ActionRejected, EndpointChosen, InterruptCause, ModelAnswered, ModelInterrupted
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import (
    AnswerCost,
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    EndpointChoice,
    ModelRequest,
    PromptProgress,
    Purpose,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.runtime.session_context import SessionContext

NEVER_WRITTEN = "it holds the value of a secret environment variable, which is never written anywhere"
OUT_OF_TIME = "stopped: the task has used its time"
ACTIVITIES = {
    Purpose.REFLEXION: "reflecting",
    Purpose.SUMMARY: "summarizing",
    Purpose.PLANNER: "planning",
    Purpose.CHAT: "answering",
}


class AnswerLog(Protocol):
    """Recorder of one answer: of its end, or of its interruption with the price so far."""

    async def ended(self, shown: Streaming, end: AnswerEnd) -> None:
        """Record a whole answer, or one that was cut."""

    async def broken(self, shown: Streaming, cause: InterruptCause, why: str, dollars: float) -> None:
        """Record what came of an answer that was stopped, or whose server died."""


async def stream(
    session: SessionContext,
    request: ModelRequest,
    log: AnswerLog | None = None,
    seconds: float | None = None,
    guard: AnswerGuard | None = None,
) -> None:
    """Publish an answer as it arrives, and have `log` (None: that of a step) record it; raise `ModelError`.

    An answer that takes longer than `seconds` is stopped and recorded so far, with the time that it took. `guard` may
    end it sooner.
    """
    log = log or StepAnswerLog(session, request.purpose)
    started = session.ports.clock.monotonic_seconds()
    shown = Streaming()
    end: AnswerEnd | None = None
    session.publisher.show_activity(ACTIVITIES.get(request.purpose, "thinking"))
    try:
        try:
            async with asyncio.timeout(seconds), aclosing(session.ports.model.answer(request)) as items:
                async for item in items:
                    if isinstance(item, AnswerEnd):
                        end = item
                        break
                    if isinstance(item, EndpointChoice):
                        await session.record(EndpointChosen(request.purpose, item))
                    shown = _with(shown, item, session.ports.clock.monotonic_seconds() - started)
                    session.publisher.show_streaming(shown)
                    if guard is not None and (stop := guard.stop(item, shown)):
                        shown = replace(shown, text=stop.text, thought=stop.thought)
                        facts = session.state.model_for(request.purpose)
                        endpoint, model = (facts.endpoint, facts.model) if facts is not None else ("", "")
                        end = AnswerEnd(stop.cause, _measured(shown, request), endpoint, model, stop.what)
                        break
            if end is None:
                raise ModelUnavailable("the model's answer has no end", advice="try again", partial=shown.text)
        except ModelUnavailable as error:
            died = replace(shown, text=error.partial or shown.text)
            await log.broken(died, InterruptCause.DIED, str(error), error.dollars)
            raise
        except TimeoutError:
            # What is left of the task's time is gone with it, whatever the rounding.
            late = replace(shown, seconds=(seconds or 0.0) + 0.001)
            await log.broken(late, InterruptCause.STOPPED, OUT_OF_TIME, shown.dollars)
            return
        except asyncio.CancelledError:
            await log.broken(shown, InterruptCause.STOPPED, "stopped by the user", shown.dollars)
            raise
        # An answer that came whole is recorded whole, with its rejection, whoever stops it now.
        await uninterrupted(log.ended(shown, end))
    finally:
        session.publisher.show_activity("")


def cut_of(end: AnswerEnd) -> tuple[InterruptCause, str]:
    """Return the cause and the words for an answer that was cut."""
    if end.stop is StopCause.REPETITION:
        return InterruptCause.REPETITION, end.what
    return InterruptCause.LENGTH, "cut at the token limit"


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
        case AnswerEnd() | EndpointChoice():
            return shown


def _measured(shown: Streaming, request: ModelRequest) -> AnswerFigures:
    """Return the figures of an answer that was stopped: its server did not tell them."""
    return AnswerFigures(
        prompt_tokens=shown.prompt_total or request.prompt_tokens,
        cached_tokens=shown.prompt_cached,
        answer_tokens=shown.tokens,
        dollars=shown.dollars,
    )


class StepAnswerLog:
    """Records the answer of a task's step, reflexion or summary."""

    def __init__(self, session: SessionContext, purpose: Purpose) -> None:
        self._session = session
        self._purpose = purpose
        self._step = session.run.step

    async def ended(self, shown: Streaming, end: AnswerEnd) -> None:
        """Record the answer; one with a secret is rejected."""
        session, step, text = self._session, self._step, shown.text
        if end.stop is not StopCause.END:
            cause, cut = cut_of(end)
            await session.record(
                ModelInterrupted(step, text, cause, cut, end.figures, end.endpoint, end.model, shown.thought)
            )
            return
        await session.record(ModelAnswered(step, text, end.figures, end.endpoint, end.model, shown.thought))
        answer = session.run.answer
        if self._purpose is Purpose.EXECUTOR and answer is not None and answer.text != _joined(text):
            await session.record(ActionRejected(step, NEVER_WRITTEN))

    async def broken(self, shown: Streaming, cause: InterruptCause, why: str, dollars: float) -> None:
        """Record the interrupted answer."""
        used = shown.seconds if why == OUT_OF_TIME else 0.0
        figures = AnswerFigures(dollars=dollars, answer_seconds=used)
        broken = ModelInterrupted(self._step, shown.text, cause, why, figures, reasoning=shown.thought)
        await self._session.record(broken)


def _joined(text: str) -> str:
    """Return the text with surrogate pairs joined, as a journal keeps it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
