"""Trial of a policy: what it would decide about the proposals of recorded sessions."""

from msgspec import Struct

from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.repo.workspace import SandboxFacts


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
