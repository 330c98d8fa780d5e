"""Request to the planner: its prompt is recorded and sent, and its answer recorded."""

from agent_workbench.core.errors import ContextOverflow, ModelError
from agent_workbench.core.events import (
    InterruptCause,
    PlanAnswered,
    PlanPrompted,
    PlanRejected,
    PlanSurveyed,
    TroubleMet,
)
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerEnd, AnswerFigures, Message, ModelFacts, ModelRequest, Purpose, StopCause
from agent_workbench.core.state.work import Planning
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.answer.model_request import observe_model, record_failure, seed_of, text_sha
from agent_workbench.engine.answer.streaming import AnswerLog, stream
from agent_workbench.engine.planning.plan_answer import CHECK_GRAMMAR, plan_grammar
from agent_workbench.engine.planning.plan_prompt import planner_messages
from agent_workbench.engine.prompt.messages import prompt_sha
from agent_workbench.engine.prompt.prompt_size import prompt_size
from agent_workbench.engine.runtime.session_context import SessionContext

ANSWER_TOKENS = 1_500
MOST_MISSES = 3
SUBJECT, CHECK_SUBJECT = "plan", "check"
"""Subjects of the requests; a scripted model finds its answers by them."""


async def ask_plan(session: SessionContext, planning: Planning) -> None:
    """Ask for a plan. Errors of the endpoint become events; cancelling frees the server."""
    session.publisher.show_activity("waiting for the model")
    try:
        facts = await observe_model(session, Purpose.PLANNER)
        messages = planner_messages(planning, session.state.plan)
        wanted = CHECK_GRAMMAR if planning.check_for else plan_grammar(planning.wording)
        grammar = wanted if facts.takes_grammar and facts.endpoint not in session.state.ungrammatical else ""
        await _send(session, planning, facts, messages, grammar)
    except ContextOverflow as full:
        await _overflowed(session, planning, full)
    except ModelError as error:
        await record_failure(session, Purpose.PLANNER, error)


async def _send(
    session: SessionContext, planning: Planning, facts: ModelFacts, messages: tuple[Message, ...], grammar: str
) -> None:
    chosen = session.settings.sampling.of(Purpose.PLANNER)
    sampling = chosen.sampling(thinks=facts.thinks)
    seed = seed_of(session.state) if chosen.seed is None else chosen.seed
    counts = await session.ports.model.count_tokens([each.text for each in messages], Purpose.PLANNER)
    room = facts.context_tokens - (sum(counts) or prompt_size(facts, (), messages, 0))
    if facts.context_tokens and room < ANSWER_TOKENS and halved(planning.survey or PlanSurveyed()):
        raise ContextOverflow(f"{room} of {facts.context_tokens} tokens would be left for the plan")
    built = PlanPrompted(
        planning.step + 1,
        sum(counts),
        prompt_sha(messages),
        facts.endpoint,
        seed,
        text_sha(grammar) if grammar else "",
        sampling,
        ANSWER_TOKENS,
    )
    await session.record(built)
    request = ModelRequest(
        messages=messages,
        purpose=Purpose.PLANNER,
        grammar=grammar,
        answer_tokens=ANSWER_TOKENS,
        answer_seconds=session.settings.model.answer_seconds,
        subject=CHECK_SUBJECT if planning.check_for else SUBJECT,
        sampling=sampling,
        seed=seed,
    )
    await stream(session, request, PlanAnswerLog(session, built.step), guard=AnswerGuard(request))


async def _overflowed(session: SessionContext, planning: Planning, full: ContextOverflow) -> None:
    """Show the planner less of the repository; without anything to leave out the session waits for the user."""
    less = halved(planning.survey or PlanSurveyed())
    if less is None:
        await session.record(TroubleMet("model", str(full), "ask for a smaller goal, or raise context_tokens"))
    else:
        await session.record(less)


def halved(survey: PlanSurveyed) -> PlanSurveyed | None:
    """Return the survey with half of its pieces and names, None if there is nothing to leave out."""
    if not (survey.code or survey.tests or survey.files):
        return None
    kept = survey.files[: len(survey.files) // 2]
    return PlanSurveyed(
        survey.code[: len(survey.code) // 2],
        survey.tests[: len(survey.tests) // 2],
        survey.commands,
        kept,
        survey.more_files + len(survey.files) - len(kept),
    )


async def reject_answer(session: SessionContext, step: int, reason: str) -> None:
    """Record that an answer is no plan; after `MOST_MISSES` of them in a row the session waits for the user."""
    await session.record(PlanRejected(step, reason))
    planning = session.state.open_planning
    if planning is not None and planning.misses >= MOST_MISSES:
        what, advice = "plan", "try again, or ask for it in other words"
        if planning.check_for:
            what, advice = "check", "try again, or abort this and start the task without one"
        await session.record(TroubleMet("model", f"the model wrote no {what}: {reason}", advice))


class PlanAnswerLog(AnswerLog):
    """Records the planner's answer."""

    def __init__(self, session: SessionContext, step: int) -> None:
        self._session = session
        self._step = step

    async def ended(self, shown: Streaming, end: AnswerEnd) -> None:
        """Record the answer; one that was cut is rejected."""
        answer = PlanAnswered(self._step, shown.text, end.figures, end.endpoint, end.model, shown.thought)
        await self._session.record(answer)
        if end.stop is StopCause.LENGTH:
            await reject_answer(self._session, self._step, f"it was cut at the limit of {ANSWER_TOKENS} tokens")
        elif end.stop is StopCause.REPETITION:
            await reject_answer(self._session, self._step, f"it was {end.what}")

    async def broken(self, shown: Streaming, cause: InterruptCause, why: str, dollars: float) -> None:
        """Record the interrupted answer, which is never read."""
        figures = AnswerFigures(dollars=dollars)
        await self._session.record(
            PlanAnswered(self._step, shown.text, figures, reasoning=shown.thought, stopped=f"{cause}: {why}")
        )
