"""Asking the model: the prompt is built, and sent if there is room and budget for its answer."""

from contextlib import suppress
from hashlib import sha256

from msgspec.structs import replace

from agent_workbench.core.errors import ContextOverflow, ModelError
from agent_workbench.core.events import (
    Author,
    ContextFilled,
    EndpointPassed,
    ModelObserved,
    PromptBuilt,
    PromptPart,
    TroubleMet,
)
from agent_workbench.core.model import ModelFacts, ModelRequest, Purpose
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.engine.answer.grammar_choice import granted
from agent_workbench.engine.answer.streaming import stream
from agent_workbench.engine.compaction.full_context import fill, is_stuck
from agent_workbench.engine.prompt.messages import prompt_sha
from agent_workbench.engine.prompt.prompt_size import Drawn, draw_up, least_answer_tokens
from agent_workbench.engine.prompt.scratchpad import too_long
from agent_workbench.engine.prompt.step_history import count_answers
from agent_workbench.engine.recorder import Overtaken
from agent_workbench.engine.runtime.budget import dollars_left, tokens_left
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.task.task_end import roll_back

LEAST_ANSWER_TOKENS = 64
REFLEXION_TOKENS = 400


async def ask(session: SessionContext, purpose: Purpose) -> None:
    """Ask for a step or a reflexion. What stops it outside becomes an event; cancelling frees the server."""
    session.board.show_activity("waiting for the model")
    try:
        asked = False
        while not asked and not session.run.paused:
            drawn = await draw_up(session, await observe_model(session, purpose), purpose)
            with suppress(Overtaken):
                await _ask(session, drawn)
                asked = True
    except ContextOverflow as full:
        await _overflowed(session, purpose, full)
    except ModelError as error:
        await record_failure(session, purpose, error)


async def observe_model(session: SessionContext, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
    """Wait for who answers for `purpose` and journal what it says of itself, when that is news."""
    facts = await session.ports.model.observe(purpose)
    if facts != session.state.model_for(purpose):
        await session.record(ModelObserved(facts, purpose))
    return facts


async def record_failure(session: SessionContext, purpose: Purpose, error: ModelError) -> None:
    """Record that there is no answer: the next of the role's endpoints is asked, or the work waits."""
    if error.another:
        asked = session.state.model_for(purpose)
        await session.record(EndpointPassed(purpose, asked.endpoint if asked else "", str(error)))
    else:
        await session.record(TroubleMet("model", str(error), error.advice, error.lasting))


async def send(session: SessionContext, drawn: Drawn, answer_tokens: int) -> None:
    """Journal the prompt and stream its answer.

    Raises `ModelError`, and `Overtaken` with nothing recorded where the prompt is not the newest any more.
    """
    facts, purpose = drawn.facts, drawn.purpose
    held = facts.takes_grammar and facts.endpoint not in session.state.ungrammatical
    grammar = await granted(session, purpose) if held else ""
    run, chosen = session.run, session.settings.sampling.of(purpose)
    seed = seed_of(session.state) if chosen.seed is None else chosen.seed
    built = replace(_built(run, drawn, seed, grammar), sampling=chosen.sampling, answer_tokens=answer_tokens)
    await session.record(built, after=drawn.after)
    request = ModelRequest(
        messages=drawn.messages,
        purpose=purpose,
        grammar=grammar,
        answer_tokens=answer_tokens,
        answer_seconds=session.settings.model.answer_seconds,
        subject=run.task,
        sampling=chosen.sampling,
        seed=seed,
        prompt_tokens=drawn.size,
        dollars_left=dollars_left(run),
        answered=count_answers(run.history, purpose),
    )
    await stream(session, request)


def seed_of(state: SessionState) -> int:
    """Return the seed of the next answer: another at each prompt, and the same whenever the journal is the same."""
    digest = sha256(f"{state.session}:{state.seq + 1}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


def text_sha(text: str) -> str:
    """Return SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def _ask(session: SessionContext, drawn: Drawn) -> None:
    """Send the prompt if there is room and budget for its answer; else make room, or end the task."""
    run = session.run
    if size := await too_long(session, drawn.purpose):
        step, context = run.answered_step + 1, drawn.facts.context_tokens
        await session.record(ContextFilled(step, drawn.purpose, size, context, notes=True))
        return
    room = _room(run, drawn)
    if room is not None and room < least_answer_tokens(drawn.context_tokens):
        await fill(session, drawn.purpose, drawn.size, drawn.context_tokens, drawn.reserve)
        return
    if run.compaction_asked:
        size, context = drawn.size or drawn.tokens, drawn.facts.context_tokens
        await fill(session, drawn.purpose, size, context, drawn.reserve, Author.USER)
        return
    left = tokens_left(run, drawn.likely_size)
    if left is not None and left < LEAST_ANSWER_TOKENS:
        budget = run.definition.budget.tokens
        needs = f"the next prompt has {'' if drawn.size else 'about '}{drawn.likely_size} tokens"
        await roll_back(session, f"{run.tokens} tokens were used of the {budget} in the task's budget, and {needs}")
        return
    wanted = REFLEXION_TOKENS if drawn.purpose is Purpose.REFLEXION else session.settings.model.answer_tokens
    # A model that thinks first takes as much again for its thoughts.
    most = None if room is None else room // 2 if drawn.facts.thinks else room
    await send(session, drawn, min(each for each in (wanted, most, left) if each is not None))


def _room(run: TaskRun, drawn: Drawn) -> int | None:
    """Return how long the answer may be, so that a summary can still be asked for behind it.

    Where there is nothing left to sum up, what a summary would need is for the answer too: the next one is then ours.
    """
    if drawn.room is None:
        return None
    reserved = drawn.room - drawn.reserve
    tight = reserved < least_answer_tokens(drawn.context_tokens)
    return drawn.room if tight and is_stuck(run, drawn.context_tokens) else reserved


def _built(run: TaskRun, drawn: Drawn, seed: int, grammar: str) -> PromptBuilt:
    measured = zip(drawn.parts, drawn.counts, strict=True)
    parts = tuple(PromptPart(part.label, count, text_sha(part.text)) for part, count in measured)
    return PromptBuilt(
        step=run.answered_step + int(drawn.purpose is Purpose.EXECUTOR),
        purpose=drawn.purpose,
        messages=len(drawn.messages),
        tokens=drawn.tokens,
        sha=prompt_sha(drawn.messages),
        parts=parts[run.known_parts(drawn.purpose) :],
        endpoint=drawn.facts.endpoint,
        seed=seed,
        grammar_sha=text_sha(grammar) if grammar else "",
    )


async def _overflowed(session: SessionContext, purpose: Purpose, full: ContextOverflow) -> None:
    """Make room after the server refused a prompt as too long. What it knows of its context counts more than we do."""
    sent, facts = session.state.prompt, session.state.model_for(purpose)
    size = full.prompt_tokens or (sent.tokens if sent else 0)
    told = full.context_tokens or (facts.context_tokens if facts else 0)
    context = min(told, size) if told and size else told or size
    await fill(session, purpose, size, context, context)
