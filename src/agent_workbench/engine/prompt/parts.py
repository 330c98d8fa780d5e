"""Parts of a prompt, made from events. `prompt_text` has their words; `messages` joins parts to chat messages."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    FAILING_FIRST,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    KnowledgeFound,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    SkillsChosen,
    TaskStarted,
    UserSaid,
)
from agent_workbench.core.model import Role
from agent_workbench.core.patch.docstrings import with_short_docstrings
from agent_workbench.core.patch.rewritten_pieces import fence_for
from agent_workbench.core.repo.repo_map import RepoMap
from agent_workbench.core.repo.retrieval import IMPORTS, Chunk
from agent_workbench.core.state.file_pieces import LEAVES_OUT, chunks_shown_by, is_shown_short
from agent_workbench.engine.notes import HEADING, note_text
from agent_workbench.engine.prompt.prompt_text import (
    FOUND,
    FOUND_NOTHING,
    checks_outcome_text,
    current_change_text,
    cut_answer_text,
    event_text,
    label,
    notes_text,
    quoted,
    summary_text,
    visible_notes,
)
from agent_workbench.engine.prompt.shortened_steps import shortened_steps
from agent_workbench.engine.prompt.step_history import without_summaries
from agent_workbench.engine.prompt.task_text import assignment, instructions_texts, map_text, skill_text
from agent_workbench.engine.runtime.budget import clip

CODE, PINNED, SKILL, KNOWLEDGE = "code", "pinned", "skill", "knowledge"
"""Names of the parts with found and pinned code, skills and found notes; each goes on with its place or name."""
PieceNumbers = Mapping[tuple[int, int], int] | None
"""Numbers of the pieces by the event's `seq` and the index of the chunk; None where the model rewrites no pieces."""
MOST_WORDS = 12
"""Number of the user's newest messages that survive a compaction."""


class Part(Struct, frozen=True):
    """A piece of a prompt with its name in the receipt."""

    role: Role
    label: str
    text: str


def wording_version(history: Sequence[Recorded]) -> int:
    """Return the version of the prompt texts with which this run was started."""
    started = history[0].event if history else None
    return started.wording if isinstance(started, TaskStarted) else 0


def parts_of(recorded: Recorded, shown: Collection[str], wording: int, numbers: PieceNumbers = None) -> Iterator[Part]:
    """Yield the parts that an event adds. Code at the locations `shown` is in the prompt already.

    `numbers` are those of the pieces that the model may rewrite (`core.state.file_pieces`).
    """
    event = recorded.event
    match event:
        case TaskStarted():
            yield from _opening(event)
        case ModelAnswered():
            yield Part(Role.ASSISTANT, "answer", event.text)
        case ModelInterrupted(cut=True):
            yield Part(Role.ASSISTANT, "answer", cut_answer_text(event, wording))
            yield Part(Role.USER, "observation", event_text(event, wording))
        case KnowledgeFound():
            yield from _knowledge(event)
        case CodeRetrieved():
            if event.map is not None and wording < FAILING_FIRST:
                yield Part(Role.USER, "map", map_text(event.map))
            elif event.map is not None and not _shows_all(event.map, event.chunks):
                # The task tells the command of its checks.
                yield Part(Role.USER, "map", map_text(replace(event.map, test_command="")))
            offered = _numbers_of(recorded.seq, numbers)
            yield from _found(tuple(_as_shown(event, wording, offered or {})), offered)
        case ChunkPinned(pinned=True, chunk=chunk):
            named = f"The user pinned {chunk.place}: it matters, keep to it."
            name = f"{PINNED} {chunk.place}" if wording >= LEAVES_OUT else PINNED
            text = chunk.text if numbers is None else piece_text(chunk, numbers.get((recorded.seq, 0)))
            yield Part(Role.USER, name, named if chunk.place in shown else f"{named}\n{text}")
            if event.imports is not None:
                text = piece_text(event.imports, (numbers or {}).get((recorded.seq, 1)))
                yield Part(Role.USER, f"{CODE} {event.imports.place}", text)
        case _:
            offered, found = _numbers_of(recorded.seq, numbers), chunks_shown_by(event)
            places = ", ".join(f"piece {number} is {found[at].place}" for at, number in (offered or {}).items())
            if text := event_text(event, wording):
                yield Part(Role.USER, label(event), f"{text}\nTo rewrite: {places}." if places else text)


def compacted_parts(
    history: Sequence[Recorded], event: ContextCompacted, numbers: PieceNumbers = None
) -> Iterator[Part]:
    """Yield the parts of a compacted prompt after the rules; `event` is the compaction, the last of `history`.

    Their order: skills, task, scratchpad, code and the user's messages; summary, change and checks; the newest steps.
    """
    bound = event.piece_chars
    about = event.about_chars
    wording, found = wording_version(history), _numbers_of(history[-1].seq, numbers)
    yield from skill_parts(newest_skills(history))
    for recorded in history[:1]:
        if isinstance(recorded.event, TaskStarted):
            yield from _opening(recorded.event, about)
    yield from _kept_knowledge(history, about)
    if drawn := _map_of(history):
        yield Part(Role.USER, "map", map_text(drawn, about))
    if notes := notes_of(history):
        yield Part(Role.USER, "scratchpad", notes_text(_bounded(notes, event.notes_chars or bound)))
    for at, chunk in enumerate(event.pinned):
        text = chunk.shown if found is None else piece_text(chunk, found.get(at))
        yield Part(Role.USER, f"{PINNED} {chunk.place}", f"The user pinned {text}")
    if event.code:
        offered = None if found is None else {at - len(event.pinned): each for at, each in found.items()}
        yield from _found(event.code, offered)
    if words := _words(history, event.through_seq):
        said = "\n".join(quoted(_bounded(word, bound)) for word in words)
        yield Part(Role.USER, "user", f"What the user said meanwhile:\n{said}")
    newest = tuple(_tail(history, event, numbers))
    yield Part(Role.USER, "summary", summary_text(event.summary, shown=bool(newest)))
    yield Part(Role.USER, "change", current_change_text(event.diff, newest_apart=event.newest_apart))
    if event.failing:
        yield Part(Role.USER, "failing", checks_outcome_text(event.failing, wording))
    for part in newest:
        yield part if part.role is Role.ASSISTANT else Part(part.role, part.label, _bounded(part.text, bound))


def _opening(started: TaskStarted, about_chars: int = 0) -> Iterator[Part]:
    yield Part(Role.USER, "task", assignment(started))
    for path, text in instructions_texts(started.instructions, about_chars):
        yield Part(Role.USER, path, text)
    for skill in started.skills:
        yield Part(Role.USER, f"{SKILL} {skill.name}", f"Skill {skill.name}:\n{skill.text}")


def skill_parts(chosen: SkillsChosen | None) -> Iterator[Part]:
    """Yield the parts with the chosen skills, which stand before the task."""
    for skill in chosen.skills if chosen is not None else ():
        yield Part(Role.USER, f"{SKILL} {skill.name}", skill_text(skill))


def newest_skills(history: Sequence[Recorded]) -> SkillsChosen | None:
    """Return the newest choice of skills, None if there is none."""
    return next((each.event for each in reversed(history) if isinstance(each.event, SkillsChosen)), None)


def _map_of(history: Sequence[Recorded]) -> RepoMap | None:
    """Return the newest map of the repository, None if there is none."""
    searches = (each.event for each in reversed(history) if isinstance(each.event, CodeRetrieved))
    return next((search.map for search in searches), None)


def _as_shown(event: CodeRetrieved, wording: int, numbers: Mapping[int, int]) -> Iterator[Chunk]:
    """Yield the found code, the pieces that may be rewritten without their long docstrings."""
    for at, chunk in enumerate(event.chunks):
        if at in numbers and is_shown_short(event, chunk, wording):
            yield replace(chunk, text="\n".join(with_short_docstrings(chunk.text.split("\n"))))
        else:
            yield chunk


def _found(chunks: Sequence[Chunk], numbers: Mapping[int, int] | None) -> Iterator[Part]:
    if not chunks:
        yield Part(Role.USER, CODE, FOUND_NOTHING)
    yield from found_parts(chunks, numbers)


def found_parts(chunks: Sequence[Chunk], numbers: Mapping[int, int] | None = None) -> Iterator[Part]:
    """Yield the parts of found code; none without any."""
    if chunks:
        yield Part(Role.USER, CODE, FOUND)
    for at, chunk in enumerate(chunks):
        text = chunk.shown if numbers is None else piece_text(chunk, numbers.get(at))
        yield Part(Role.USER, f"{CODE} {chunk.place}", text)


def _shows_all(found: RepoMap, chunks: Sequence[Chunk]) -> bool:
    """Return True if a repository is so small that all its files are shown, but for those with a leading dot."""
    hidden = sum(path.rpartition("/")[2].startswith(".") for path in found.near)
    return found.files - hidden <= len({chunk.path for chunk in chunks})


def _numbers_of(seq: int, numbers: PieceNumbers) -> dict[int, int] | None:
    """Return the numbers of an event's pieces by the index of the chunk."""
    if numbers is None:
        return None
    return {at: number for (each, at), number in numbers.items() if each == seq}


def piece_text(chunk: Chunk, number: int | None) -> str:
    """Return a chunk between fences under its number and location; without a number it cannot be rewritten.

    A small model that reads that a piece is lines 1 to 3 of a file writes three lines.
    """
    place = f"{chunk.path}, the whole file" if chunk.whole else chunk.place
    head = f"Piece {number}: {place}" if number is not None else f"{chunk.place}, read-only"
    if number is not None and chunk.symbol == IMPORTS:
        head += ", its imports; where a piece of the file needs another one, these follow it in the same answer"
    above = f"{head}, below these lines of the file:\n{chunk.context}" if chunk.context else head
    fence = fence_for(chunk.text)
    return f"{above}\n{fence}\n{chunk.text.removesuffix(chr(10))}\n{fence}"


def _knowledge(event: KnowledgeFound, dropped: Collection[str] = (), about_chars: int = 0) -> Iterator[Part]:
    """Yield the found notes under their heading; each is cut to `about_chars` characters (0: none is)."""
    notes = [note for note in event.notes if note.place not in dropped]
    if notes:
        yield Part(Role.USER, KNOWLEDGE, HEADING)
    for note in notes:
        yield Part(Role.USER, f"{KNOWLEDGE} {note.place}", _bounded(note_text(note), about_chars))


def _kept_knowledge(history: Sequence[Recorded], about_chars: int) -> Iterator[Part]:
    """Yield the notes that stay in a compacted prompt: those that the user did not drop."""
    dropped = {each.event.place for each in history if isinstance(each.event, ChunkDropped)}
    for recorded in history:
        if isinstance(recorded.event, KnowledgeFound):
            yield from _knowledge(recorded.event, dropped, about_chars)


def _tail(history: Sequence[Recorded], compacted: ContextCompacted, numbers: PieceNumbers) -> Iterator[Part]:
    """Yield the parts of the steps that the summary does not cover, without older versions of the scratchpad."""
    shown, wording = {chunk.place for chunk in chunks_shown_by(compacted)}, wording_version(history)
    short = shortened_steps(history, compacted) if wording >= 2 else {}
    for recorded in without_summaries(history):
        told_above = isinstance(recorded.event, PromptBuilt | ScratchpadChanged | KnowledgeFound)
        if recorded.seq > compacted.through_seq and not told_above:
            for part in parts_of(recorded, shown, wording, numbers):
                yield Part(part.role, part.label, short.get(recorded.seq, part.text))


def notes_of(history: Sequence[Recorded]) -> str:
    """Return the part of the latest recorded scratchpad that a prompt may show."""
    started = history[0].event
    task = started.task if isinstance(started, TaskStarted) else ""
    changes = (each.event for each in reversed(history) if isinstance(each.event, ScratchpadChanged))
    return next((visible_notes(change) for change in changes if change.task == task), "")


def _words(history: Sequence[Recorded], through_seq: int) -> list[str]:
    said = [each.event.text for each in history if isinstance(each.event, UserSaid) and each.seq <= through_seq]
    return said[-MOST_WORDS:]


def _bounded(text: str, limit_chars: int) -> str:
    return clip(text, limit_chars) if limit_chars > 0 else text
