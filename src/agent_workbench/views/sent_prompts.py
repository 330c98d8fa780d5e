"""Prompts that a run has sent, and their parts with tokens, counted or estimated."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ChatShortened,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    ContextFilled,
    Event,
    KnowledgeFound,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    ModelSwitched,
    PatchApplied,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    SkillsChosen,
    TaskStarted,
    UserSaid,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.file_pieces import chunks_shown_by
from agent_workbench.core.state.steps import newest_steps

CODE = "code"
PINNED = "pinned"
KNOWLEDGE = "knowledge"
OBSERVATION = "observation"
MAP = "map"
MAX_PIECES = 200
# Typical for English and code; used if no server counts.
_CHARS_PER_TOKEN = 4
# Typical length of parts whose text no event holds (the rules).
_UNKNOWN_CHARS = 3_000


class SentPrompt(Struct, frozen=True):
    """A sent prompt, the events since the previous one, and its answer, if there is one.

    `notes`: it asked for a summary of the scratchpad. `switched_from` is the model that was asked before the user chose
    another one, empty if it is the same as before.
    """

    number: int
    built: PromptBuilt
    since: tuple[Recorded, ...]
    facts: ModelFacts | None
    compacted: bool
    notes: bool = False
    end: ModelAnswered | ModelInterrupted | None = None
    switched_from: str = ""

    @property
    def through_seq(self) -> int:
        """Last event that a shortened prompt contains, else -1."""
        filled = [each.event.through_seq for each in self.since if isinstance(each.event, ContextFilled)]
        return filled[-1] if filled and self.built.purpose is Purpose.SUMMARY else -1

    @property
    def figures(self) -> AnswerFigures:
        """Figures of the answer, zeros until there is one."""
        return self.end.figures if self.end is not None else AnswerFigures()


def sent_prompts(history: Iterable[Recorded], before: int, met: dict[Purpose, ModelFacts]) -> Iterator[SentPrompt]:
    """Yield the prompts of a run; `before` is the number of earlier prompts, `met` the last observed models."""
    since: list[Recorded] = []
    compacted = notes = False
    switched_from = ""
    open_prompt: SentPrompt | None = None
    for recorded in history:
        event = recorded.event
        since.append(recorded)
        match event:
            case ModelObserved():
                met[event.purpose] = event.facts
            case ModelSwitched() if not switched_from:
                switched_from = _name(met.get(Purpose.EXECUTOR))
            case ContextCompacted() | ChatShortened():
                compacted = True
            case ContextFilled():
                notes = event.notes
            case PromptBuilt():
                notes = notes and event.purpose is Purpose.SUMMARY
                if open_prompt is not None:
                    yield open_prompt
                before += 1
                facts = met.get(event.purpose, met.get(Purpose.EXECUTOR))
                was = switched_from if switched_from != _name(facts) else ""
                open_prompt = SentPrompt(before, event, tuple(since), facts, compacted, notes, switched_from=was)
                since, compacted, switched_from = [], False, ""
            case ModelAnswered() | ModelInterrupted() if open_prompt is not None and open_prompt.end is None:
                open_prompt = replace(open_prompt, end=event)
            case _:
                pass
    if open_prompt is not None:
        yield open_prompt


def _name(facts: ModelFacts | None) -> str:
    return facts.model if facts is not None else ""


def prompts_in_context(sent: tuple[SentPrompt, ...]) -> tuple[SentPrompt, ...]:
    """Return the prompts that the last one grew from: those since the last compaction, without summary requests.

    A request for a summary may be shortened to fit. A request about the scratchpad grew from no other prompt.
    """
    start = max((place for place, each in enumerate(sent) if each.compacted), default=0)
    *grown, last = sent[start:]
    if last.notes:
        return (last,)
    through = last.through_seq
    kept = (each for each in grown if each.built.purpose is not Purpose.SUMMARY)
    return (*(each for each in kept if through < 0 or each.since[-1].seq - 1 <= through), last)


def has_answers(sent: tuple[SentPrompt, ...]) -> bool:
    """Return True if there are answers that a summary could cover."""
    ends = (each.end for each in sent if each.built.purpose is not Purpose.SUMMARY)
    return any(isinstance(end, ModelAnswered) or (end is not None and end.cut) for end in ends)


class PartPiece(Struct, frozen=True):
    """A piece of code within a part: its estimated tokens, and those of the part before it."""

    place: str
    symbol: str
    tokens: int
    offset: int


class CountedPart(Struct, frozen=True):
    """A part of a prompt. `place` is set if it is one piece of code; `pieces` are those within a larger part."""

    label: str
    tokens: int
    estimated: bool
    place: str = ""
    pieces: tuple[PartPiece, ...] = ()


def counted_parts(built: PromptBuilt, since: tuple[Recorded, ...]) -> Iterator[CountedPart]:
    """Yield the new parts of a prompt; `since` are the events after the previous prompt."""
    events = [recorded.event for recorded in since]
    pins = [event.chunk.place for event in events if isinstance(event, ChunkPinned) and event.pinned]
    # A pinned chunk is a part of its own.
    ended = (step.result.event for step in newest_steps(since) if step.result is not None)
    observed = {event.proposal_id: event.observation for event in ended}
    shown = [(event, _with_it(event, observed)) for event in events]
    waiting = [(event, chunks) for event, chunks in shown if chunks]
    counted = any(part.tokens for part in built.parts)
    for part in built.parts:
        kind, _, place = part.label.partition(" ")
        if part.label == PINNED and pins:
            place = pins.pop(0)
        tokens = part.tokens if counted else _estimate(part.label, events, observed.values())
        alone = place if kind in (CODE, PINNED, KNOWLEDGE) else ""
        held = () if alone else _taken(kind, built, waiting)
        yield CountedPart(part.label, tokens, not counted, alone, tuple(_pieces(held, tokens)))


def _with_it(event: Event, observed: Mapping[ProposalId, str]) -> tuple[Chunk, ...]:
    """Return the code in an event's part. The lines of a diff are in the model's own answer."""
    match event:
        case ChunkPinned():
            return ()
        case PatchApplied():
            told = observed.get(event.proposal_id)
            return tuple(chunk for chunk in event.shown if told is None or chunk.text in told)
        case _:
            return chunks_shown_by(event)


def _taken(kind: str, built: PromptBuilt, waiting: list[tuple[Event, tuple[Chunk, ...]]]) -> tuple[Chunk, ...]:
    """Take from `waiting` the chunks that a part of this kind shows; none if each is a part of its own."""
    for position, (event, chunks) in enumerate(waiting):
        found = isinstance(event, CodeRetrieved | ContextCompacted)
        own = {f"{word} {chunk.place}" for chunk in chunks for word in (CODE, PINNED)}
        if found and any(part.label in own for part in built.parts):
            continue
        if kind == (CODE if found else OBSERVATION):
            del waiting[position]
            return chunks
    return ()


def _pieces(chunks: tuple[Chunk, ...], tokens: int) -> Iterator[PartPiece]:
    """Yield the pieces; the part's tokens are divided by the length of their texts."""
    letters = sum(len(chunk.shown) for chunk in chunks)
    before = 0
    for chunk in chunks[:MAX_PIECES]:
        own = len(chunk.shown)
        offset, end = tokens * before // max(1, letters), tokens * (before + own) // max(1, letters)
        yield PartPiece(chunk.place, chunk.symbol, end - offset, offset)
        before += own


def _estimate(label: str, events: Iterable[Event], observed: Iterable[str]) -> int:
    letters = sum(_letters(label, event) for event in events)
    letters += sum(map(len, observed)) if label == OBSERVATION else 0
    return (letters or _UNKNOWN_CHARS) // _CHARS_PER_TOKEN


def _letters(label: str, event: Event) -> int:
    """Return the length of an event's text in a part of this name."""
    match event:
        case TaskStarted() if label == "task":
            task = event.definition
            return len(task.description) + len(task.goal) + len(task.suggested_approach)
        case TaskStarted():
            own = (len(each.text) for each in event.instructions if label == shown(each.path))
            return sum(len(skill.text) for skill in event.skills if label == f"skill {skill.name}") + sum(own)
        case KnowledgeFound() if label.startswith(f"{KNOWLEDGE} "):
            return sum(len(note.text) for note in event.notes if label == f"{KNOWLEDGE} {note.place}")
        case SkillsChosen():
            return sum(len(skill.text) for skill in event.skills if label == f"skill {skill.name}")
        case CodeRetrieved() if label == MAP:
            return sum(len(path) for path in event.map.near) if event.map is not None else 0
        case CodeRetrieved() if label.startswith(CODE):
            place = label.removeprefix(CODE).strip()
            pieces = [chunk for chunk in event.chunks if chunk.place == place or not place]
            return sum(len(chunk.text) + len(chunk.context) for chunk in pieces)
        case ChunkPinned(chunk=chunk) if label == f"{PINNED} {chunk.place}":
            return len(chunk.text)
        case ChunkPinned(imports=Chunk() as imports) if label == f"{CODE} {imports.place}":
            return len(imports.text)
        case ModelAnswered() if label == "answer":
            return len(event.text)
        case ScratchpadChanged() if label == "scratchpad":
            return len(event.text)
        case UserSaid() if label not in ("rules", "task", "answer"):
            return len(event.text) + len(event.begun)
        case _:
            return 0
