"""What a prompt's parts consist of: their tokens, counted or estimated, and the pieces of code in them."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent_workbench.core.events import (
    ActionFinished,
    CodeRetrieved,
    ContextCompacted,
    Event,
    ModelAnswered,
    PatchApplied,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    TaskStarted,
    UserSaid,
)
from agent_workbench.core.retrieval import Chunk

CODE = "code"
MOST_PIECES = 200
# What a tokenizer makes of English and code, where no server counts.
_CHARS_PER_TOKEN = 4
# The text of some parts is not in any event (the rules); they are about so long.
_UNKNOWN_CHARS = 3_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of code in a part: about how many tokens it has, and how many of the part stand before it."""

    place: str
    symbol: str
    tokens: int
    offset: int


@dataclass(frozen=True, slots=True)
class CountedPart:
    """A part of a prompt with its tokens."""

    label: str
    tokens: int
    estimated: bool
    pieces: tuple[Piece, ...] = ()


def counted_parts(built: PromptBuilt, since: tuple[Recorded, ...]) -> Iterator[CountedPart]:
    """Yield the parts that are new in a prompt; `since` are the events after the prompt before."""
    events = [recorded.event for recorded in since]
    waiting = [(event, chunks) for event in events if (chunks := _chunks_of(event))]
    counted = any(part.tokens for part in built.parts)
    for part in built.parts:
        tokens = part.tokens if counted else _estimate(part.label, events)
        held = _taken(part.label, waiting)
        yield CountedPart(part.label, tokens, not counted, tuple(_pieces(held, tokens)))


def _taken(label: str, waiting: list[tuple[Event, tuple[Chunk, ...]]]) -> tuple[Chunk, ...]:
    """Take from `waiting` the chunks that a part of this name shows."""
    kind = label.split(" ", 1)[0]
    for position, (event, chunks) in enumerate(waiting):
        fits = kind == CODE if isinstance(event, CodeRetrieved | ContextCompacted) else kind == "observation"
        if fits:
            del waiting[position]
            return chunks
    return ()


def _chunks_of(event: Event) -> tuple[Chunk, ...]:
    match event:
        case CodeRetrieved():
            return event.chunks
        case ActionFinished() | PatchApplied():
            return event.shown
        case ContextCompacted():
            return event.pinned
        case _:
            return ()


def _pieces(chunks: tuple[Chunk, ...], tokens: int) -> Iterator[Piece]:
    """Yield the pieces; the tokens of the part are theirs by the length of their text."""
    letters = sum(len(chunk.text) + len(chunk.place) for chunk in chunks)
    before = 0
    for chunk in chunks[:MOST_PIECES]:
        own = len(chunk.text) + len(chunk.place)
        offset, end = tokens * before // max(1, letters), tokens * (before + own) // max(1, letters)
        yield Piece(chunk.place, chunk.symbol, end - offset, offset)
        before += own


def _estimate(label: str, events: list[Event]) -> int:
    letters = sum(_letters(label, event) for event in events)
    return (letters or _UNKNOWN_CHARS) // _CHARS_PER_TOKEN


def _letters(label: str, event: Event) -> int:
    """Return how much text an event has in a part of this name."""
    match event:
        case TaskStarted() if label == "task":
            task = event.definition
            return len(task.description) + len(task.goal) + len(task.suggested_approach)
        case TaskStarted():
            return sum(len(skill.text) for skill in event.skills if label == f"skill {skill.name}")
        case CodeRetrieved() if label == CODE:
            return sum(len(chunk.text) for chunk in event.chunks)
        case ModelAnswered() if label == "answer":
            return len(event.text)
        case ActionFinished() if label == "observation":
            return len(event.observation)
        case ScratchpadChanged() if label == "scratchpad":
            return len(event.text)
        case UserSaid() if label not in ("rules", "task", "answer"):
            return len(event.text)
        case _:
            return 0
