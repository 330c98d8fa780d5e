"""Request to the model: the prompt is journaled and sent, and its answer streamed."""

from hashlib import sha256

from msgspec.structs import replace

from agent_workbench.core.errors import ModelError
from agent_workbench.core.events import (
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
from agent_workbench.engine.prompt.messages import prompt_sha
from agent_workbench.engine.prompt.prompt_size import Drawn
from agent_workbench.engine.prompt.step_history import count_answers
from agent_workbench.engine.runtime.budget import dollars_left
from agent_workbench.engine.runtime.session_context import SessionContext


async def observe_model(session: SessionContext, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
    """Wait for the model of `purpose`, and record its facts if they changed."""
    facts = await session.ports.model.observe(purpose)
    if facts != session.state.model_for(purpose):
        await session.record(ModelObserved(facts, purpose))
    return facts


async def record_failure(session: SessionContext, purpose: Purpose, error: ModelError) -> None:
    """Record a missing answer: the next endpoint of the role is asked, or the work waits."""
    if error.another:
        asked = session.state.model_for(purpose)
        await session.record(EndpointPassed(purpose, asked.endpoint if asked else "", str(error)))
    else:
        await session.record(TroubleMet("model", str(error), error.advice, error.lasting))


async def send(session: SessionContext, drawn: Drawn, answer_tokens: int) -> None:
    """Record the prompt and stream its answer.

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
    """Return the seed of the next answer: different for each prompt, and reproducible from the journal."""
    digest = sha256(f"{state.session}:{state.seq + 1}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


def text_sha(text: str) -> str:
    """Return SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
