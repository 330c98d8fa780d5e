"""Search of the notes for the words of a task or a question, within a budget, and its text for a prompt."""

from math import ceil

from agent_workbench.core.errors import StorageError, error_text
from agent_workbench.core.events import KnowledgeFound
from agent_workbench.core.knowledge import EXCERPT_CHARS, KnowledgeHit, excerpt_of, note_path, read_head
from agent_workbench.core.ports.search import Knowledge
from agent_workbench.core.repo.retrieval import Chunk, SignalKind

HEADING = "## Relevant knowledge"
MOST_NOTES = 3
LEAST_WORDS = 2
"""Words that a note must share with a task: one alone is in too many notes."""
CHARS_PER_TOKEN = 4
SEARCHED = 30
"""Number of hits that are looked at."""


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
