"""Intents about the notes: offer new ones, search them, and edit one."""

from agent_workbench.core.intents import EditNote, FindNotes, OfferNotes
from agent_workbench.core.intents.outcomes import Accepted, NotesFound, Outcome, Refused
from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote, note_path
from agent_workbench.engine.knowledge.offers import offer_notes, offer_rejections
from agent_workbench.engine.runtime.session_context import SessionContext

MOST_SHOWN = 200


async def handle_notes(session: SessionContext, intent: OfferNotes | EditNote) -> Outcome:
    """Offer notes, or write the user's own change of one; raise `StorageError`, `UsageError`."""
    if isinstance(intent, OfferNotes):
        if not intent.notes:
            return await offer_rejections(session)
        return await offer_notes(session, intent.notes, intent.origin)
    if not intent.text.strip():
        return Refused("the note would be empty; remove its file to remove the note")
    await session.ports.knowledge.write(KnowledgeNote(intent.name, intent.text), intent.before)
    return Accepted(f"written: {note_path(session.settings.memory.dir, intent.name)}")


async def find_notes(session: SessionContext, intent: FindNotes) -> NotesFound:
    """Return the notes that fit the words best, or all by name without words; raise `StorageError`."""
    knowledge, words = session.ports.knowledge, intent.words.strip()
    if words:
        hits = await knowledge.search(words, MOST_SHOWN)
    else:
        hits = tuple(KnowledgeHit(note, 0.0) for note in (await knowledge.notes())[:MOST_SHOWN])
    return NotesFound(words, hits, await knowledge.problem())
