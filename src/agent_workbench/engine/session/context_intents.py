"""Intents about the next request: remarks, pinned and dropped code, compaction; and the models of the servers."""

from agent_workbench.core.diagnostics import endpoint_named
from agent_workbench.core.events import (
    ChunkDropped,
    ChunkPinned,
    CompactionAsked,
    ContextFilled,
    EndpointPassed,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    ModelSwitched,
    PromptBuilt,
    RetryAsked,
    SessionForked,
    SessionResumed,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.intents import (
    MOST_SAID_CHARS,
    ChooseSkill,
    CompactContext,
    DropChunk,
    LoadModel,
    PinChunk,
    SayToModel,
    SwitchModel,
    UnloadModel,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import Accepted, Outcome, PromptPreviewed, Refused
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.prompt_reads import is_switched_since, reading_speed
from agent_workbench.core.state.session_state import ENDED, Phase, SessionState, TaskRun
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.engine.answer.model_request import observe_model, prompt_event
from agent_workbench.engine.chat.chat_intents import REDACTED, say_in_chat
from agent_workbench.engine.prompt.prompt_size import draft_prompt
from agent_workbench.engine.prompt.prompt_text import CUT_CHARS
from agent_workbench.engine.prompt.step_history import answers_since_compaction, shown_at
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.task.code_lookup import pin_mentions, pinned_chunk, read_code
from agent_workbench.engine.task.skill_choice import change_skill

NO_TASK = "no task is being worked on, so nobody would read that"
PURPOSES = {Phase.REFLECTING: Purpose.REFLEXION, Phase.COMPACTING: Purpose.SUMMARY}
ContextIntent = SayToModel | PinChunk | DropChunk | ChooseSkill | CompactContext

ANSWERING = "the model is answering; wait until it has ended, or stop it first"
_NAME_CHARS = 200


async def handle_context(session: SessionContext, intent: ContextIntent) -> Outcome:
    """Record a change of the context, or refuse it with the reason.

    Raises `WorkspaceError`, and `ConfigError` for an unknown skill.
    """
    run, main = session.state.run, session.state.main
    if isinstance(main, Chat) and isinstance(intent, SayToModel):
        return await say_in_chat(session, main, intent.text.strip())
    if run is None or run.phase in ENDED:
        return Refused(NO_TASK)
    match intent:
        case SayToModel():
            return await _say(session, run, intent.text.strip())
        case PinChunk():
            return await _pin(session, run, intent)
        case DropChunk():
            return await _drop(session, run, intent.place)
        case ChooseSkill():
            return await change_skill(session, run, intent)
        case CompactContext():
            return await _compact(session, run)


async def preview_prompt(session: SessionContext) -> Outcome:
    """Return the prompt that is sent when the user resumes the task; raise `ModelError`."""
    run = session.state.run
    if run is None or not run.held:
        return Refused("no prompt waits to be sent")
    purpose = PURPOSES.get(run.phase, Purpose.EXECUTOR)
    draft = await draft_prompt(session, await observe_model(session, purpose), purpose)
    newest = (recorded.event for run in reversed(session.state.runs) for recorded in reversed(run.history))
    speed = reading_speed(newest, draft.facts) or await session.ports.past_speed(draft.facts)
    # What an earlier prompt shares with this one is in the server's cache, but not in that of another model.
    cached = run.last_figures if not is_switched_since(run.history) else None
    new = draft.likely_size - (cached.prompt_tokens if cached is not None else 0)
    built = prompt_event(session.run, draft)
    return PromptPreviewed(draft.after, built, max(0, new) / speed if speed else 0.0)


async def _say(session: SessionContext, run: TaskRun, text: str) -> Outcome:
    if not text:
        return Refused("there is nothing to say in that")
    if len(text) > MOST_SAID_CHARS:
        advice = "put it into a file or the scratchpad"
        return Refused(f"that has {len(text)} characters, at most {MOST_SAID_CHARS} can be said at once; {advice}")
    remarks = await pin_mentions(session, text)
    await session.record(UserSaid(text, begun=_begun(run)))
    redacted = (REDACTED,) if session.ports.redacted(text) != text else ()
    return Accepted("; ".join((*redacted, *remarks)))


def _begun(run: TaskRun) -> str:
    """Return the answer that was cut and that no prompt and no message has told of since, empty if there is none."""
    kinds = PromptBuilt | ModelAnswered | ModelInterrupted | UserSaid
    last = next((each.event for each in reversed(run.history) if isinstance(each.event, kinds)), None)
    if not isinstance(last, ModelInterrupted) or last.cause is not InterruptCause.STOPPED:
        return ""
    return clip(last.partial.strip(), CUT_CHARS) if run.phase is not Phase.COMPACTING else ""


async def _pin(session: SessionContext, run: TaskRun, intent: PinChunk) -> Outcome:
    """Pin code that the model was shown as it was shown; any other as it reads in the workspace now."""
    pinned = {chunk.place: chunk for chunk in run.pinned}
    if (intent.place in pinned) == intent.pinned:
        return Refused(f"{intent.place} is {'pinned already' if intent.pinned else 'not pinned'}")
    chunk = pinned.get(intent.place) or shown_at(run.history, intent.place)
    chunk = chunk or await read_code(session, intent.place)
    context = await session.tool_context()
    await session.record(await pinned_chunk(context, chunk) if intent.pinned else ChunkPinned(chunk, pinned=False))
    return Accepted()


async def _drop(session: SessionContext, run: TaskRun, place: str) -> Outcome:
    if place in run.dropped:
        return Refused(f"{place} is dropped already")
    if shown_at(run.history, place) is None:
        return Refused(f"the model was never shown {place}; what it was shown can be dropped")
    await session.record(ChunkDropped(place))
    return Accepted()


async def _compact(session: SessionContext, run: TaskRun) -> Outcome:
    if run.phase is Phase.COMPACTING or run.compaction_asked:
        return Refused("a summary of the older steps is already requested")
    if not answers_since_compaction(run.history):
        return Refused("there are no steps yet to summarize")
    await session.record(CompactionAsked())
    return Accepted("the older steps are summarized before the next step")


async def handle_model(session: SessionContext, intent: LoadModel | UnloadModel | SwitchModel) -> Outcome:
    """Carry the intent out; raise `ConfigError`, `ModelError`. A load is accepted when the model is in memory."""
    match intent:
        case LoadModel():
            return await _load(session, intent)
        case UnloadModel() if is_answering(session.state) and intent.model == _asked(session.state):
            return Refused(ANSWERING)
        case UnloadModel():
            await session.ports.endpoints.unload(intent.endpoint, intent.model)
            return Accepted(f"{sanitize_line(intent.model, _NAME_CHARS)} is not loaded")
        case SwitchModel():
            return await _switch(session, intent)


def why_not_switch(state: SessionState, settings: Settings, intent: SwitchModel) -> str:
    """Return why the task cannot be switched to a model now, empty if it can."""
    run = state.run
    if isinstance(state.work, Chat):
        return "a chat asks the model of the settings; only a task can be switched to another one"
    if run is None or run.phase in ENDED:
        return "no task is being worked on; --model-name or `model.name` says who is asked from the start"
    if is_answering(state):
        return ANSWERING
    if ModelSwitched(intent.endpoint, intent.model) == (run.switched or ModelSwitched()):
        return "the task asks that model already"
    if not intent.model:
        return ""
    endpoint = endpoint_named(settings, intent.endpoint)
    if endpoint is None or not endpoint.url:
        return f"there is no server of an endpoint {sanitize_line(intent.endpoint, _NAME_CHARS)!r} in the settings"
    if not endpoint.dollars_per_million_tokens.is_free:
        return f"the price of {intent.endpoint} is that of one model: name another endpoint in the settings"
    if intent.model != sanitize_line(intent.model, _NAME_CHARS):
        return "that is not the name of a model"
    return ""


def is_answering(state: SessionState) -> bool:
    """Return True from the record of a prompt of the task to that of its answer, or of what happened to it."""
    kinds = PromptBuilt | ModelAnswered | ModelInterrupted | EndpointPassed | TroubleMet
    kinds |= ContextFilled | SessionResumed | SessionForked
    history = state.run.history if state.run is not None and state.unfinished else ()
    newest = next((each.event for each in reversed(history) if isinstance(each.event, kinds)), None)
    return isinstance(newest, PromptBuilt)


async def _load(session: SessionContext, intent: LoadModel) -> Outcome:
    state = session.state
    session.publisher.hold_activity()
    try:
        loaded = await session.ports.endpoints.load(intent.endpoint, intent.model)
    finally:
        if session.state is state:  # else what was done meanwhile has said what it does
            session.publisher.show_held_activity()
    return Accepted(f"{loaded.name} is {loaded.status}")


async def _switch(session: SessionContext, intent: SwitchModel) -> Outcome:
    if reason := why_not_switch(session.state, session.settings, intent):
        return Refused(reason)
    await session.record(ModelSwitched(intent.endpoint, intent.model))
    trouble, figures = session.state.trouble, session.run.last_figures
    if trouble is not None and trouble.source == "model":
        await session.record(RetryAsked())
    again = f", up to {figures.prompt_tokens:,} tokens" if figures is not None and figures.prompt_tokens else ""
    return Accepted(f"switched; the prompt is read again{again}")


def _asked(state: SessionState) -> str:
    facts = state.model
    return facts.model if facts is not None else ""
