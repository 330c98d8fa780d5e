"""Retrieved code: the pane with its pieces, the lines that are shown, and the reasons why each was found."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
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
    SkillLeftOut,
    SkillsChosen,
    TaskStarted,
)
from agent_workbench.core.intents import ChooseSkill, DropChunk, PinChunk
from agent_workbench.core.outcomes import CodeFound
from agent_workbench.core.repo.retrieval import VECTORS_UNWANTED, Chunk, IndexStatus
from agent_workbench.core.skills import SkillEntry
from agent_workbench.core.state.file_pieces import LEAVES_OUT, begins_prompts, found_by_tool, pieces_shown_by
from agent_workbench.core.state.growing_tuple import FoldSnapshots, GrowingTuple
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Tone
from agent_workbench.views.sent_prompts import counted_parts

WORD_CHARS = 40
MAX_WORDS = 6
_NO_NEWS = frozenset({"", "ready", VECTORS_UNWANTED})

PREVIEW_CHARS = 20_000
REASON_CHARS = 300
MAX_SEARCHED = 30
"""Maximum number of rows from the model's own searches; the newest are shown."""


class Reason(Struct, frozen=True):
    """One signal: its name, its share of the score (0 to 1), and the matched words."""

    name: str
    share: float
    words: tuple[str, ...] = ()


def reasons_of(chunk: Chunk) -> tuple[Reason, ...]:
    """Return the reasons for a result, strongest first; none if they were not recorded."""
    told = sorted(chunk.signals, key=lambda signal: -signal.share)
    return tuple(Reason(str(each.kind), each.share, _words(each.words)) for each in told if each.share > 0)


def matched_words(chunk: Chunk) -> tuple[str, ...]:
    """Return the matched words of the query, best first."""
    return _words(chunk.why or tuple(dict.fromkeys(word for each in chunk.signals for word in each.words)))


def share_bar(share: float, cells: int) -> str:
    """Return a bar of at most `cells` cells for a share from 0 to 1, in half cells; any share above 0 is visible."""
    halves = min(2 * cells, max(1, round(2 * cells * share))) if share > 0 else 0
    return f"{'█' * (halves // 2)}{'▌' * (halves % 2)}"


def index_words(status: IndexStatus) -> tuple[str, ...]:
    """Return the progress of an index and what is not searched, a few words each; none without an index."""
    left_out = _left_out(status)
    if not status.complete:
        said = f"indexing {status.done:,} of {status.total:,} files"
    elif status.files:
        said = f"{counted_text(status.files, 'file')}, {counted_text(status.chunks, 'piece')} indexed"
    elif left_out:
        said = "nothing indexed"
    else:
        return ()
    unsaved = f"not saved: {sanitize_line(status.unsaved, 160)}" if status.unsaved else ""
    return tuple(filter(None, (said, unsaved, vector_words(status), left_out)))


def vector_words(status: IndexStatus) -> str:
    """Return the state of the vectors, empty if they are ready or not wanted."""
    return f"vectors: {sanitize_line(status.vectors, 300)}" if status.vectors not in _NO_NEWS else ""


def index_line(status: IndexStatus) -> str:
    """Return the same as one line that starts with what is wrong, for narrow places."""
    first = index_words(replace(status, vectors="", unsaved="", left_out=0, binary=0, submodules=0))
    rest = index_words(status)[len(first) :]
    told = rest if status.complete and (status.unsaved or vector_words(status)) else ()
    return " · ".join((*told, *first) if told else (*first, *rest))


def _left_out(status: IndexStatus) -> str:
    told = (
        (status.left_out, f"{counted_text(status.left_out, 'file')} (too large, or too many)"),
        (status.binary, f"{status.binary:,} (binary, or unreadable)"),
        (status.submodules, counted_text(status.submodules, "submodule")),
    )
    said = ", ".join(text for many, text in told if many)
    return f"left out: {said}" if said else ""


def _words(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sanitize_line(word, WORD_CHARS) for word in words[:MAX_WORDS])


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


class CodeState(Enum):
    """State of a piece: its glyph (hollow: not in the prompt), the tone of its name, and a word."""

    IN_PROMPT = ("●", Tone.STRONG, "")
    PINNED = ("◆", Tone.STRONG, "pinned")
    DROPPED = ("✗", Tone.GONE, "dropped, in the prompt until the next summary")
    LEFT_OUT = ("○", Tone.GONE, "dropped, not in the prompt")
    SUMMED_UP = ("○", Tone.DIM, "no longer in the prompt: a summary replaced it")
    OFFERED = ("○", Tone.PLAIN, "")

    @property
    def in_prompt(self) -> bool:
        """True if the model sees it."""
        return self in (CodeState.IN_PROMPT, CodeState.PINNED, CodeState.DROPPED)


class CodeRow(Struct, frozen=True):
    """One piece of code: its state, cost and reasons, and its text from line `first_line` on.

    `tokens` begin with `~` if they are estimated. `number` is its rank in the search result, empty for others. `words`
    are the matched words of the query. `remark` is a further remark; `context` is that of the piece. `skill` is the
    name of a skill, whose row has no code.
    """

    key: str
    number: str
    place: str
    path: str
    symbol: str
    first_line: int
    preview: str
    tokens: str
    score: str
    reasons: tuple[Reason, ...]
    words: tuple[str, ...]
    state: CodeState = CodeState.IN_PROMPT
    remark: str = ""
    context: str = ""
    skill: str = ""

    @property
    def pin(self) -> PinChunk | ChooseSkill:
        """The intent of the key that pins: it pins or unpins a piece, or takes a skill into the prompt or back."""
        pins = self.state is not CodeState.PINNED
        return ChooseSkill(self.skill, pins) if self.skill else PinChunk(self.place, pins)

    @property
    def drop(self) -> DropChunk | ChooseSkill:
        """The intent of the key that drops."""
        return ChooseSkill(self.skill, chosen=False) if self.skill else DropChunk(self.place)


class CodeView(Struct, frozen=True):
    """Rows: skills, pieces the user added, notes, results of the first search, then those of the model's own searches.

    Pinning does not move a row. `progress` is the progress of the index in a few words, or empty. `task_running`: a
    task is running that would read an added piece.
    """

    title: str
    rows: tuple[CodeRow, ...]
    empty: str
    progress: str = ""
    task_running: bool = False


def view_code(
    state: SessionState, index: IndexStatus | None = None, trail: FoldSnapshots[ShownCode] | None = None
) -> CodeView:
    """Return the code pane of the current run, with the progress of the `index`.

    `trail` holds the snapshots of earlier calls, which this one continues.
    """
    run = state.run
    progress = index_line(index) if index is not None else ""
    so_far = (shown_code_snapshots() if trail is None else trail).at(run.history) if run is not None else ShownCode()
    pieces, skills = tuple(_pieces(so_far)), skill_rows(so_far)
    if run is None or not (pieces or skills):
        return CodeView("Retrieved code", (), _nothing(state), progress, state.unfinished)
    rows = []
    for number, chunk, came in pieces:
        row = replace(view_piece(chunk, number), state=_state(run, chunk.place, so_far.in_prompt))
        cost = so_far.costs.get(chunk.place, Cost(chunk.tokens, counted=False))
        remark = " · ".join(filter(None, (row.state.value[2], came)))
        rows.append((replace(row, tokens=cost.text, remark=remark), cost))
    there = sum(row.state.in_prompt for row in skills)
    title = " · ".join(filter(None, (_title(rows), counted_text(there, "skill") if there else "")))
    return CodeView(title, (*skills, *(row for row, _ in rows)), "", progress, state.unfinished)


def view_piece(chunk: Chunk, number: str = "") -> CodeRow:
    """Return the row of an offered piece, which is not in the prompt yet."""
    return CodeRow(
        key=f"{number}:{chunk.place}",
        number=number,
        place=chunk.place,
        path=chunk.path,
        symbol=sanitize_line(chunk.symbol, 120),
        first_line=chunk.first_line,
        preview=sanitize(chunk.text.rstrip("\n"), limit_chars=PREVIEW_CHARS),
        context=sanitize(chunk.context, limit_chars=PREVIEW_CHARS),
        tokens=Cost(chunk.tokens, counted=False).text,
        score=f"{chunk.score:.2f}" if chunk.score else "",
        reasons=reasons_of(chunk),
        words=matched_words(chunk),
        state=CodeState.OFFERED,
    )


def _pieces(so_far: ShownCode) -> Iterator[tuple[str, Chunk, str]]:
    """Yield the distinct pieces, each with its rank in the search result and its origin."""
    chunks = so_far.found.chunks if so_far.found is not None else ()
    numbered = {chunk.place for chunk in (*chunks, *so_far.notes)}
    for chunk in so_far.added.values():
        if chunk.place not in numbered:
            yield "", chunk, ""
    for note in so_far.notes:
        yield "", note, "note"
    for number, chunk in enumerate(chunks, 1):
        yield str(number), chunk, ""
    for chunk in list(so_far.searched.values())[-MAX_SEARCHED:]:
        if chunk.place not in numbered | so_far.added.keys():
            yield "", chunk, "found by the model"


def skill_rows(so_far: ShownCode) -> tuple[CodeRow, ...]:
    """Return a row for each skill in the prompt, then for each that is left out."""
    choice = so_far.skills
    if choice is None:
        return ()
    taken = (
        replace(
            _skill_row(skill.name, Cost(skill.tokens, choice.counted)),
            preview=sanitize(skill.text, limit_chars=PREVIEW_CHARS),
            state=CodeState.IN_PROMPT,
            remark=sanitize_line(skill.reason, REASON_CHARS),
        )
        for skill in choice.skills
    )
    left_out = (
        _left_out_row(out, Cost(out.tokens, choice.counted), sent=out.name in so_far.sent_skills)
        for out in choice.left_out
    )
    return (*taken, *left_out)


def _left_out_row(skill: SkillLeftOut, cost: Cost, *, sent: bool) -> CodeRow:
    state = CodeState.DROPPED if sent else CodeState.OFFERED
    remark = state.value[2] or f"left out: {sanitize_line(skill.reason, REASON_CHARS)}"
    return replace(_skill_row(skill.name, cost), state=state, remark=remark)


def _skill_row(name: str, cost: Cost) -> CodeRow:
    name = sanitize_line(name, 100)
    place = f"skill {name}"
    return CodeRow(f"skill:{name}", "", place, f"{name}.md", "", 1, "", cost.text, "", (), (), skill=name)


def _state(run: TaskRun, place: str, there: frozenset[str]) -> CodeState:
    if any(chunk.place == place for chunk in run.pinned):
        return CodeState.PINNED
    if place in run.dropped:
        return CodeState.DROPPED if place in there else CodeState.LEFT_OUT
    return CodeState.IN_PROMPT if place in there else CodeState.SUMMED_UP


def _title(rows: list[tuple[CodeRow, Cost]]) -> str:
    there = [cost for row, cost in rows if row.state.in_prompt]
    tokens = sum(cost.tokens for cost in there)
    about = "" if all(cost.counted for cost in there) else "~"
    pinned = sum(row.state is CodeState.PINNED for row, _ in rows)
    out = len(rows) - len(there)
    told = (
        f"Retrieved code · {counted_text(len(rows), 'piece')}",
        f"{out} not in the prompt" if out else "",
        f"{about}{tokens:,} tokens" if tokens else "",
        f"{pinned} pinned" if pinned else "",
    )
    return " · ".join(filter(None, told))


def _nothing(state: SessionState) -> str:
    run = state.run
    found = [each.event for each in run.history if isinstance(each.event, CodeRetrieved)] if run is not None else []
    if found:
        return f"the search for “{sanitize_line(found[-1].query, 100)}” found nothing"
    if run is not None and run.definition.edits:
        return "the task names its edits, so no code is searched"
    if run is not None and run.phase in (Phase.BASELINE, Phase.RETRIEVING):
        return "code for the task is searched after the first checks"
    return "the code in the prompt appears here once a task runs"


def view_search_results(state: SessionState, found: CodeFound) -> tuple[CodeRow, ...]:
    """Return a row for each skill that was found, then for each piece of code, best first."""
    run = state.run
    taken = {each.name for each in run.skills.skills} if run is not None and run.skills is not None else set()
    pinned = {chunk.place for chunk in run.pinned} if run is not None else set()
    there = shown_code_snapshots().at(run.history).in_prompt if run is not None else frozenset()
    rows = [_found_skill(each, taken=each.name in taken) for each in found.skills]
    for number, chunk in enumerate(found.chunks, 1):
        state_now, remark = CodeState.OFFERED, ""
        if chunk.place in pinned:
            state_now, remark = CodeState.PINNED, "pinned"
        elif chunk.place in there:
            state_now, remark = CodeState.IN_PROMPT, "in the prompt already"
        rows.append(replace(view_piece(chunk, str(number)), state=state_now, remark=remark))
    return tuple(rows)


def _found_skill(skill: SkillEntry, *, taken: bool) -> CodeRow:
    row = _skill_row(skill.name, Cost(skill.tokens, counted=False))
    state = CodeState.PINNED if taken else CodeState.OFFERED
    return replace(row, preview=sanitize(skill.description, limit_chars=PREVIEW_CHARS), state=state, remark="skill")
