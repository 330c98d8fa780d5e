"""Request to the model: record the prompt, send it, and stream the answer."""

from hashlib import sha256

from msgspec.structs import replace

from agent_workbench.core.diagnostics import tier_of_label
from agent_workbench.core.errors import ModelError
from agent_workbench.core.events import (
    FAILING_FIRST,
    EndpointPassed,
    ModelObserved,
    ModelSwitched,
    PromptBuilt,
    PromptPart,
    TroubleMet,
)
from agent_workbench.core.model import ModelFacts, ModelRequest, Purpose
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.task_estimates import Complexity, complexity
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.answer.grammar_choice import choose_grammar
from agent_workbench.engine.answer.streaming import stream
from agent_workbench.engine.prompt.messages import prompt_sha
from agent_workbench.engine.prompt.prompt_size import PromptDraft
from agent_workbench.engine.prompt.step_history import count_answers, failed_attempts
from agent_workbench.engine.runtime.budget import dollars_left, seconds_left
from agent_workbench.engine.runtime.session_context import SessionContext


async def observe_model(session: SessionContext, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
    """Wait for the model of `purpose`, and record its facts if they changed."""
    # A server may load a model for minutes, and the user may choose another one meanwhile.
    facts, observed = await _observe(session, purpose)
    while session.state.switched != observed:
        facts, observed = await _observe(session, purpose)
    return facts


async def _observe(session: SessionContext, purpose: Purpose) -> tuple[ModelFacts, ModelSwitched | None]:
    """Return the facts of a model, and the choice by which it was asked."""
    switched = session.state.switched
    facts = await session.ports.model.observe(purpose, _complexity(session.state, purpose))
    if session.state.switched == switched:
        session.publisher.show_model_ready(tier_of_label(session.settings, facts.endpoint))
        if facts != session.state.model_for(purpose):
            await session.record(ModelObserved(facts, purpose))
    return facts, switched


async def record_failure(session: SessionContext, purpose: Purpose, error: ModelError) -> None:
    """Record that no answer came. The next endpoint of the role is asked, or the session waits for a retry."""
    if error.another:
        asked = session.state.model_for(purpose)
        await session.record(EndpointPassed(purpose, asked.endpoint if asked else "", str(error)))
    else:
        await session.record(TroubleMet("model", str(error), error.advice, error.lasting))


async def send(session: SessionContext, draft: PromptDraft, answer_tokens: int) -> None:
    """Record the prompt and stream its answer.

    Raises `ModelError`. Raises `Overtaken`, and records nothing, if an event came after the draft.
    """
    facts, purpose = draft.facts, draft.purpose
    held = facts.takes_grammar and facts.endpoint not in session.state.ungrammatical
    grammar = await choose_grammar(session, purpose) if held else ""
    run, chosen = session.run, session.settings.sampling.of(purpose)
    seed = seed_of(session.state) if chosen.seed is None else chosen.seed
    failed = failed_attempts(run) if purpose is Purpose.EXECUTOR else 0
    sampling = chosen.sampling(failed, thinks=facts.thinks)
    built = replace(prompt_event(run, draft, seed, grammar), sampling=sampling, answer_tokens=answer_tokens)
    await session.record(built, after=draft.after)
    request = ModelRequest(
        messages=draft.messages,
        purpose=purpose,
        grammar=grammar,
        answer_tokens=answer_tokens,
        answer_seconds=session.settings.model.answer_seconds,
        subject=run.task,
        sampling=sampling,
        seed=seed,
        prompt_tokens=draft.size,
        dollars_left=dollars_left(run),
        answered=count_answers(run.history, purpose),
    )
    await stream(session, request, seconds=seconds_left(run), guard=guard_of(run, request))


def guard_of(run: TaskRun, request: ModelRequest) -> AnswerGuard | None:
    """Return the guard of an answer in a run; None for runs of older versions, whose answers went on to their end."""
    if run.wording < FAILING_FIRST:
        return None
    return AnswerGuard(request, by_name(run.specs) if request.purpose is Purpose.EXECUTOR else {})


def _complexity(state: SessionState, purpose: Purpose) -> Complexity:
    """Return the complexity of the task that the answer is for; what serves no task is simple."""
    if state.run is None or purpose in {Purpose.PLANNER, Purpose.CHAT}:
        return Complexity.SIMPLE
    return complexity(state.run.definition.intent, tasks=1)


def seed_of(state: SessionState) -> int:
    """Return the seed of the next answer: different for each prompt, and reproducible from the journal."""
    digest = sha256(f"{state.session}:{state.seq + 1}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


def text_sha(text: str) -> str:
    """Return SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def prompt_event(run: TaskRun, draft: PromptDraft, seed: int = 0, grammar: str = "") -> PromptBuilt:
    """Return the event of a draft that is sent."""
    measured = zip(draft.parts, draft.counts, strict=True)
    parts = tuple(PromptPart(part.label, count, text_sha(part.text)) for part, count in measured)
    return PromptBuilt(
        step=run.answered_step + int(draft.purpose is Purpose.EXECUTOR),
        purpose=draft.purpose,
        messages=len(draft.messages),
        tokens=draft.tokens,
        sha=prompt_sha(draft.messages),
        parts=parts[run.known_parts(draft.purpose) :],
        endpoint=draft.facts.endpoint,
        seed=seed,
        grammar_sha=text_sha(grammar) if grammar else "",
    )
