"""Request to the planner: the repository is surveyed, the prompt recorded and sent, the answer recorded."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from itertools import islice

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
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.path_kinds import is_test
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.state.work import Planning
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.answer.model_request import observe_model, record_failure, seed_of, text_sha
from agent_workbench.engine.answer.streaming import AnswerLog, stream
from agent_workbench.engine.planning.plan_answer import CHECK_GRAMMAR, plan_grammar
from agent_workbench.engine.planning.plan_prompt import planner_messages
from agent_workbench.engine.prompt.messages import prompt_sha
from agent_workbench.engine.prompt.prompt_size import prompt_size
from agent_workbench.engine.runtime.publisher import show_index
from agent_workbench.engine.runtime.session_context import SessionContext

ANSWER_TOKENS = 1_500
MOST_MISSES = 3
SUBJECT, CHECK_SUBJECT = "plan", "check"
"""Subjects of the requests; a scripted model finds its answers by them."""

FOUND_PIECES = 40
LISTED_FILES = 100
MOST_CODE_TOKENS, TEST_SHARE = 6_000, 4
UNKNOWN_CONTEXT_TOKENS = 8_192
OTHER_TOKENS = 2_000
"""Room for rules, file names and tasks."""
CHARS_PER_TOKEN = 3
FIRST_FILES, FIRST_LINES, FIRST_BYTES = 4, 40, 4_000
"""Files, and lines of each, that are shown where the search finds nothing in them."""
_SOURCE = re.compile(
    r"\.(py|pyi|js|mjs|cjs|jsx|ts|tsx|go|rs|java|kt|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|lua|ex|exs|erl|hs|ml|clj|sh)$"
)


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


async def survey_repo(session: SessionContext, planning: Planning) -> None:
    """Record what the planner sees of the repository: tracked files alone, as they are in the user's checkout."""
    session.publisher.show_activity("waiting for the model")
    facts = await observe_model(session, Purpose.PLANNER)
    session.publisher.show_activity("searching the code for the plan")
    workspaces = session.ports.workspaces
    own = (f"{session.settings.memory.dir.strip('/')}/", ".agent.yml")
    tracked = [path for path in await workspaces.list_tracked() if not path.startswith(own)]
    sources = await workspaces.checkout_files()
    found = await _found(session, sources, planning.goal)
    # The checkout has untracked files too, which may be private.
    known = set(tracked)
    pieces = [chunk for chunk in found if chunk.path in known]
    pieces += await _beginnings(sources, [path for path in tracked if path not in {chunk.path for chunk in pieces}])
    context = facts.context_tokens or UNKNOWN_CONTEXT_TOKENS
    reserved = OTHER_TOKENS + ANSWER_TOKENS * (2 if facts.thinks else 1)
    room = max(0, min(MOST_CODE_TOKENS, context - reserved))
    tests = _fitting((chunk for chunk in pieces if is_test(chunk.path)), room // TEST_SHARE)
    code = _fitting((chunk for chunk in pieces if not is_test(chunk.path)), room - room // TEST_SHARE)
    nearest = dict.fromkeys(chunk.path for chunk in pieces)
    files = tuple(islice(dict.fromkeys((*nearest, *tracked)), LISTED_FILES))
    commands = filter(None, (session.settings.test_command, session.settings.lint_command))
    await session.record(PlanSurveyed(code, tests, tuple(commands), files, max(0, len(tracked) - len(files))))


async def _found(session: SessionContext, sources: Sources, goal: str) -> Sequence[Chunk]:
    """Return the pieces found for the goal; the progress of the index is published meanwhile."""
    retriever = session.ports.retriever
    progress = asyncio.create_task(show_index(session.publisher, retriever, sources))
    try:
        return await retriever.search(sources, CodeQuery(goal), FOUND_PIECES)
    finally:
        progress.cancel()
        await asyncio.gather(progress, return_exceptions=True)


async def _beginnings(sources: Sources, paths: Sequence[str]) -> list[Chunk]:
    """Return the first lines of some files: few words of a goal may be in the code of a small repository."""
    code = islice((path for path in paths if _SOURCE.search(path) and not is_test(path)), FIRST_FILES)
    tests = islice((path for path in paths if _SOURCE.search(path) and is_test(path)), FIRST_FILES)
    pieces = []
    for path, data in (await sources.read_files([*code, *tests])).items():
        text = data[:FIRST_BYTES].decode("utf-8", "replace")
        lines = text.split("\n")[:FIRST_LINES]
        if "\0" not in text and text.strip():
            pieces.append(Chunk(path, 1, len(lines), "\n".join(lines).rstrip("\n"), 0.0))
    return pieces


def _fitting(chunks: Iterable[Chunk], room: int) -> tuple[Chunk, ...]:
    """Return the pieces, best first, that fit into `room` tokens."""
    kept: list[Chunk] = []
    for chunk in chunks:
        tokens = chunk.tokens or len(chunk.text) // CHARS_PER_TOKEN
        if tokens <= room:
            kept.append(chunk)
            room -= tokens
    return tuple(kept)
