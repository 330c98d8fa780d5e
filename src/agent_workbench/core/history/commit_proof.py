"""Proof of a commit: the approvals in its trailers, and the approved diff compared with the committed changes."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.events import ModelAnswered, PatchApplied, TaskCommitted, TaskMerged
from agent_workbench.core.fold import fold_all
from agent_workbench.core.history.journal_proof import (
    Anchor,
    JournalProof,
    Proof,
    VerifyReport,
    anchor_lines,
    read_trailers,
)
from agent_workbench.core.history.signed_approvals import contradictions
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import OWN_BOUNDS, FileChange, patch_hash, selectable_ids
from agent_workbench.core.proposal_kinds import MergeProposal
from agent_workbench.core.proposals import TRAILER, Proposal, Verdict, shown_sha
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Permission
from agent_workbench.core.signed import SignedText
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import StepDecision, decisions_of

MOVED = "it was rebased or squashed since its approval: its change is the approved one, hunk by hunk, on another parent"
SEVERAL = (
    "it was rebased or squashed since its approval, and carries several approvals, so no single one proves its change"
)
OTHER_FILES = "its files are not what the approved diff makes of its parent's"


class CommitFacts(Struct, frozen=True):
    """A commit as git stores it. `intact`: its content hashes to its id."""

    commit: CommitId
    tree: str
    parents: tuple[CommitId, ...]
    message: bytes
    author: str = ""
    intact: bool = True


class RecordedApproval(Struct, frozen=True):
    """A decision that led to a commit; `by` is `user` or `policy:<rule>`.

    `shown` is SHA-256 of the whole proposal as the gate showed it, `patch` of its diff alone. `signed` is the decision
    as a person on another machine signed it, `signer` the principal whose signature was verified.
    """

    seq: int
    time: str
    proposal: ProposalId
    step: int
    what: str
    verdict: Verdict
    by: str
    shown: str
    patch: str
    paths: tuple[str, ...]
    signed: SignedText | None = None
    signer: str = ""


class TrailerProof(Struct, frozen=True):
    """Proof by one trailer of a commit. `task` is None if its event is no approval of a commit.

    `moved` are the differences of a commit with another parent than the approved one, or that carries the approval of a
    squash, as a rebase or a squash makes it.
    `squash`: the event approves a merge by squash, of which the commit is the result. `models` are those that answered
    in the task. `worker` is the machine that wrote the approval, `signer` whose key signed for it; both are empty if
    no other machine shares the session.
    """

    session: SessionId
    seq: int
    task: TaskId | None = None
    description: str = ""
    tree: str = ""
    base: str = ""
    approvals: tuple[RecordedApproval, ...] = ()
    problems: tuple[str, ...] = ()
    missing: str = ""
    notes: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    squash: bool = False
    models: tuple[str, ...] = ()
    worker: str = ""
    signer: str = ""

    @property
    def proof(self) -> Proof:
        """Red with a problem, unprovable if something needed is missing, else green."""
        return Proof.RED if self.problems else Proof.UNPROVABLE if self.missing else Proof.GREEN


class CommitProof(Struct, frozen=True):
    """Proof of one commit: red if any part is red, unprovable without a trailer or if any part is."""

    facts: CommitFacts
    trailers: tuple[TrailerProof, ...] = ()
    problems: tuple[str, ...] = ()
    missing: str = ""

    @property
    def proof(self) -> Proof:
        """The worst result of the parts."""
        parts = {each.proof for each in self.trailers}
        if self.problems or Proof.RED in parts:
            return Proof.RED
        return Proof.UNPROVABLE if self.missing or Proof.UNPROVABLE in parts else Proof.GREEN


def prove_trailer(facts: CommitFacts, anchor: Anchor, report: VerifyReport, journal: JournalProof) -> TrailerProof:
    """Return the proof by one trailer, from its session's journal. `with_files` compares the files afterwards."""
    found = TrailerProof(anchor.session, anchor.seq)
    if anchor.seq > report.sound or report.hashes[anchor.seq] != anchor.hash:
        return replace(found, problems=journal.problems or ("the journal does not have the event that it names",))
    events = report.recorded[: anchor.seq + 1]
    run, decided = fold_all(events).run, decisions_of(events[-1:])
    waited = run.gate.proposal if run is not None else None
    approves = any(each.event.verdict is Verdict.APPROVE for each in decided)
    if run is None or waited is None or not approves or not (waited.kind is Permission.COMMIT or _squashes(waited)):
        return replace(found, problems=(f"event {anchor.seq} is no approval of a commit",))
    damaged = tuple(f"the session's journal is damaged: {each}" for each in journal.problems)
    # A commit alone is no evidence for a contradicted journal: both may have been replaced.
    head = min(
        (each for each in journal.anchors if each.signer and each.seq >= anchor.seq),
        key=lambda each: each.seq,
        default=None,
    )
    supported = any(each.seq >= anchor.seq and each.commit != facts.commit for each in journal.anchors)
    base = waited.preimages[0].sha if _squashes(waited) else run.workspace.base
    # Of a squash the approval names no tree: its files are compared with the diff that was approved.
    tree = facts.tree if _squashes(waited) else run.tree
    moved = len(facts.parents) == 1 and (facts.parents != (base,) or _is_carried(facts, anchor, report))
    differences = tuple(_differences(facts, base, tree, waited, anchor, report))
    return replace(
        found,
        task=run.task,
        description=run.definition.description,
        tree=tree,
        base=base,
        approvals=tuple(_approvals(run)),
        problems=(
            *(() if moved else differences),
            *_unapproved(run),
            *contradictions(anchor.session, events).values(),
            *(() if supported else damaged),
        ),
        moved=differences if moved else (),
        squash=_squashes(waited),
        notes=(*_unsaid(report, anchor.seq), *(damaged if supported else ())),
        models=tuple(_models(run)),
        worker=head.worker if head is not None else "",
        signer=head.signer if head is not None else "",
    )


def _models(run: TaskRun) -> Iterator[str]:
    """Yield the models that answered in the task, each once."""
    found: dict[str, None] = {}
    for recorded in run.history:
        match recorded.event:
            case ModelAnswered(model=model, endpoint=endpoint):
                found[f"{model} ({endpoint})" if model else endpoint] = None
            case _:
                continue
    yield from found


def without_squashed(trailers: Sequence[TrailerProof]) -> tuple[TrailerProof, ...]:
    """Return the proofs of a commit's trailers; where a squash is proved, those of the commits in it are notes."""
    if not any(each.squash and each.proof is Proof.GREEN for each in trailers):
        return tuple(trailers)
    carried = "the commit that it approved was squashed into this one"
    return tuple(
        replace(each, missing="", notes=(*each.notes, carried)) if each.missing in {MOVED, SEVERAL} else each
        for each in trailers
    )


def _is_carried(facts: CommitFacts, anchor: Anchor, report: VerifyReport) -> bool:
    """Return True if the message also names a later approval of the session: of the squash that made the commit."""
    for other in read_trailers(facts.commit, facts.message).anchors:
        known = other.session == anchor.session and anchor.seq < other.seq <= report.sound
        if known and report.hashes[other.seq] == other.hash:
            run = fold_all(report.recorded[: other.seq + 1]).run
            if run is not None and run.gate.proposal is not None and _squashes(run.gate.proposal):
                return True
    return False


def _squashes(approved: Proposal) -> bool:
    squash = isinstance(approved, MergeProposal) and approved.method is MergeMethod.SQUASH
    return squash and bool(approved.preimages)


def _unsaid(report: VerifyReport, seq: int) -> Iterator[str]:
    if not any(isinstance(each.event, TaskCommitted | TaskMerged) and each.seq > seq for each in report.recorded):
        yield "the journal does not say that this commit was made; its author is not proved"


def _differences(
    facts: CommitFacts, base: str, tree: str, approved: Proposal, anchor: Anchor, report: VerifyReport
) -> Iterator[str]:
    if facts.tree != tree:
        yield f"its tree is {facts.tree[:10]}, approved was {tree[:10]}: it was changed, rebased or squashed since"
    if facts.parents != (base,):
        parents = ", ".join(each[:10] for each in facts.parents) or "none"
        yield f"its parent is {parents}, approved was a commit on {base[:10]}"
    named = f"{TRAILER}: {anchor.session}:{anchor.seq}:{anchor.hash}"
    # A squash carries the trailers of the commits in it too, each of which is judged by itself.
    carried = [line for line in anchor_lines(facts.message) if line != named] if _squashes(approved) else []
    message = "\n\n".join((approved.text.strip(), "\n".join((named, *carried)))).encode("utf-8", "replace")
    if facts.message.strip(b"\n") != message.strip(b"\n"):
        yield "its message is not the one that was approved"
    made = _made(report, anchor.seq, TaskMerged if _squashes(approved) else TaskCommitted)
    if made and made != facts.commit:
        yield f"the journal has {made[:10]} as the commit that was made of this approval"


def _made(report: VerifyReport, seq: int, kind: type[TaskMerged | TaskCommitted]) -> str:
    """Return the commit that the journal says was made of the approval in event `seq`, empty if it says none."""
    for recorded in report.recorded[seq:]:
        match recorded.event:
            case TaskMerged(outcome=outcome) if kind is TaskMerged:
                return outcome.commit
            case TaskCommitted(commit=commit) if kind is TaskCommitted:
                return commit
            case _:
                continue
    return ""


def _unapproved(run: TaskRun) -> Iterator[str]:
    """Yield a problem for each applied diff that differs from what was approved."""
    approvals = {each.seq: each.event for each in decisions_of(run.history) if each.event.verdict is Verdict.APPROVE}
    approved: dict[ProposalId, str] = {}
    for recorded in run.history:
        event = recorded.event
        if isinstance(event, PatchApplied) and approved.get(event.proposal_id) != event.patch_sha:
            yield f"event {recorded.seq} applies a diff that nobody approved"
        elif (approval := approvals.get(recorded.seq)) is not None:
            approved[approval.proposal_id] = approval.resulting_patch_sha


def _approvals(run: TaskRun) -> Iterator[RecordedApproval]:
    """Yield the decisions about the diffs in effect, then the one about the commit."""
    proposals = {each.proposal.id: each.proposal for each in applied_diffs(run.history)}
    if run.gate.proposal is not None:
        proposals[run.gate.proposal.id] = run.gate.proposal
    for each in decisions_of(run.history):
        if each.event.proposal_id in proposals:
            yield _approval(each, proposals[each.event.proposal_id])


def _approval(decision: StepDecision, proposal: Proposal) -> RecordedApproval:
    event = decision.event
    return RecordedApproval(
        decision.seq,
        decision.time,
        proposal.id,
        proposal.step,
        proposal.described,
        event.verdict,
        f"{event.by} ({event.via})" if event.via else event.by,  # with the time of a decision that was recorded later
        shown_sha(proposal),
        patch_hash(proposal.diff),
        proposal.paths,
        event.signed,
    )


def approved_diff(report: VerifyReport, seq: int) -> str:
    """Return the diff that the gate showed with the commit approved in event `seq`."""
    run = fold_all(report.recorded[: seq + 1]).run
    return run.gate.proposal.diff if run is not None and run.gate.proposal is not None else ""


def with_files(found: TrailerProof, shown: str, changes: Sequence[FileChange], *, alone: bool = True) -> TrailerProof:
    """Return the proof, extended by the comparison of the `shown` diff with the commit's changes to its parent.

    `alone`: the commit has no other trailer. A squash of several commits has the change of none of them.
    """
    exact = _same_changes(shown, changes)
    if not found.problems and not found.moved:
        return found if exact else replace(found, problems=(OTHER_FILES,))
    same = exact or ((hunks := _hunks(shown)) is not None and hunks == _hunks(render_changes(changes)))
    if found.moved and not found.problems and (same or not alone):
        return replace(found, missing=MOVED if same else SEVERAL, notes=(*found.notes, *found.moved))
    found = replace(found, problems=(*found.problems, *found.moved))
    note = "its change is the approved one, hunk by hunk" if same else "its change is not the approved one either"
    return replace(found, notes=(*found.notes, note))


def _hunks(diff: str) -> tuple[str, ...] | None:
    try:
        return selectable_ids(parse_patch(diff, OWN_BOUNDS)) if diff else ()
    except PatchError:
        return None


def _same_changes(shown: str, changes: Sequence[FileChange]) -> bool:
    """Return True if the diff makes exactly these changes. Its text may differ between versions of the workbench."""
    if render_changes(changes) == shown:
        return True
    before = {change.path: change.before for change in changes}
    try:
        made = apply_patch(parse_patch(shown, OWN_BOUNDS), before)
    except PatchError:
        return False
    return {each.path: each.after for each in made} == {each.path: each.after for each in changes}
