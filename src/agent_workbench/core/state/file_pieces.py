"""Chunks of code that an event adds to the prompt, and the pieces of files that a run offers for rewriting."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.events import (
    FAILING_FIRST,
    SHORT_DOCSTRINGS,
    ChunkDropped,
    ChunkPinned,
    CodeEvent,
    CodeRetrieved,
    ContextCompacted,
    Event,
    KnowledgeFound,
    ModelAnswered,
    PatchApplied,
    PromptBuilt,
    Recorded,
    StepUndone,
    TaskStarted,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.file_piece import FilePiece
from agent_workbench.core.patch.left_out_text import PYTHON, defined_names, is_unwritten
from agent_workbench.core.patch.paths import matches_glob, shown
from agent_workbench.core.patch.rewritten_pieces import RewrittenPiece, read_rewrites
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.retrieval import IMPORTS, Chunk
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import proposals_of
from agent_workbench.core.tools.spec import REWRITE

LEAST_LINES = 3
"""Shorter finds of a tool are evidence, not pieces to rewrite."""

LEAVES_OUT = 2
"""Version of the prompt texts from which on code that the user drops before the first prompt is not sent."""


class OfferedPieces(Struct, frozen=True):
    """The pieces that the next prompt shows, by number, and the number of each chunk of an event.

    `numbers` holds them by the event's `seq` and the chunk's index in it; a chunk without a number is not offered.
    """

    pieces: tuple[FilePiece, ...] = ()
    numbers: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def piece(self, number: int) -> FilePiece:
        """Return a piece; raise `PatchError` if the prompt shows none with this number."""
        found = next((each for each in self.pieces if each.number == number), None)
        if found is None:
            known = ", ".join(f"{each.number} ({each.place})" for each in self.pieces) or "none"
            raise PatchError(f"there is no piece {number}", advice=f"the pieces are: {known}")
        return found


def offers_pieces(run: TaskRun) -> bool:
    """Return True if the model of this run may rewrite pieces."""
    return run.wording >= FAILING_FIRST and any(spec.name == REWRITE for spec in run.specs)


def may_rewrite(run: TaskRun, path: str) -> bool:
    """Return True if the code of this file is offered for rewriting where the prompt shows it."""
    return offers_pieces(run) and _is_open(run, path) and run.judges.protection(path) is None


def offered_pieces(run: TaskRun) -> OfferedPieces:
    """Return the pieces of a run. Numbers count up in the order in which the prompt shows the pieces.

    The same lines shown again keep their number, and so does a piece that was rewritten.
    """
    if not offers_pieces(run):
        return OfferedPieces()
    known: dict[tuple[str, int, str], int] = {}
    pieces: dict[int, FilePiece] = {}
    numbers: dict[tuple[int, int], int] = {}
    proposals = proposals_of(run.history)
    # The newest event that shows a piece, and the newest answer that rewrote it.
    shown_by: dict[int, int] = {}
    rewrote: dict[int, int] = {}
    # Earlier texts of the pieces of an attempt that is kept: an undo brings them back.
    earlier: dict[tuple[str, tuple[str, ...]], tuple[tuple[str, ...], ...]] = {}
    answered = -1
    judges = run.judges
    for recorded, chunks in sent_chunks(run.history):
        match recorded.event:
            case PatchApplied(proposal_id=applied):
                if applied in proposals:
                    rewrote |= dict.fromkeys(_rewritten(pieces, proposals[applied], chunks), answered)
                continue
            case StepUndone():
                continue
            case ModelAnswered():
                answered = recorded.seq
                continue
            case ContextCompacted() as compacted:
                kept = _kept_numbers(compacted, shown_by, rewrote)
                pieces = {number: piece for number, piece in pieces.items() if number in kept}
                numbers = {at: number for at, number in numbers.items() if number in kept}
            case CodeRetrieved(failing=failing) if failing:
                earlier = {(each.path, each.lines): each.versions for each in pieces.values()}
                known, pieces, numbers = {}, {}, {}
            case _:
                pass
        given = isinstance(recorded.event, CodeRetrieved | ChunkPinned | ContextCompacted)
        least = 1 if given else LEAST_LINES
        for index, chunk in enumerate(_whole_chunks(recorded.event)):
            if chunk not in chunks:
                continue
            closed = not _is_open(run, chunk.path) or judges.protection(chunk.path) is not None
            if closed or (_lines_of(chunk) < least and chunk.symbol != IMPORTS):
                continue
            key = (chunk.path, chunk.first_line, chunk.text)
            number = known.setdefault(key, len(known) + 1)
            numbers[recorded.seq, index] = number
            shown_by[number] = recorded.seq
            if number not in pieces:
                text = _text(chunk)
                versions, imports = earlier.get((chunk.path, text), (text,)), chunk.symbol == IMPORTS
                short = is_shown_short(recorded.event, chunk, run.wording)
                pieces[number] = FilePiece(number, chunk.path, chunk.first_line, versions, imports, chunk.whole, short)
    return OfferedPieces(tuple(pieces.values()), numbers)


def is_shown_short(event: Event, chunk: Chunk, wording: int) -> bool:
    """Return True if a piece is shown by the first lines of its docstrings.

    Whole are what the user pinned, a whole file, and code that is not written yet: its docstrings say what it shall do.
    """
    code = wording >= SHORT_DOCSTRINGS and isinstance(event, CodeRetrieved) and chunk.path.endswith(PYTHON)
    return code and not chunk.whole and not is_unwritten(chunk.text.split("\n"))


def named_piece(pieces: OfferedPieces, written: RewrittenPiece) -> FilePiece:
    """Return the piece that an answer means; raise `PatchError` if it names none and several are possible."""
    if written.number:
        return pieces.piece(written.number)
    names = set(defined_names(written.lines))
    fitting = [each for each in pieces.pieces if names & set(defined_names(each.lines))]
    if len(pieces.pieces) == 1 or len(fitting) == 1:
        return (fitting or list(pieces.pieces))[0]
    raise PatchError(
        "the answer does not say which piece it rewrites", advice="write a line `Piece <number>` before it"
    )


def aimed(
    pieces: OfferedPieces, written: Sequence[RewrittenPiece]
) -> tuple[tuple[RewrittenPiece, ...], tuple[str, ...]]:
    """Return the rewritings under the pieces whose text they have, and a sentence for each that had another name.

    A small model gives one function the number of another, and where it has no import to add, it writes the piece again
    in their place: what the answer has already under its own number is dropped. It calls a piece a new file, too.
    """
    numbers = {each.number for each in written}
    kept, remarks = [], []
    for each in written:
        meant = meant_piece(pieces, each)
        if meant is not None and meant.number not in numbers:
            numbers.add(meant.number)
            kept.append(replace(each, number=meant.number, path=""))
            remarks.append(f"piece {meant.number} was rewritten: the new file {shown(each.path)} is that piece")
            continue
        piece = named_piece(pieces, each) if not each.path else None
        own = _defined_in_another(pieces, piece, each.lines) if piece is not None else None
        if piece is None or own is None:
            kept.append(each)
        elif own.number in numbers:
            remarks.append(f"piece {piece.number} stayed: its new text was that of piece {own.number}")
        else:
            numbers.add(own.number)
            kept.append(replace(each, number=own.number))
            remarks.append(f"piece {own.number} was rewritten, not piece {piece.number}: the new text is of that one")
    return tuple(kept), tuple(remarks)


def meant_piece(pieces: OfferedPieces, written: RewrittenPiece) -> FilePiece | None:
    """Return the one piece that a new file is meant for, None if there is none or not one.

    It has the number of the piece, the path of one that is a whole file, or this path with something behind it, and
    defines what the piece does.
    """
    names = set(defined_names(written.lines))

    def is_meant(piece: FilePiece) -> bool:
        rest = written.path.removeprefix(piece.path)
        if not rest:
            return piece.whole
        same = rest != written.path and not rest[0].isalpha() and not names.isdisjoint(defined_names(piece.lines))
        return written.path == str(piece.number) or same

    found = [each for each in pieces.pieces if written.path and not each.imports and is_meant(each)]
    return found[0] if len(found) == 1 else None


def _defined_in_another(pieces: OfferedPieces, piece: FilePiece, lines: Sequence[str]) -> FilePiece | None:
    """Return the one other piece of the file that defines what these lines do, None if `piece` or no one piece does."""
    names = set(defined_names(lines))
    if names & set(defined_names(piece.lines)):
        return None
    others = (each for each in pieces.pieces if each.path == piece.path and each.number != piece.number)
    found = [each for each in others if names & set(defined_names(each.lines))]
    return found[0] if len(found) == 1 else None


def _kept_numbers(compacted: ContextCompacted, shown: Mapping[int, int], rewrote: Mapping[int, int]) -> frozenset[int]:
    """Return the numbers of the pieces that the steps beside a compaction show whole."""
    if compacted.piece_chars:
        return frozenset()
    # Only where these steps have the newest changes do their answers stand whole.
    told = (*shown.items(), *(rewrote.items() if compacted.newest_apart else ()))
    return frozenset(number for number, seq in told if seq > compacted.through_seq)


def _whole_chunks(event: Event) -> tuple[Chunk, ...]:
    """Return the chunks of an event that the prompt shows as such, and not as lines of a diff."""
    return (*event.pinned, *event.code) if isinstance(event, ContextCompacted) else chunks_shown_by(event)


def _rewritten(pieces: dict[int, FilePiece], proposal: Proposal, now: Sequence[Chunk]) -> Iterator[int]:
    """Give the pieces that an answer rewrote their new text, if it was applied as written; yield their numbers."""
    if proposal.tool != REWRITE or proposal.edited or proposal.hunks:
        return
    try:
        offered = OfferedPieces(tuple(pieces.values()))
        written, _ = aimed(offered, read_rewrites(proposal.text))
        named = [named_piece(offered, each) for each in written if not each.path]
    except PatchError:
        return
    for piece, chunk in zip(named, now, strict=False):
        if piece.path == chunk.path:
            versions = (*piece.versions, _text(chunk))
            pieces[piece.number] = replace(piece, first_line=chunk.first_line, versions=versions)
            yield piece.number


def _is_open(run: TaskRun, path: str) -> bool:
    scope = run.definition.scope
    return not run.definition.changes_nothing and any(matches_glob(path, glob) for glob in scope.allowed_write_globs)


def _lines_of(chunk: Chunk) -> int:
    return chunk.last_line - chunk.first_line + 1


def _text(chunk: Chunk) -> tuple[str, ...]:
    lines = chunk.text.split("\n")
    if lines[-1] == "" and len(lines) > max(1, _lines_of(chunk)):
        lines.pop()
    return tuple(line.removesuffix("\r") for line in lines)


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
