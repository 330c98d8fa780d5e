"""Past actions of sessions: a rule or a policy tried on them, and approvals by the mode in force."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.approval_rules import decided_in, rule_allows
from agent_workbench.core.events import ModeChanged, Recorded, SessionConfigured
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import decisions_of, newest_steps
from agent_workbench.core.text.sanitizer import sanitize_line

LINE_CHARS = 200


def mode_approvals(state: SessionState) -> tuple[str, ...]:
    """Return what the mode approved, one line for each proposal, oldest first."""
    by, approved = decided_in(state.mode.mode), list[str]()
    for run in state.runs:
        entered = (each.seq for each in run.history if isinstance(each.event, ModeChanged | SessionConfigured))
        if (since := max(entered, default=-1)) >= 0:
            approved.clear()
        decided = (each for each in decisions_of(run.history) if each.seq > since and each.event.by == by)
        approved += (_line(each.proposal) for each in decided if each.proposal is not None)
    return tuple(approved)


def _line(proposal: Proposal) -> str:
    return sanitize_line(f"{proposal.kind} {proposal.subject()}", LINE_CHARS)


class PastAction(Struct, frozen=True):
    """A past proposal without its diff, and its verdict (None: undecided)."""

    session: SessionId
    proposal: Proposal
    verdict: Verdict | None = None
    by: str = ""


class PastActions(Struct, frozen=True):
    """Actions of one kind from `sessions` sessions, newest first; `complete`: no session was left out."""

    actions: tuple[PastAction, ...] = ()
    sessions: int = 0
    complete: bool = True


def session_actions(
    session: SessionId, events: Sequence[Recorded], kind: Permission, copied: int = -1
) -> tuple[PastAction, ...]:
    """Return the proposals of a kind that were decided after event `copied`, newest first, as they were decided."""
    steps = ((step.proposal, step.decision) for step in newest_steps(events) if step.proposal.kind is kind)
    return tuple(
        PastAction(session, replace(proposal, diff=""), decision.event.verdict, decision.event.by)
        for proposal, decision in steps
        if decision is not None and decision.seq > copied
    )


def would_be_allowed(rule: Rule, past: PastActions) -> tuple[PastAction, ...]:
    """Return the actions that the rule would have allowed, newest first."""
    return tuple(each for each in past.actions if rule_allows(rule, each.proposal))


class TriedProposal(Struct, frozen=True):
    """A proposal and its decision under the policy, None where the task would be parked. `why`: a rule or a reason."""

    proposal: Proposal
    verdict: Verdict | None
    why: str

    @property
    def fate(self) -> str:
        """The decision in one word: `pass`, `refuse` or `park`."""
        return "park" if self.verdict is None else "pass" if self.verdict is Verdict.APPROVE else "refuse"


class TriedSession(Struct, frozen=True):
    """A recorded session, the tasks that it worked on, and what the policy would have decided in it."""

    session: SessionId
    tasks: tuple[TaskId, ...]
    tried: tuple[TriedProposal, ...]


class PolicyTrial(Struct, frozen=True):
    """Decisions that a policy would make: about the task's own `checks`, and in recorded `sessions`.

    `similar`: no session worked on the task, so those of similar tasks are tried.
    """

    task: Task
    sandbox: SandboxFacts
    checks: TriedProposal | None
    sessions: tuple[TriedSession, ...] = ()
    similar: bool = False
