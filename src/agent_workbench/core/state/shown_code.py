"""Pieces of code that an event puts before the model."""

from agent_workbench.core.events import (
    ActionFinished,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    Event,
    PatchApplied,
    StepUndone,
)
from agent_workbench.core.retrieval import Chunk


def chunks_shown_by(event: Event) -> tuple[Chunk, ...]:
    """Return the chunks that the model sees with this event. A pinned chunk it has seen before."""
    match event:
        case CodeRetrieved():
            return event.chunks
        case ActionFinished() | PatchApplied() | StepUndone():
            return event.shown
        case ChunkPinned(pinned=True):
            return (event.chunk,)
        case ContextCompacted():
            return (*event.pinned, *event.code, *event.repeated)
        case _:
            return ()
