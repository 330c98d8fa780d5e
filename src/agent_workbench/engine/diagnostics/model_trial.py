"""Test of a model with ten small questions: form, correctness, speed, cache, grammar, seed."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from msgspec.structs import replace

from agent_workbench.core.diagnostics.model_trials import ModelReport, QuestionKind, TrialAnswer
from agent_workbench.core.errors import ModelError, ModelUnavailable
from agent_workbench.core.model import (
    AnswerEnd,
    AnswerFigures,
    Message,
    ModelFacts,
    ModelRequest,
    Purpose,
    Role,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.model import Model
from agent_workbench.core.state.prompt_reads import PromptReads, reads_of
from agent_workbench.engine.diagnostics.model_questions import (
    Question,
    grammars,
    opening,
    plan_messages,
    purpose_of,
    questions,
)

SECONDS = 600.0
_ANSWER_TOKENS = 500
_SEED = 20_260_101
# No model gives this answer without the grammar.
_PROOF = 'root ::= "kept " [0-7] "-" [0-7] " by grammar"\n'
_PROOF_BEGINS, _PROOF_ENDS = "kept ", " by grammar"
_REPEATED = 2
OnProgress = Callable[[str], None]


async def try_model(model: Model, clock: Clock, on_progress: OnProgress, seconds: float = SECONDS) -> ModelReport:
    """Ask all questions within `seconds` and return the report; after the time it has the answers so far.

    Raises `ModelError` when nobody answers at all.
    """
    trial = _Trial(model, clock, on_progress)
    try:
        async with asyncio.timeout(seconds):
            on_progress("waiting for the model")
            trial.facts = await model.observe()
            await trial.run()
    except TimeoutError as error:
        if trial.facts is None:
            raise ModelUnavailable(
                f"the model was not ready within {seconds:g} s", advice="give it more time with --seconds"
            ) from error
        trial.stopped = f"{seconds:g} s were over"
    except ModelError as error:
        if trial.facts is None:
            raise
        trial.stopped = str(error)
    return trial.report(trial.facts)


class _Trial:
    def __init__(self, model: Model, clock: Clock, on_progress: OnProgress) -> None:
        self.facts: ModelFacts | None = None
        self._model = model
        self._clock = clock
        self._on_progress = on_progress
        self._asked: list[TrialAnswer] = []
        self._reads: PromptReads | None = None
        self._keeps: bool | None = None
        self._repeats: tuple[bool | None, bool | None] = (None, None)
        self.stopped = ""

    async def run(self) -> None:
        """Ask the ten questions, then test grammar and seed."""
        held = await asyncio.to_thread(grammars)
        messages: tuple[Message, ...] = (opening(),)
        before: AnswerFigures | None = None
        for number, question in enumerate(questions(), 1):
            self._on_progress(f"question {number} of 10: {question.name}")
            alone = question.kind is QuestionKind.PLAN
            if not alone:
                messages = (*messages, Message(Role.USER, question.word))
            request = self._request(plan_messages() if alone else messages, held[purpose_of(question)], question)
            answer = await self._ask(request, question)
            self._asked.append(answer)
            if not alone:
                before = self._count_reads(answer, before)
                messages = (*messages, Message(Role.ASSISTANT, answer.text or "…"))
        await self._try_grammar(messages[:2])
        await self._try_seed(messages[:2], held[Purpose.EXECUTOR])
        self.facts = await self._model.observe()

    def report(self, facts: ModelFacts) -> ModelReport:
        """Return the report."""
        reads = self._reads if facts.tells_cache else None
        asked = tuple(self._asked)
        return ModelReport(facts, asked, reads, self._keeps_grammar(facts), *self._repeats, self.stopped)

    def _keeps_grammar(self, facts: ModelFacts) -> bool | None:
        if not facts.takes_grammar:
            return False
        return None if self._keeps is None else self._keeps and all(each.kept for each in self._asked if each.ended)

    def _request(self, messages: tuple[Message, ...], grammar: str, question: Question) -> ModelRequest:
        takes = self.facts is not None and self.facts.takes_grammar
        return ModelRequest(
            messages=messages,
            purpose=purpose_of(question),
            grammar=grammar if takes else "",
            answer_tokens=_ANSWER_TOKENS,
            seed=_SEED + len(self._asked),
            subject="model test",
        )

    async def _ask(self, request: ModelRequest, question: Question) -> TrialAnswer:
        begun = self._clock.monotonic_seconds()
        first = 0.0
        text = thought = ""
        end: AnswerEnd | None = None
        async with aclosing(self._model.answer(request)) as items:
            async for item in items:
                first = first or (self._clock.monotonic_seconds() - begun if _is_token(item) else 0.0)
                match item:
                    case TextDelta():
                        text += item.text
                    case ThoughtDelta():
                        thought += item.text
                    case AnswerEnd():
                        end = item
        seconds = self._clock.monotonic_seconds() - begun
        ended = end is not None and end.stop is StopCause.END
        found = question.judge(text)
        return TrialAnswer(
            question.name,
            question.kind,
            ended,
            ended and found.valid,
            found.kept,
            ended and found.right,
            found.why if ended else "it was cut at the token limit",
            text,
            thought,
            seconds,
            first,
            end.figures if end else AnswerFigures(),
        )

    def _count_reads(self, answer: TrialAnswer, before: AnswerFigures | None) -> AnswerFigures | None:
        """Count the tokens read for a grown prompt; return the figures that the next prompt is compared with."""
        figures = answer.figures
        if before is not None and figures.prompt_tokens:
            reads = reads_of(figures, before)
            self._reads = self._reads.plus(reads) if self._reads else reads
        # A thought is not sent back, so the answer moves to another position.
        return replace(figures, answer_tokens=0) if answer.thought else figures

    async def _try_grammar(self, messages: tuple[Message, ...]) -> None:
        if self.facts is None or not self.facts.takes_grammar:
            return
        self._on_progress("whether a grammar is kept to")
        said = await self._say(ModelRequest(messages=messages, grammar=_PROOF, answer_tokens=60, seed=_SEED))
        self._keeps = said.startswith(_PROOF_BEGINS) and said.endswith(_PROOF_ENDS)

    async def _try_seed(self, messages: tuple[Message, ...], grammar: str) -> None:
        self._on_progress("whether a seed repeats an answer")
        takes = self.facts is not None and self.facts.takes_grammar
        request = ModelRequest(messages=messages, grammar=grammar if takes else "", answer_tokens=120, seed=_SEED)
        exact = [await self._say(replace(request, exact=True)) for _ in range(_REPEATED)]
        cached = [await self._say(request) for _ in range(_REPEATED)]
        self._repeats = (len(set(exact)) == 1, len({*exact, *cached}) == 1)

    async def _say(self, request: ModelRequest) -> str:
        text = ""
        async with aclosing(self._model.answer(request)) as items:
            async for item in items:
                if isinstance(item, TextDelta | ThoughtDelta):
                    text += item.text if isinstance(item, TextDelta) or request.grammar != _PROOF else ""
        return text


def _is_token(item: object) -> bool:
    return isinstance(item, TextDelta | ThoughtDelta)
