"""Proofs: a session's journal against the repository, and a commit against the approvals of its journal."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import tombstones
from agent_workbench.core.errors import JournalError, StorageError, UsageError, WorkspaceError
from agent_workbench.core.ids import SESSION_ID, SessionId, session_id
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.adapters.journal.session_store import Tombstones
    from agent_workbench.api.signed_anchors import SignedAnchors
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.history.commit_proof import CommitFacts, CommitProof, TrailerProof
    from agent_workbench.core.history.journal_proof import Anchor, FoundAnchors, JournalProof, VerifyReport
    from agent_workbench.core.history.leftovers import Tombstone
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.settings import Settings

NO_TRAILER = "its message has no Agent-Journal trailer, so it names no approval"
NO_JOURNAL = "the journal of session {} is not here"


async def prove_session(invocation: Invocation, session: str) -> "JournalProof":
    """Return the proof of a session's journal by its hash chain and every anchor in the repository.

    A journal that the user removed is not provable; what else was removed of the session is noted.
    Raises `UsageError` where there is no such session and nothing names one, `JournalError` where its journal is gone
    and nothing names an event of it.
    """
    from agent_workbench.core.history.journal_proof import JournalProof

    repo, settings = await trusted_repo(invocation)
    prover = await _prover(repo, settings)
    sessions = prover.sessions
    try:
        session = await sessions.locate(session)
    except UsageError:
        if not SESSION_ID.fullmatch(session):
            raise
        session = SessionId(session)
        if (stone := await prover.tombstone(session)) is not None and stone.journal:
            return JournalProof(session, 0, "", notes=(stone.note,))
        if not (await prover.anchors({session})).anchors:
            raise
    report, proof = await prover.prove(session)
    if not report.events and proof.problems and len(proof.problems) == len(report.problems):
        raise JournalError(report.problems[0].what, advice=report.problems[0].advice)
    stone = await prover.tombstone(session_id(session))
    return replace(proof, notes=(*proof.notes, stone.note)) if stone is not None else proof


async def prove_commit(invocation: Invocation, revision: str) -> "CommitProof":
    """Return which approval led to a commit, and whether it matches; raise `UsageError` for an unknown commit."""
    from agent_workbench.core.history.commit_proof import CommitProof, without_squashed
    from agent_workbench.core.history.journal_proof import read_trailers

    repo, settings = await trusted_repo(invocation)
    advice, remote = "`git log` shows the commits", settings.database.remote
    if settings.database.active and remote:
        advice += f"; `git fetch {remote}` brings those of other machines, such as {remote}/agent/T-1"
    unknown = UsageError(f"{revision!r} is not a commit of this repository", advice=advice)
    try:
        facts = await repo.repository.stored_commits().commit(revision)
    except WorkspaceError as error:  # such as `@{u}` without an upstream
        raise unknown from error
    if facts is None:
        raise unknown
    if not facts.intact:
        return CommitProof(facts, problems=("what is stored under its name is too large, or has another hash",))
    prover = await _prover(repo, settings)
    found = read_trailers(facts.commit, facts.message)
    wrong = tuple(f"its trailer {value!r} names no event of a session" for value in found.malformed)
    alone = len(found.anchors) == 1
    trailers = without_squashed([await _prove_trailer(prover, facts, each, alone=alone) for each in found.anchors])
    missing = "" if found.anchors or wrong else NO_TRAILER + await _parents(repo.repository, facts)
    return CommitProof(facts, trailers, wrong, missing)


async def _prover(repo: "RepoContext", settings: "Settings") -> "Prover":
    """Return the prover of a repository's sessions; with a database, signed heads count too."""
    sessions = await asyncio.to_thread(repo.sessions, settings)
    if not settings.database.active or not settings.database.remote:
        return Prover(repo.repository, sessions, tombstones())
    from agent_workbench.api.signed_anchors import SignedAnchors
    from agent_workbench.bootstrap.database import session_refs, shared_signatures

    signed = SignedAnchors(session_refs(repo, settings), shared_signatures(repo, settings.database))
    return Prover(repo.repository, sessions, tombstones(), signed)


async def _parents(repository: "Repository", facts: "CommitFacts") -> str:
    """Return the advice to verify a parent of a merge commit, empty if none has a trailer."""
    from agent_workbench.core.history.journal_proof import read_trailers

    for parent in facts.parents[1:9]:
        merged = await repository.stored_commits().commit(parent)
        if merged is not None and read_trailers(parent, merged.message).anchors:
            return f"; it merges {parent[:10]}, which has one"
    return ""


async def _prove_trailer(prover: "Prover", facts: "CommitFacts", anchor: "Anchor", *, alone: bool) -> "TrailerProof":
    from agent_workbench.core.history.commit_proof import TrailerProof, approved_diff, prove_trailer, with_files

    stone = await prover.tombstone(anchor.session)
    notes = (stone.note,) if stone is not None else ()
    if not await prover.knows(anchor.session):
        heads = await prover.heads(anchor.session)
        named = tuple(f"{each.name} names event {each.seq} of it" for each in heads.anchors)
        missing = NO_JOURNAL.format(anchor.session)
        return TrailerProof(
            *(anchor.session, anchor.seq),
            problems=heads.malformed,
            missing=missing,
            notes=(*notes, *named, *heads.notes),
        )
    report, journal = await prover.prove(anchor.session)
    found = await asyncio.to_thread(prove_trailer, facts, anchor, report, journal)
    if prover.signed is not None:
        found = replace(await prover.signed.with_deciders(found), notes=(*found.notes, *notes))
    if found.task is None or not facts.parents:
        return found
    try:
        changes = await prover.repository.changes_between(facts.parents[0], facts.commit)
    except WorkspaceError as error:
        return replace(found, missing=f"its files cannot be read: {error}")
    return await asyncio.to_thread(lambda: with_files(found, approved_diff(report, anchor.seq), changes, alone=alone))


class Prover:
    """Proofs of the journals of `sessions` by what a repository holds."""

    def __init__(
        self,
        repository: "Repository",
        sessions: "SessionStore",
        tombstones: "Tombstones",
        signed: "SignedAnchors | None" = None,
    ) -> None:
        self._tombstones = tombstones
        self.signed = signed
        self.repository = repository
        self.commits = repository.stored_commits()
        self.sessions = sessions

    async def tombstone(self, session: SessionId) -> "Tombstone | None":
        """Return the record of what the user removed of a session, None if nothing was."""
        return await asyncio.to_thread(self._tombstones.of, session)

    async def knows(self, session: SessionId) -> bool:
        """Return True if the journal of a session is here, or in the database."""
        if session in await self.sessions.origins():
            return True
        if self.signed is None:
            return False
        try:
            return (await self.sessions.summary(session)).id == session
        except UsageError:
            return False

    async def heads(self, session: SessionId) -> "FoundAnchors":
        """Return the signed heads of a session at the git remote; none without a database."""
        from agent_workbench.core.history.journal_proof import FoundAnchors

        return await self.signed.of(session) if self.signed is not None else FoundAnchors()

    async def anchors(self, sessions: Collection[str]) -> "FoundAnchors":
        """Return the anchors that name one of the sessions."""
        return await self.commits.anchors({session_id(each) for each in sessions})

    async def prove(self, session: SessionId) -> "tuple[VerifyReport, JournalProof]":
        """Return the report on a session's journal alone, and its proof by the repository."""
        from agent_workbench.core.history.journal_proof import Relative, checkpoints, prove_journal, with_relatives
        from agent_workbench.core.history.signed_approvals import contradictions

        shared = await self._relatives(session)
        # Anchors are read before the journals, which may grow: so an anchor always names an existing event.
        found = await self.anchors({session, *shared})
        found = found.with_heads(await self.heads(session))
        reports = {session: await self._report(session)}
        for each in shared:
            with suppress(StorageError):  # an unreadable journal proves nothing
                reports[each] = await self._report(each)
        refs = {each.ref for report in reports.values() for each in checkpoints(report.recorded)}
        tips = await self.commits.tips(refs)
        proofs = {each: prove_journal(each, report, found.of(each), tips) for each, report in reports.items()}
        relatives = [Relative(reports[each], proofs[each], seq) for each, seq in shared.items() if each in reports]
        proof = with_relatives(proofs[session], reports[session], relatives)
        sound = reports[session].recorded[: reports[session].sound + 1]
        wrong = await asyncio.to_thread(contradictions, session, sound)
        notes = await self.signed.deciders(sound) if self.signed is not None else ()
        proof = replace(proof, problems=(*proof.problems, *wrong.values()), notes=(*proof.notes, *notes))
        return reports[session], proof

    async def _relatives(self, session: SessionId) -> dict[SessionId, int]:
        """Return the session's parent and forks, each with the last event they share."""
        origins = await self.sessions.origins()
        forks = {each: of[1] for each, of in origins.items() if of is not None and of[0] == session}
        of = origins.get(session)
        return {**forks, of[0]: of[1]} if of is not None and of[0] in origins else forks

    async def _report(self, session: SessionId) -> "VerifyReport":
        """Return the report on a journal alone; a missing journal is reported as a problem."""
        from agent_workbench.core.history.journal_proof import Problem, VerifyReport

        try:
            return await self.sessions.verify(session)
        except JournalError as error:
            return VerifyReport((), (), (Problem(0, str(error), error.advice),))
