"""Which pieces of code the model sees with an event."""

from agent_workbench.core.events import ActionFinished, CodeRetrieved, ContextCompacted, Event, PatchApplied
from agent_workbench.core.retrieval import Chunk


def shown_by(event: Event) -> tuple[Chunk, ...]:
    """Return the pieces of code that the model sees with this event; a pinned one was shown before it was pinned."""
    match event:
        case CodeRetrieved():
            return event.chunks
        case ActionFinished() | PatchApplied():
            return event.shown
        case ContextCompacted():
            return (*event.pinned, *event.code)
        case _:
            return ()
