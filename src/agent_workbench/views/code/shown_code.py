"""Record of the code that a run has shown to the model, with its token costs; updated event by event."""

from collections.abc import Iterable, Mapping
from itertools import takewhile

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.events import (
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    KnowledgeFound,
    PromptBuilt,
    Recorded,
    SkillsChosen,
    TaskStarted,
)
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.event_chunks import LEAVES_OUT, begins_prompts, found_by_tool, pieces_shown_by
from agent_workbench.core.state.growing_tuple import FoldSnapshots, GrowingTuple
from agent_workbench.views.receipt.counted_parts import counted_parts


class Cost(Struct, frozen=True):
    """Tokens of a piece in the prompt; `counted` by the server, or estimated."""

    tokens: int
    counted: bool

    @property
    def text(self) -> str:
        """The tokens as text, empty if there are none."""
        return f"{'' if self.counted else '~'}{self.tokens:,}" if self.tokens else ""


class ShownCode(Struct, frozen=True):
    """Fold of a run's events.

    `notes` are those found for the task. `found` is the result of the first search, `searched` the pieces that the
    model's own searches found, `added` those the user added, both by location. `in_prompt` are the locations in the
    next prompt, `costs` their tokens in the newest prompt that holds them. `leaves_out`: dropped code is left out at
    once. `shown` are locations with the event that showed them. `new_events` are the events after the newest prompt.
    `settled` are the locations whose cost is known since the last summary. `skills` is the newest choice of
    skills, `sent_skills` the names of those in the newest prompt.
    """

    notes: tuple[Chunk, ...] = ()
    found: CodeRetrieved | None = None
    searched: Mapping[str, Chunk] = field(default_factory=dict)
    added: Mapping[str, Chunk] = field(default_factory=dict)
    in_prompt: frozenset[str] = frozenset()
    costs: Mapping[str, Cost] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    leaves_out: bool = False
    shown: GrowingTuple[tuple[int, frozenset[str]]] = field(default_factory=GrowingTuple)
    new_events: tuple[Recorded, ...] = ()
    skills: SkillsChosen | None = None
    sent_skills: frozenset[str] = frozenset()


def shown_code_snapshots() -> FoldSnapshots[ShownCode]:
    """Return empty snapshots of the fold of a run's code."""
    return FoldSnapshots(ShownCode(), extend_code)


def extend_code(before: ShownCode, recorded: Recorded) -> ShownCode:
    """Return the fold with one more event."""
    event = recorded.event
    after = replace(before, new_events=(*before.new_events, recorded))
    if isinstance(event, ContextCompacted):
        kept = frozenset(note.place for note in before.notes) & before.in_prompt
        in_prompt = _newer_than(event.through_seq, before.shown) | kept
        after = replace(after, in_prompt=in_prompt, settled=frozenset(), sent_skills=frozenset())
    if isinstance(event, CodeRetrieved) and event.failing:
        kept = frozenset(note.place for note in before.notes) & before.in_prompt
        after = replace(after, in_prompt=kept, settled=frozenset(), sent_skills=frozenset())
    places = frozenset(chunk.place for chunk in pieces_shown_by(event))
    if places:
        after = replace(after, in_prompt=after.in_prompt | places, shown=after.shown.plus((recorded.seq, places)))
    match event:
        case TaskStarted():
            chosen = SkillsChosen(event.task, event.skills) if event.skills else None
            return replace(after, leaves_out=event.wording >= LEAVES_OUT, skills=chosen)
        case SkillsChosen():
            return replace(after, skills=event)
        case ChunkDropped(place=place) if after.leaves_out:
            return replace(after, in_prompt=after.in_prompt - {place})
        case ChunkPinned(chunk=chunk, pinned=False) if after.leaves_out and chunk.place in after.added:
            return replace(after, in_prompt=after.in_prompt - {chunk.place})
        case KnowledgeFound():
            return replace(after, notes=event.notes)
        case CodeRetrieved():
            return replace(after, found=event)
        case ChunkPinned(chunk=chunk, pinned=True) if chunk.place not in after.searched:
            return replace(after, added=_with(after.added, (chunk,)))
        case PromptBuilt():
            names = {each.name for each in after.skills.skills} if after.skills is not None else set()
            return _counted(replace(after, sent_skills=after.sent_skills | names), event)
        case _ if found := found_by_tool(event):
            return replace(after, searched=_with(after.searched, found))
        case _:
            return after


def _with(pieces: Mapping[str, Chunk], more: Iterable[Chunk]) -> Mapping[str, Chunk]:
    return {**pieces, **{chunk.place: chunk for chunk in more}}


def _newer_than(seq: int, shown: GrowingTuple[tuple[int, frozenset[str]]]) -> frozenset[str]:
    newer = takewhile(lambda each: each[0] > seq, reversed(shown))
    return frozenset().union(*(places for _, places in newer))


def _counted(before: ShownCode, built: PromptBuilt) -> ShownCode:
    """Return the fold with the cost of each piece in this prompt; exact for a piece that is a part of its own."""
    so_far = replace(before, leaves_out=before.leaves_out and not begins_prompts(built))
    costs: dict[str, Cost] = {}
    settled = set(so_far.settled)
    for part in counted_parts(built, so_far.new_events):
        alone = {part.place: Cost(part.tokens, not part.estimated)} if part.place else {}
        inside = {piece.place: Cost(piece.tokens, counted=False) for piece in part.pieces}
        # A repeated mention, for example of a pinned chunk, adds no second copy.
        costs |= {place: cost for place, cost in (alone | inside).items() if place not in settled}
        settled |= alone.keys() | inside.keys()
    if not costs and len(settled) == len(so_far.settled):
        return replace(so_far, new_events=())
    return replace(so_far, costs={**so_far.costs, **costs}, settled=frozenset(settled), new_events=())
