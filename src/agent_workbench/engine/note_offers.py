"""Offer of notes at the gate: proposed when nothing else waits, edited by the user, and written."""

from asyncio import to_thread
from collections.abc import Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError, StorageError, UsageError, error_text
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ActionStarted,
    Author,
    NotesOffered,
    OfferedNote,
    ProposalReplaced,
    Recorded,
    TroubleMet,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.knowledge import MAX_NAME_CHARS, PUT_ASIDE, compose_note, name_in_path, notes_of_rejections
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.patch.diff_text import canonical_patch
from agent_workbench.core.proposal_kinds import KnowledgeProposal
from agent_workbench.core.proposals import OFFER_NOTES, POLICY, Proposal, Verdict, with_patch
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.engine.notes import (
    MAX_NOTES,
    diff_notes,
    moved_note,
    notes_document,
    read_document,
    shown_title,
    write_notes,
)
from agent_workbench.engine.runtime.session_context import SessionContext

MOST_NAMES = 50
STOPPED = "the workbench was stopped while it wrote the notes; `agent knowledge list` shows which are there"


async def offer_notes(session: SessionContext, notes: Sequence[OfferedNote], origin: str, task: str = "") -> Outcome:
    """Record notes that are offered to the user, or refuse them with the reason."""
    config = session.state.config
    if config is not None and config.approvals.of(Permission.KNOWLEDGE) is Approval.DENY:
        return Refused("the policy does not allow new notes (knowledge: deny in .agent.yml)")
    try:
        await diff_notes(session.ports.knowledge, session.settings.memory.dir, notes)
    except (UsageError, StorageError, PatchError) as error:
        return Refused(error_text(error))
    await session.record(NotesOffered(tuple(notes), origin, task))
    return Accepted()


async def offer_rejections(session: SessionContext) -> Outcome:
    """Offer as notes what the user rejected in the newest task, with their reasons, or say why there is nothing.

    Names that notes have already are not taken: each of these is a note of its own. Raises `StorageError`.
    """
    run = session.state.run
    found = await to_thread(notes_of_rejections, tuple(run.history), run.definition) if run is not None else ()
    if run is None or not found:
        return Refused("nothing was rejected with a reason in the newest task of this session")
    kept = [await session.ports.knowledge.read(note.name) for note in found]
    new = [note for note, there in zip(found, kept, strict=True) if there is None or there.text != note.text]
    if not new:
        return Refused("what was rejected in the newest task is kept already")
    notes = [replace(note, name=await _free_name(session, note.name)) for note in new]
    return await offer_notes(session, notes, f"what you rejected in {run.task}", run.task)


async def offer_put_aside(session: SessionContext) -> None:
    """Offer and propose the notes that an unattended task put aside for a person, once the task is over."""
    run, offered = session.run, session.state.note_offer
    if offered is not None and offered.offered.task == run.task:
        return
    notes = await to_thread(_put_aside, tuple(run.history))
    if notes:
        await session.record(NotesOffered(notes, f"the model's steps in {run.task}", run.task))
        await propose_notes(session)
        if session.state.waiting is not None:
            session.hooks.tell_waiting(session.state.waiting, session.state)


def _put_aside(history: Sequence[Recorded]) -> tuple[OfferedNote, ...]:
    aside = (each for each in decisions_of(history) if each.event.reason == PUT_ASIDE and each.versions)
    notes: dict[str, OfferedNote] = {}
    for shown in (each.versions[0] for each in aside):
        name = name_in_path(shown.paths[0])
        notes[name] = OfferedNote(name, compose_note(shown_title(shown), shown.text))
    return tuple(notes.values())[:MAX_NOTES]


async def _free_name(session: SessionContext, wanted: str) -> str:
    for number in range(1, MOST_NAMES):
        name = wanted if number == 1 else f"{wanted[: MAX_NAME_CHARS - 4].rstrip('._-')}-{number}"
        if await session.ports.knowledge.read(name) is None:
            return name
    raise StorageError(f"there are {MOST_NAMES} notes called {wanted}", advice="rename or remove some")


async def propose_notes(session: SessionContext) -> None:
    """Propose the notes of the open offer; what cannot be proposed any more is told and closed."""
    offer = session.state.open_note_offer
    if offer is None:
        return
    id = ProposalId(f"P-{session.state.seq + 1}")
    notes = offer.offered.notes
    try:
        made = await _proposal(session, id, notes, edited=False)
    except (UsageError, StorageError, PatchError) as error:
        text = notes_document(notes, session.settings.memory.dir)
        failed = KnowledgeProposal(id, OFFER_NOTES, text, 0)
        await session.record(ActionProposed(failed))
        await session.record(ActionDecided(id, Verdict.REJECT, "policy:notes", error_text(error)))
        session.publisher.notify(f"notes were not proposed: {error_text(error)}")
        return
    await session.record(ActionProposed(made))


async def edit_notes(session: SessionContext, waiting: Proposal, text: str) -> None:
    """Replace the proposal by one of the notes in the user's text; raise `UsageError`, `StorageError`, `PatchError`."""
    made = await _proposal(session, waiting.id, read_document(text), edited=True)
    await session.record(ProposalReplaced(made, "edited", Author.USER))


async def take_notes(session: SessionContext, proposal: Proposal, *, begun: bool) -> None:
    """Write the approved notes; if one changed since it was shown, or cannot be written, they wait at the gate again.

    `begun`: a stop interrupted that. It is recorded as unknown and not repeated.
    """
    if begun:
        await session.record(ActionFinished(proposal.id, ActionResult.UNKNOWN, STOPPED))
        session.publisher.notify(STOPPED)
        return
    if moved := await moved_note(session.ports.knowledge, proposal):
        await _ask_again(session, proposal, f"{moved} changed after this was shown")
        return
    decision = session.state.gate.decision
    by_person = decision is not None and not decision.by.startswith(POLICY)
    session.publisher.show_activity("writing notes")
    await session.record(ActionStarted(proposal.id))
    try:
        paths = await write_notes(session.ports.knowledge, proposal)
    except (StorageError, PatchError, UsageError) as error:
        await session.record(ActionFinished(proposal.id, ActionResult.REFUSED, error_text(error)))
        if isinstance(error, StorageError) and by_person:
            await _ask_again(session, proposal, str(error))
        elif isinstance(error, StorageError):  # a policy would approve it again at once
            await session.record(TroubleMet("knowledge", str(error), error.advice))
        return
    told = f"written: {', '.join(paths)}"
    await session.record(ActionFinished(proposal.id, ActionResult.OK, told))
    session.publisher.notify(told)


async def _ask_again(session: SessionContext, proposal: Proposal, reason: str) -> None:
    try:
        made = await _proposal(session, proposal.id, read_document(proposal.text), edited=proposal.edited)
    except (UsageError, StorageError, PatchError) as error:
        await session.record(ActionFinished(proposal.id, ActionResult.REFUSED, f"{reason}: {error_text(error)}"))
        return
    await session.record(ProposalReplaced(made, reason, Author.WORKBENCH))
    session.publisher.notify(f"{reason}; look at it again")


async def _proposal(session: SessionContext, id: ProposalId, notes: Sequence[OfferedNote], *, edited: bool) -> Proposal:
    memory = session.settings.memory.dir
    made = await diff_notes(session.ports.knowledge, memory, notes)
    offer = session.state.open_note_offer
    offered = {note.name: note for note in offer.offered.notes} if offer is not None else {}
    told = [offered[note.name].origin for note in notes if note.name in offered and offered[note.name].origin]
    proposal = KnowledgeProposal(
        id=id,
        tool=OFFER_NOTES,
        text=notes_document(notes, memory),
        step=0,
        diff=made.diff,
        paths=made.paths,
        special=made.existing,
        preimages=made.preimages,
        edited=edited,
        similar=made.similar,
        origins=tuple(dict.fromkeys((*((offer.offered.origin,) if offer is not None else ()), *told))),
    )
    return with_patch(proposal, canonical_patch(made.patch))
