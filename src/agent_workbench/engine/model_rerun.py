"""Re-run against a live model: every prompt of a session is asked again and the answers are compared."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Protocol

from agent_workbench.core.errors import ModelUnavailable, WorkspaceError
from agent_workbench.core.events import InterruptCause, ModelAnswered, ModelInterrupted, Recorded
from agent_workbench.core.history.replay_marks import PromptDifference, ReproducedPrompt
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerEnd, AnswerFigures, ModelRequest, Purpose, StopCause, TextDelta
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import Settings
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.answer.grammar_choice import fixed_grammar, possible_steps_grammar
from agent_workbench.engine.answer.model_request import guard_of, text_sha
from agent_workbench.engine.rerun import RecordedPrompt, messages_of, prompts_of, short_diff
from agent_workbench.engine.runtime.scope import TaskBounds, TaskFiles

CUT = "… cut at the token limit"


class RecordedTrees(Protocol):
    """Source of the files of recorded trees."""

    async def recorded_files(self, tree: str) -> TaskFiles:
        """Return the files of a recorded tree; raise `WorkspaceError` if it is gone."""


async def rerun_with_model(
    events: Iterable[Recorded], model: Model, trees: RecordedTrees, settings: Settings
) -> AsyncGenerator[ReproducedPrompt]:
    """Yield each prompt compared with the model's present answer; raise `ModelError`.

    It is asked with the same messages, seed, sampling and grammar, in the same order; the grammar is made again from
    the journal and the recorded files. A prompt without a whole answer in the journal is not asked.
    """
    for asked in prompts_of(events):
        then = asked.answer
        if then is None or (isinstance(then, ModelInterrupted) and then.cause is not InterruptCause.LENGTH):
            remark = "no whole answer is recorded"
            yield ReproducedPrompt(asked.number, asked.seq, asked.built, compared=False, remark=remark)
            continue
        grammar, remark = await _grammar(asked, trees, settings)
        request = _request(asked, grammar, settings)
        now, figures = await _answer(model, request, _guard(asked, request))
        difference = _difference(_said(then), now)
        if difference is not None and figures.cached_tokens != then.figures.cached_tokens:
            remark = "; ".join(filter(None, (remark, _cache_remark(then.figures, figures))))
        yield ReproducedPrompt(asked.number, asked.seq, asked.built, difference, remark=remark)


def _request(asked: RecordedPrompt, grammar: str, settings: Settings) -> ModelRequest:
    built, run, config = asked.built, asked.before.run, asked.before.config
    most = built.answer_tokens or (config.answer_tokens if config is not None else settings.model.answer_tokens)
    return ModelRequest(
        messages=messages_of(asked),
        purpose=built.purpose,
        grammar=grammar,
        answer_tokens=most,
        answer_seconds=config.answer_seconds if config is not None else settings.model.answer_seconds,
        subject=run.task if run is not None else "",
        sampling=built.sampling,
        seed=built.seed,
        prompt_tokens=built.tokens,
    )


async def _grammar(asked: RecordedPrompt, trees: RecordedTrees, settings: Settings) -> tuple[str, str]:
    """Return the grammar of the recorded answer, and a remark if it cannot be rebuilt exactly."""
    recorded, run = asked.built.grammar_sha, asked.before.run
    if not recorded or run is None:
        return "", ""
    if asked.built.purpose is not Purpose.EXECUTOR:
        made = fixed_grammar(asked.built.purpose)
    else:
        try:
            files = await trees.recorded_files(run.tree)
            made = await possible_steps_grammar(TaskBounds(settings, run.definition, asked.before), files)
        except WorkspaceError as error:
            return "", f"asked without a grammar, it could not be made again: {error}"
    return made, "" if text_sha(made) == recorded else "the grammar made again is another one than the recorded"


def _guard(asked: RecordedPrompt, request: ModelRequest) -> AnswerGuard | None:
    """Return the guard that the recorded answer had."""
    run = asked.before.run
    return guard_of(run, request) if run is not None else AnswerGuard(request)


async def _answer(model: Model, request: ModelRequest, guard: AnswerGuard | None) -> tuple[str, AnswerFigures]:
    said: list[str] = []
    async with aclosing(model.answer(request)) as items:
        async for item in items:
            if isinstance(item, TextDelta):
                said.append(item.text)
                stop = guard.stop(item, Streaming(text="".join(said))) if guard is not None else None
                if stop is not None:
                    return stop.text + (f"\n… {stop.what}" if stop.what else ""), AnswerFigures()
            if isinstance(item, AnswerEnd):
                return "".join(said) + (f"\n{CUT}" if item.stop is StopCause.LENGTH else ""), item.figures
    raise ModelUnavailable("the model's answer has no end", advice="try again", partial="".join(said))


def _cache_remark(then: AnswerFigures, now: AnswerFigures) -> str:
    """Return a remark if another part of the prompt came from the cache, which can change single tokens by rounding."""
    return f"the server had {now.cached_tokens} of its tokens in the cache, {then.cached_tokens} were recorded"


def _said(then: ModelAnswered | ModelInterrupted) -> str:
    return then.text if isinstance(then, ModelAnswered) else f"{then.partial}\n{CUT}"


def _difference(then: str, now: str) -> PromptDifference | None:
    if then == now:
        return None
    diff = short_diff(then.splitlines(), now.splitlines())
    return PromptDifference("the answer is another one", "", diff or "only in how its lines end")
