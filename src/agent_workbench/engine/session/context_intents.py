"""What the user wants in or out of the next prompt: a word, a piece of code, a summary of what is older."""

from agent_workbench.core.events import ChunkDropped, ChunkPinned, CompactionAsked, UserSaid
from agent_workbench.core.intents import CompactContext, DropChunk, FindCode, PinChunk, SayToModel
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.state.session_state import ENDED, Phase, TaskRun
from agent_workbench.engine.prompt.step_history import answers_since_compaction, shown_at
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.session.code_lookup import find_code

MOST_CHARS = 8_000
ContextIntent = SayToModel | PinChunk | DropChunk | FindCode | CompactContext


async def handle_context(session: SessionContext, intent: ContextIntent) -> None:
    """Record what the user wants the model to see, or say why that cannot be."""
    run = session.state.run
    if run is None or run.phase in ENDED:
        session.publisher.notify("no task is being worked on, so nobody would read that")
        return
    match intent:
        case SayToModel():
            await _say(session, intent.text.strip())
        case PinChunk():
            await _pin(session, run, intent)
        case DropChunk():
            await _drop(session, run, intent.place)
        case FindCode():
            await session.looking.start(find_code(session, intent.asked.strip()))
        case CompactContext():
            await _compact(session, run)


async def _say(session: SessionContext, text: str) -> None:
    if not text:
        session.publisher.notify("there is nothing to say in that")
    elif len(text) > MOST_CHARS:
        advice = "put it into a file or the scratchpad"
        session.publisher.notify(f"that has {len(text)} characters, at most {MOST_CHARS} can be said at once; {advice}")
    else:
        await session.record(UserSaid(text))
        if session.ports.redacted(text) != text:
            session.publisher.notify(
                "that holds the value of a secret environment variable; the model is told its name instead"
            )


async def _pin(session: SessionContext, run: TaskRun, intent: PinChunk) -> None:
    pinned = {chunk.place: chunk for chunk in run.pinned}
    chunk = pinned.get(intent.place) or shown_at(run.history, intent.place) or _found(session, intent.place)
    if chunk is None:
        session.publisher.notify(
            f"the model was never shown {intent.place}; what it was shown or you found can be pinned"
        )
    elif (intent.place in pinned) == intent.pinned:
        session.publisher.notify(f"{intent.place} is {'pinned already' if intent.pinned else 'not pinned'}")
    else:
        await session.record(ChunkPinned(chunk, intent.pinned))


def _found(session: SessionContext, place: str) -> Chunk | None:
    """Return the piece at `place` of what the user's last search brought."""
    found = session.publisher.live.found
    return next((chunk for chunk in found.chunks if chunk.place == place), None) if found is not None else None


async def _drop(session: SessionContext, run: TaskRun, place: str) -> None:
    if place in run.dropped:
        session.publisher.notify(f"{place} is dropped already")
    elif shown_at(run.history, place) is None:
        session.publisher.notify(f"the model was never shown {place}; what it was shown can be dropped")
    else:
        await session.record(ChunkDropped(place))


async def _compact(session: SessionContext, run: TaskRun) -> None:
    if run.phase is Phase.COMPACTING or run.compaction_asked:
        session.publisher.notify("the older steps are about to be summed up already")
    elif not answers_since_compaction(run.history):
        session.publisher.notify("there are no steps yet that could be summed up")
    else:
        await session.record(CompactionAsked())
        session.publisher.notify("the older steps are summed up before the next one")
