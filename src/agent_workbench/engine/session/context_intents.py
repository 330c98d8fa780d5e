"""Intents about the context of the next prompt: remarks of the user, pinned and dropped code, compaction."""

from agent_workbench.core.events import (
    ChunkDropped,
    ChunkPinned,
    CompactionAsked,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    UserSaid,
)
from agent_workbench.core.intents import MOST_SAID_CHARS, ChooseSkill, CompactContext, DropChunk, PinChunk, SayToModel
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import Accepted, Outcome, PromptPreviewed, Refused
from agent_workbench.core.state.prompt_reads import is_switched_since, reading_speed
from agent_workbench.core.state.session_state import ENDED, Phase, TaskRun
from agent_workbench.core.state.work import Chat
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
