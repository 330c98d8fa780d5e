"""Chunks of code that an event adds to the prompt."""

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
    """Return the chunks that this event adds to the prompt. A pinned chunk may be in it already."""
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
