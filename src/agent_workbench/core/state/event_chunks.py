"""Chunks of code that an event adds to the prompt."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.events import (
    ChunkDropped,
    ChunkPinned,
    CodeEvent,
    CodeRetrieved,
    ContextCompacted,
    Event,
    KnowledgeFound,
    PromptBuilt,
    Recorded,
    TaskStarted,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.repo.retrieval import Chunk

LEAVES_OUT = 2
"""Version of the prompt texts from which on code that the user drops before the first prompt is not sent."""


def chunks_shown_by(event: Event) -> tuple[Chunk, ...]:
    """Return the chunks that this event adds to the prompt. A pinned chunk may be in it already."""
    match event:
        case CodeRetrieved():
            return event.chunks
        case CodeEvent():
            return event.shown
        case ChunkPinned(pinned=True):
            return (event.chunk,) if event.imports is None else (event.chunk, event.imports)
        case ContextCompacted():
            return (*event.pinned, *event.code, *event.repeated)
        case _:
            return ()


def found_by_tool(event: Event) -> tuple[Chunk, ...]:
    """Return the chunks that a search by a tool has found: all other code after an action has no score."""
    return tuple(chunk for chunk in event.shown if chunk.score > 0) if isinstance(event, CodeEvent) else ()


def pieces_shown_by(event: Event) -> tuple[Chunk, ...]:
    """Return what the user can pin or drop of this event: its code, and its notes, which are no code of the task."""
    return event.notes if isinstance(event, KnowledgeFound) else chunks_shown_by(event)


def begins_prompts(event: Event) -> bool:
    """Return True for the event of a step's prompt: what was dropped before the first one was never sent."""
    return isinstance(event, PromptBuilt) and event.purpose is Purpose.EXECUTOR


def sent_chunks(history: Sequence[Recorded]) -> Iterator[tuple[Recorded, tuple[Chunk, ...]]]:
    """Yield the events of a run, each with its chunks that are in the prompt, or will be in the first one."""
    started = history[0].event if history else None
    leaves_out = isinstance(started, TaskStarted) and started.wording >= LEAVES_OUT
    first = next((number for number, each in enumerate(history) if begins_prompts(each.event)), len(history))
    dropped = _dropped(history[:first]) if leaves_out else frozenset()
    for number, recorded in enumerate(history):
        chunks = chunks_shown_by(recorded.event)
        if dropped and number < first:
            chunks = tuple(chunk for chunk in chunks if chunk.place not in dropped)
        yield recorded, chunks


def _dropped(history: Sequence[Recorded]) -> frozenset[str]:
    dropped: set[str] = set()
    for recorded in history:
        match recorded.event:
            case ChunkDropped(place=place):
                dropped.add(place)
            case ChunkPinned(chunk=chunk):
                dropped.discard(chunk.place)
            case _:
                continue
    return frozenset(dropped)
