"""Notes that outlive a task: searched within a budget for its words, and new ones proposed as a diff of their files."""

import re
import unicodedata
from asyncio import to_thread
from collections.abc import Iterable, Sequence
from math import ceil

from msgspec import Struct

from agent_workbench.core.errors import PatchError, StorageError, UsageError, error_text
from agent_workbench.core.events import KnowledgeFound, OfferedNote
from agent_workbench.core.knowledge import (
    EXCERPT_CHARS,
    KnowledgeHit,
    KnowledgeNote,
    check_note_name,
    excerpt_of,
    name_in_path,
    note_path,
    read_head,
    words_of,
)
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.comparison import compare_contents
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.values import FileChange, FileContent, LineKind, Patch, content_hash
from agent_workbench.core.ports.search import Knowledge
from agent_workbench.core.proposals import Preimage, Proposal
from agent_workbench.core.proposed_action import SimilarNote
from agent_workbench.core.repo.retrieval import Chunk, SignalKind

MAX_NOTES = 30
MAX_NOTE_CHARS = 20_000
SHOWN_CHARS = 600
REPEATS = 0.5
"""Share of a note's words in an existing note from which on it repeats that."""
LOOKED_AT = 3
_HEADER = re.compile(r"==> (?P<path>.+) <==")

HEADING = "## Relevant knowledge"
MOST_NOTES = 3
LEAST_WORDS = 2
"""Words that a note must share with a task: one alone is in too many notes."""
CHARS_PER_TOKEN = 4
SEARCHED = 30
"""Number of hits that are looked at."""


class NoteDiff(Struct, frozen=True):
    """The effect of proposed notes: a diff of their files, with the content of each file before it.

    `existing` are the paths of notes that would be changed, `similar` the notes that new ones repeat.
    """

    patch: Patch
    diff: str
    paths: tuple[str, ...]
    preimages: tuple[Preimage, ...]
    existing: tuple[str, ...]
    similar: tuple[SimilarNote, ...]


async def diff_notes(knowledge: Knowledge, memory: str, notes: Sequence[OfferedNote]) -> NoteDiff:
    """Return what writing these notes would change; raise `UsageError`, `StorageError`, `PatchError`."""
    _check(notes)
    changes, similar = [], []
    for note in notes:
        path = note_path(memory, note.name)
        before = await _content(knowledge, note.name)
        changes.append(FileChange(path, before, FileContent(plain_note(note.text).encode())))
        if before is None:
            similar += await _similar(knowledge, memory, path, note.text)
    patch = await to_thread(compare_contents, changes)
    if not patch.files:
        raise UsageError("the notes are there already, exactly as they are proposed")
    real = [change for change in changes if change.before != change.after]
    return NoteDiff(
        patch,
        render_patch(patch),
        patch.paths,
        tuple(Preimage(change.path, content_hash(change.before)) for change in real),
        tuple(change.path for change in real if change.before is not None),
        tuple(similar),
    )


async def moved_note(knowledge: Knowledge, proposal: Proposal) -> str:
    """Return the path of the first note that changed after the proposal was shown, empty if none did."""
    for preimage in proposal.preimages:
        try:
            content = await _content(knowledge, name_in_path(preimage.path))
        except StorageError:
            return preimage.path
        if content_hash(content) != preimage.sha:
            return preimage.path
    return ""


async def write_notes(knowledge: Knowledge, proposal: Proposal) -> tuple[str, ...]:
    """Write the notes of an approved diff; return their paths. Raises `StorageError`, `PatchError`.

    Each note is written whole or not at all; an error names those that were written before it.
    """
    patch = await to_thread(lambda: proposal.patch)
    contents = {path: await _content(knowledge, name_in_path(path)) for path in patch.paths}
    written: list[str] = []
    for change in await to_thread(apply_patch, patch, contents):
        if change.after is None:
            raise PatchError(f"{change.path}: an approved diff of notes removes none")
        before = change.before.data.decode() if change.before is not None else None
        note = KnowledgeNote(name_in_path(change.path), change.after.data.decode())
        try:
            await knowledge.write(note, before)
        except StorageError as error:
            done = f"; written before it: {', '.join(written)}" if written else ""
            raise StorageError(f"{error}{done}", advice=error.advice) from error
        written.append(change.path)
    return tuple(written)


def shown_title(proposal: Proposal) -> str:
    """Return the title of the note that a proposal shows: that of the lines which its diff leads to."""
    hunks = [hunk for file in proposal.patch.files[:1] for hunk in file.hunks[:1]]
    lines = [line.text for hunk in hunks for line in hunk.lines if line.kind is not LineKind.REMOVED]
    return read_head("\n".join(lines)).title or name_in_path(proposal.paths[0])


def notes_document(notes: Iterable[OfferedNote], memory: str) -> str:
    """Return notes as one text that a user can edit: the path of each in a line `==> PATH <==` above it."""
    return "\n".join(f"==> {note_path(memory, note.name)} <==\n{_escaped(plain_note(note.text))}" for note in notes)


def read_document(text: str) -> tuple[OfferedNote, ...]:
    """Return the notes of such a text; raise `UsageError` if it has none, or a text before the first."""
    notes: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if header := _HEADER.fullmatch(line.strip()):
            notes.append((name_in_path(header["path"]), []))
        elif notes:
            notes[-1][1].append(line.removeprefix("\\") if _HEADER.fullmatch(line.strip("\\ ")) else line)
        elif line.strip():
            raise UsageError("the text begins without the path of a note", advice="write ==> PATH <== above each note")
    found = tuple(OfferedNote(name, "\n".join(lines).strip("\n") + "\n") for name, lines in notes)
    _check(found)
    return found


def plain_note(text: str) -> str:
    """Return the text of a note without control characters, which no markdown needs, ended by a line feed."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(each for each in lines if each in "\n\t" or unicodedata.category(each) not in {"Cc", "Cs"})
    return kept.rstrip("\n") + "\n"


def _escaped(text: str) -> str:
    return "\n".join(f"\\{line}" if _HEADER.fullmatch(line.strip()) else line for line in text.split("\n"))


def _check(notes: Sequence[OfferedNote]) -> None:
    if not 0 < len(notes) <= MAX_NOTES:
        raise UsageError(f"{len(notes)} notes are proposed at once", advice=f"propose 1 to {MAX_NOTES}")
    names = [note.name for note in notes]
    for note in notes:
        check_note_name(note.name)
        if names.count(note.name) > 1:
            raise UsageError(f"two notes are called {note.name}", advice="give each a name of its own")
        if not note.text.strip():
            raise UsageError(f"the note {note.name} is empty", advice="write what is to be remembered")
        if len(note.text) > MAX_NOTE_CHARS:
            raise UsageError(
                f"the note {note.name} has {len(note.text):,} characters", advice=f"at most {MAX_NOTE_CHARS:,}"
            )


async def _content(knowledge: Knowledge, name: str) -> FileContent | None:
    """Return the content of a note's file; raise `StorageError` for one that cannot be read."""
    note = await knowledge.read(name)
    if note is None:
        return None
    if note.problem:
        raise StorageError(f"the note {name} {note.problem}", advice="choose another name, or mend the file")
    return FileContent(note.text.encode())


async def _similar(knowledge: Knowledge, memory: str, path: str, text: str) -> list[SimilarNote]:
    """Return the existing note that this text repeats most, if there is one."""
    words = words_of(text)
    if not words:
        return []
    scored = []
    for hit in await knowledge.search(text, LOOKED_AT):
        scored.append((len(words & words_of(hit.note.text)) / len(words), hit.note))
    best = max(scored, key=lambda each: each[0], default=None)
    if best is None or best[0] < REPEATS:
        return []
    shown = excerpt_of(best[1].text, limit_chars=SHOWN_CHARS).text
    return [SimilarNote(path, note_path(memory, best[1].name), shown)]


async def find_knowledge(
    knowledge: Knowledge,
    memory: str,
    words: str,
    *,
    limit: int = MOST_NOTES,
    max_tokens: int = 1_000,
    least_words: int = LEAST_WORDS,
) -> KnowledgeFound:
    """Return excerpts of at most `limit` notes that fit the words, in at most `max_tokens` estimated tokens.

    A hit counts if it shares `least_words` words, all words of a shorter query, or is similar by its vector. Never
    raises: what could not be searched is the `problem` of the result.
    """
    if limit < 1 or max_tokens < 1:
        return KnowledgeFound(words)
    try:
        hits = await knowledge.search(words, SEARCHED)
        problem = await knowledge.problem()
    except StorageError as error:
        return KnowledgeFound(words, (), error_text(error))
    least = min(least_words, len(set(words.split())))
    found: list[Chunk] = []
    left = max_tokens
    for hit in hits:
        chunk = note_chunk(hit, memory, min(EXCERPT_CHARS, left * CHARS_PER_TOKEN))
        if len(found) < limit and _fits(hit, least) and chunk.tokens <= left and chunk.text.strip():
            found.append(chunk)
            left -= chunk.tokens
    return KnowledgeFound(words, tuple(found), problem)


def note_chunk(hit: KnowledgeHit, memory: str, limit_chars: int = EXCERPT_CHARS) -> Chunk:
    """Return the excerpt of a note around the words that were found in it; its `symbol` is the note's title."""
    note = hit.note
    excerpt = excerpt_of(note.text, hit.words, limit_chars)
    title = read_head(note.text).title or note.name
    return Chunk(
        note_path(memory, note.name),
        excerpt.first_line,
        excerpt.last_line,
        excerpt.text,
        round(hit.score, 4),
        symbol=title,
        why=hit.words,
        tokens=ceil((len(title) + len(excerpt.text)) / CHARS_PER_TOKEN),
        signals=hit.signals,
    )


def note_text(note: Chunk) -> str:
    """Return a found note as a prompt shows it."""
    return f"### {note.symbol}\n{note.text}"


def knowledge_text(found: KnowledgeFound) -> str:
    """Return the block of the found notes, empty without any."""
    notes = list(map(note_text, found.notes))
    return "\n\n".join((HEADING, *notes)) if notes else ""


def _fits(hit: KnowledgeHit, least_words: int) -> bool:
    return len(hit.words) >= least_words or any(signal.kind is SignalKind.VECTOR for signal in hit.signals)
