"""Results of verifications as lines of text."""

from collections.abc import Iterator

from agent_workbench.core.history.commit_proof import CommitProof, RecordedApproval, TrailerProof
from agent_workbench.core.history.journal_proof import MAX_PROBLEMS, JournalProof, Proof
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

NO_ANCHOR = "no commit and no checkpoint in this repository names one of them"
WORDS = {Proof.GREEN: "green", Proof.RED: "RED", Proof.UNPROVABLE: "not provable"}


def journal_summary(proof: JournalProof) -> str:
    """Return the result for a session in one line, without the word for it."""
    if proof.proof is Proof.RED:
        return f"{counted_text(len(proof.problems), 'problem')} in {counted_text(proof.events, 'event')}"
    head = f", head {proof.head}" if proof.head else ""
    return f"{counted_text(proof.events, 'event')}{head}"


def journal_proof_lines(proof: JournalProof) -> Iterator[str]:
    """Yield what is proved and by which anchor, then the problems and notes."""
    yield from map(sanitize_line, proof.problems[:MAX_PROBLEMS])
    if (more := len(proof.problems) - MAX_PROBLEMS) > 0:
        yield f"and {more} more"
    if proof.through >= 0:
        yield f"{_events(0, proof.through)} proved by {sanitize_line(proof.by)}{_behind(proof)}"
    elif proof.proof is Proof.UNPROVABLE and (proof.events or not proof.notes):
        yield NO_ANCHOR if proof.events else "the journal is empty, and nothing in this repository names an event of it"
    yield from map(sanitize_line, proof.notes)


def _behind(proof: JournalProof) -> str:
    last = proof.events - 1
    if proof.through >= last:
        return ""
    return f"; {_events(proof.through + 1, last)} not {'proved' if proof.problems else 'anchored'}"


def _events(first: int, last: int) -> str:
    return f"event {first} is" if first == last else f"events {first}-{last} are"


def commit_summary(proof: CommitProof) -> str:
    """Return a commit's short id and title in one line."""
    title = proof.facts.message.split(b"\n", 1)[0].decode("utf-8", "replace")
    return f"{proof.facts.commit[:10]} {sanitize_line(title, 120)}"


def commit_proof_lines(proof: CommitProof) -> Iterator[str]:
    """Yield the problems, then each trailer's task, approvals, and the hashes that were shown."""
    yield from map(sanitize_line, proof.problems)
    if proof.missing:
        yield sanitize_line(proof.missing)
    for each in proof.trailers:
        yield from _trailer_lines(proof, each)


def _trailer_lines(proof: CommitProof, trailer: TrailerProof) -> Iterator[str]:
    yield from map(sanitize_line, trailer.problems[:MAX_PROBLEMS])
    if trailer.missing:
        yield sanitize_line(trailer.missing)
    if trailer.task is not None:
        yield sanitize_line(f"task {trailer.task}: {trailer.description}", 200)
        approved = trailer.proof is Proof.GREEN
        yield f"tree {trailer.tree} on {trailer.base[:10]}{' is what was approved' if approved else ' was approved'}"
    for approval in trailer.approvals:
        yield from _approval_lines(approval)
    if trailer.models:
        yield sanitize_line(f"answers of {', '.join(trailer.models)}", 300)
    if trailer.signer:
        yield sanitize_line(f"written by worker {trailer.worker}, signed by {trailer.signer}", 300)
    yield f"event {trailer.seq} of session {trailer.session} named by its trailer"
    yield from map(sanitize_line, trailer.notes)


def _approval_lines(approval: RecordedApproval) -> Iterator[str]:
    when = f"{approval.time[:10]} {approval.time[11:19]}"
    decided = "approved" if approval.verdict is Verdict.APPROVE else f"{approval.verdict}:"
    by = f"{approval.by}, signed by {approval.signer}" if approval.signer else approval.by
    yield sanitize_line(f"{approval.proposal} {decided} by {by} at {when}: {approval.what}", 300)
    yield f"    shown {approval.shown} (SHA-256), its diff {approval.patch}"
    if approval.paths:
        yield f"    files {sanitize_line(', '.join(approval.paths), 500)}"
