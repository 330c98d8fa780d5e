"""Intents that ask a consultant: review, debug, spec; and those about notes: offer, search, edit."""

from agent_workbench.core.consult_requests import ConsultRequest
from agent_workbench.core.errors import UsageError
from agent_workbench.core.intents import AskConsultant, EditNote, FindNotes, OfferNotes
from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote, note_path
from agent_workbench.core.live import Consulting
from agent_workbench.core.outcomes import Accepted, NotesFound, Outcome, Refused
from agent_workbench.engine.consult_context import consult_context
from agent_workbench.engine.consultation import consult, purpose_of
from agent_workbench.engine.note_offers import offer_notes, offer_rejections
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.runtime.session_context import SessionContext

ERROR_CHARS = 20_000

MOST_SHOWN = 200


async def ask_consultant(session: SessionContext, intent: AskConsultant) -> Outcome:
    """Ask, and accept when the answer is recorded; the answer is shown from the state."""
    request = _request(session, intent)
    if isinstance(request, Refused):
        return request
    session.publisher.show_consulting(Consulting(request.skill))
    try:
        answer = await consult(await consult_context(session, request.skill), request)
    finally:
        session.publisher.show_consulting(None)
    return Accepted("; ".join(answer.remarks))


def _request(session: SessionContext, intent: AskConsultant) -> ConsultRequest | Refused:
    """Return the request that fits the state, or why there is nothing to ask."""
    match intent.skill:
        case "review":
            return _review(session, intent)
        case "debug":
            return _debug(session)
        case "spec":
            return _spec(session, intent)
        case _:
            raise UsageError(f"{intent.skill!r} is asked with `agent consult`")


def _review(session: SessionContext, intent: AskConsultant) -> ConsultRequest | Refused:
    waiting, run = session.state.waiting, session.state.run
    if waiting is None or waiting.id != intent.proposal:
        return Refused("that no longer waits; look at what waits now")
    if not waiting.changes_code or not waiting.diff:
        return Refused(f"a {waiting.kind} has no diff to review")
    about = (("context", purpose_of(run.definition)),) if run is not None else ()
    return ConsultRequest(
        "review", about, waiting.paths, session=session.state.session, diff=waiting.diff, about=waiting.id
    )


def _debug(session: SessionContext) -> ConsultRequest | Refused:
    run = session.state.run
    results = (run.results or run.baseline or ()) if run is not None else ()
    failed = [each for each in results if not each.passed]
    if run is None or not failed:
        return Refused("no check has failed; `agent consult debug -` reads any error")
    share = ERROR_CHARS // len(failed)
    error = "\n\n".join(f"$ {each.command}\n{clip(each.output.strip(), share)}" for each in failed)
    return ConsultRequest(
        "debug", (("error", error), ("context", purpose_of(run.definition))), session=session.state.session
    )


def _spec(session: SessionContext, intent: AskConsultant) -> ConsultRequest | Refused:
    task = next((each for each in session.state.plan.tasks if each.id == intent.task), None)
    if task is None:
        return Refused("that task is not in the plan any more")
    wanted = (task.description, task.goal, task.suggested_approach, *task.accept_tests)
    requirements = "\n".join(each.strip() for each in wanted if each.strip())
    return ConsultRequest("spec", (("requirements", requirements),), session=session.state.session)


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
