"""What decides a proposal without anybody: the policy, where it is open or closed."""

from dataclasses import dataclass

from agent_workbench.core.events import SessionConfigured
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.settings import Approval, GateKind
from agent_workbench.core.state import SessionState


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision that needs nobody."""

    verdict: Verdict
    by: str
    reason: str = ""


def ruling(state: SessionState, proposal: Proposal) -> Ruling | None:
    """Return what the policy says about a proposal, None when the user must be asked."""
    if state.config is None:
        return None
    rule = state.config.approvals.of(proposal.kind)
    by = f"policy:{proposal.kind}={rule}"
    if proposal.kind is GateKind.SUMMARY:
        return _summary_ruling(state.config, state.always)
    if rule is Approval.DENY:
        return Ruling(Verdict.REJECT, by, f"the policy does not allow this ({proposal.kind}: deny)")
    if proposal.kind is GateKind.MERGE:
        return None
    if rule is not Approval.AUTO and proposal.kind not in state.always:
        return None
    refusal = _needs_a_person(state, proposal)
    if refusal and state.config.headless:
        return Ruling(Verdict.REJECT, "policy:unattended", refusal)
    if refusal:
        return None
    return Ruling(Verdict.APPROVE, by if rule is Approval.AUTO else f"policy:{proposal.kind}=always this session")


def _summary_ruling(config: SessionConfigured, always: tuple[GateKind, ...]) -> Ruling | None:
    """A summary there must be; `deny` means that none is asked of the model, and the workbench's own one is used."""
    rule = config.approvals.summary
    if rule is not Approval.ASK:
        return Ruling(Verdict.APPROVE, f"policy:{GateKind.SUMMARY}={rule}")
    if GateKind.SUMMARY in always:
        return Ruling(Verdict.APPROVE, f"policy:{GateKind.SUMMARY}=always this session")
    return Ruling(Verdict.APPROVE, "policy:unattended") if config.headless else None


def _needs_a_person(state: SessionState, proposal: Proposal) -> str:
    if proposal.kind is GateKind.DIFF and proposal.special:
        return f"these files need a person's approval: {', '.join(proposal.special)}"
    if proposal.kind is GateKind.COMMAND and not (state.config and state.config.sandbox.holds):
        return "commands need a person's approval where there is no sandbox"
    return ""
