"""Signed decisions in a journal: what was recorded is what was signed."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    Author,
    Event,
    ProposalReplaced,
    Recorded,
    SessionStarted,
)
from agent_workbench.core.history.signed_approvals import contradictions, decision_text, signed_decisions
from agent_workbench.core.ids import CommitId, ProposalId, SessionId
from agent_workbench.core.inbox import InboxDecision, reference_to
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.proposal_kinds import CommandProposal
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.signed import SignedText

SESSION, OTHER = SessionId("20260102T030405-abc234"), SessionId("20260103T030405-def567")
PROPOSAL = CommandProposal(ProposalId("P-14"), "run_command", "make", 1)
PART = replace(PROPOSAL, text="make part")


def signed(
    proposal: Proposal = PROPOSAL, session: SessionId = SESSION, verdict: Verdict = Verdict.APPROVE, **more: object
) -> SignedText:
    reference = reference_to(session, proposal)
    assert reference is not None
    return SignedText(decision_text(replace(InboxDecision(reference, verdict, made_by="ada"), **more)), "signature")


def journal(*events: Event) -> Sequence[Recorded]:
    return [Recorded(seq, "2026-01-02T03:04:05Z", event, "0") for seq, event in enumerate(events)]


def decided(text: SignedText, verdict: Verdict = Verdict.APPROVE, sha: str = "") -> ActionDecided:
    return ActionDecided(PROPOSAL.id, verdict, "user", resulting_patch_sha=sha, signed=text)


REPLACED = ProposalReplaced(PART, "", Author.USER)
PARTLY = signed(left=(LeftOut("h1"),), result_sha="ab")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ((ActionProposed(PROPOSAL), decided(signed())), ""),
        ((ActionProposed(PROPOSAL), decided(signed(verdict=Verdict.REJECT), Verdict.REJECT)), ""),
        ((ActionProposed(PROPOSAL), decided(signed(verdict=Verdict.REJECT))), "approve for reject"),
        ((ActionProposed(PROPOSAL), decided(signed(session=OTHER))), f"that is about {OTHER}"),
        ((ActionProposed(PROPOSAL), decided(signed(replace(PROPOSAL, id=ProposalId("P-15"))))), "that is about"),
        ((ActionProposed(PART), decided(signed())), "about other content"),
        ((ActionProposed(PROPOSAL), ProposalReplaced(PART, "", Author.USER), decided(signed())), "other content"),
        ((ActionProposed(PROPOSAL), ProposalReplaced(PART, "", Author.USER), decided(PARTLY, sha="ab")), ""),
        (
            (ActionProposed(PROPOSAL), ProposalReplaced(PART, "", Author.USER), decided(PARTLY, sha="cd")),
            "another part",
        ),
        ((ActionProposed(PROPOSAL), decided(PARTLY, Verdict.REJECT)), ""),
        ((ActionProposed(PROPOSAL), decided(SignedText("{}", ""))), "its text is no decision"),
        ((decided(signed()),), "about other content"),
    ],
)
def test_the_recorded_decision_is_compared_with_the_signed_one(events: tuple[Event, ...], problem: str) -> None:
    found = list(contradictions(SESSION, journal(*events)).values())
    assert problem in found[0] if found else not problem, found


def test_what_a_fork_copied_was_decided_in_its_parent() -> None:
    started = SessionStarted(SESSION, "repo", CommitId("0" * 40), "1", OTHER, 2)
    before = (started, ActionProposed(PROPOSAL), decided(signed(session=OTHER)))
    assert not contradictions(SESSION, journal(*before))
    after = (*before, ActionProposed(PROPOSAL), decided(signed(session=OTHER)))
    assert list(contradictions(SESSION, journal(*after))) == [4]
    assert len(signed_decisions(journal(*after))) == 2
