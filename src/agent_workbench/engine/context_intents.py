"""What the user wants in or out of the next prompt: a word, a piece of code, a summary of what is older."""

from agent_workbench.core.events import ChunkDropped, ChunkPinned, CompactionAsked, UserSaid
from agent_workbench.core.intents import CompactContext, DropChunk, FindCode, PinChunk, SayToModel
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.state import ENDED, Phase, TaskRun
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.finding import find_code
from agent_workbench.engine.story import answers_since_compaction, shown_at

MOST_CHARS = 8_000
ContextIntent = SayToModel | PinChunk | DropChunk | FindCode | CompactContext


async def handle_context(desk: Desk, intent: ContextIntent) -> None:
    """Record what the user wants the model to see, or say why that cannot be."""
    run = desk.state.run
    if run is None or run.phase in ENDED:
        desk.board.notify("no task is being worked on, so nobody would read that")
        return
    match intent:
        case SayToModel():
            await _say(desk, intent.text.strip())
        case PinChunk():
            await _pin(desk, run, intent)
        case DropChunk():
            await _drop(desk, run, intent.place)
        case FindCode():
            await desk.looking.start(find_code(desk, intent.asked.strip()))
        case CompactContext():
            await _compact(desk, run)


async def _say(desk: Desk, text: str) -> None:
    if not text:
        desk.board.notify("there is nothing to say in that")
    elif len(text) > MOST_CHARS:
        advice = "put it into a file or the scratchpad"
        desk.board.notify(f"that has {len(text)} characters, at most {MOST_CHARS} can be said at once; {advice}")
    else:
        await desk.record(UserSaid(text))
        if desk.ports.redacted(text) != text:
            desk.board.notify(
                "that holds the value of a secret environment variable; the model is told its name instead"
            )


async def _pin(desk: Desk, run: TaskRun, intent: PinChunk) -> None:
    pinned = {chunk.place: chunk for chunk in run.pinned}
    chunk = pinned.get(intent.place) or shown_at(run.history, intent.place) or _found(desk, intent.place)
    if chunk is None:
        desk.board.notify(f"the model was never shown {intent.place}; what it was shown or you found can be pinned")
    elif (intent.place in pinned) == intent.pinned:
        desk.board.notify(f"{intent.place} is {'pinned already' if intent.pinned else 'not pinned'}")
    else:
        await desk.record(ChunkPinned(chunk, intent.pinned))


def _found(desk: Desk, place: str) -> Chunk | None:
    """Return the piece at `place` of what the user's last search brought."""
    found = desk.board.live.found
    return next((chunk for chunk in found.chunks if chunk.place == place), None) if found is not None else None


async def _drop(desk: Desk, run: TaskRun, place: str) -> None:
    if place in run.dropped:
        desk.board.notify(f"{place} is dropped already")
    elif shown_at(run.history, place) is None:
        desk.board.notify(f"the model was never shown {place}; what it was shown can be dropped")
    else:
        await desk.record(ChunkDropped(place))


async def _compact(desk: Desk, run: TaskRun) -> None:
    if run.phase is Phase.COMPACTING or run.compaction_asked:
        desk.board.notify("the older steps are about to be summed up already")
    elif not answers_since_compaction(run.history):
        desk.board.notify("there are no steps yet that could be summed up")
    else:
        await desk.record(CompactionAsked())
        desk.board.notify("the older steps are summed up before the next one")
