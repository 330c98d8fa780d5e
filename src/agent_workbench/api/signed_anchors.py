"""Signed heads and decisions of sessions that machines share, as anchors of a proof."""

from collections.abc import Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, JournalError, SigningError, StorageError, error_text
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.commit_proof import RecordedApproval, TrailerProof
from agent_workbench.core.history.journal_proof import Anchor, FoundAnchors
from agent_workbench.core.history.signed_approvals import decision_message, signed_decisions
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.ports.shared_state import SessionRefs, Signatures
from agent_workbench.core.signed import SignedPurpose


class SignedAnchors:
    """Reader of the heads at the git remote, judged by the signers that this machine allows."""

    def __init__(self, refs: SessionRefs, signatures: Signatures) -> None:
        self._refs = refs
        self._signatures = signatures

    async def of(self, session: SessionId) -> FoundAnchors:
        """Return the signed heads of a session; what is wrong with them is `malformed`, what is unknown a note."""
        try:
            heads = await self._refs.heads(session)
            anchors = [
                Anchor(
                    session,
                    head.seq,
                    head.hash,
                    CommitId(""),
                    f"refs/agent/audit/{session}",
                    await self._signatures.signer(SignedPurpose.JOURNAL, head.message, head.signature),
                    head.worker,
                )
                for head in heads
                if head.seq >= 0
            ]
        except (ConfigError, StorageError, SigningError) as error:
            return FoundAnchors(notes=(f"signed heads were not compared: {error_text(error)}",))
        except JournalError as error:
            return FoundAnchors(malformed=(str(error),))
        return FoundAnchors(tuple(each for each in anchors if each.signer))

    async def with_deciders(self, found: TrailerProof) -> TrailerProof:
        """Return the proof with the signers of the decisions that were made on other machines.

        A decision whose signature does not count proves nothing.
        """
        judged = [await self._judged(each) for each in found.approvals]
        lacking = _unsigned(judged)
        return replace(found, approvals=tuple(judged), missing=found.missing or lacking)

    async def deciders(self, events: Sequence[Recorded]) -> tuple[str, ...]:
        """Return who signed each decision of another machine, or why its signature does not count here."""
        lines, purpose = [], SignedPurpose.DECISION
        for event, signed in signed_decisions(events):
            message, why = decision_message(signed.text), ""
            try:
                signer = await self._signatures.signer(purpose, message, signed.signature)
                why = "" if signer else await self._signatures.problem(purpose, message, signed.signature)
            except SigningError as error:
                signer, why = "", error_text(error)
            decided = f"{event.proposal_id} was {event.verdict.past}"
            lines.append(f"{decided} by {signer}, who signed it" if signer else f"{decided}, but not provably: {why}")
        return tuple(lines)

    async def _judged(self, approval: RecordedApproval) -> RecordedApproval:
        if approval.signed is None:
            return approval
        message = decision_message(approval.signed.text)
        signer = await self._signatures.signer(SignedPurpose.DECISION, message, approval.signed.signature)
        return replace(approval, signer=signer)


def _unsigned(approvals: Sequence[RecordedApproval]) -> str:
    names = [each.proposal for each in approvals if each.signed is not None and not each.signer]
    return f"the signature of the decision on {', '.join(names)} is of nobody who may decide here" if names else ""
