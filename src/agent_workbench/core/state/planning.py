"""State of what waits beside the runs of tasks: a planning with its plan, and an offer of notes."""

from msgspec import Struct

from agent_workbench.core.events.gate import ActionDecided
from agent_workbench.core.events.knowledge import NotesOffered
from agent_workbench.core.events.plan import PlanAnswered, PlanSurveyed
from agent_workbench.core.plan.proposed import ProposedPlan
from agent_workbench.core.proposals import Proposal, ProposalStage


class PlanAttempt(Struct, frozen=True):
    """An answer that did not become the plan, and the reason. `by_user`: the user refused it."""

    answer: str
    reason: str
    by_user: bool


class Planning(Struct, frozen=True):
    """Planning for a goal. It is `open` until a plan is approved and written, put aside, or given up.

    `wording` is the version of the prompt's texts. `step` counts the prompts. `misses` are the consecutive answers that
    were no plan. `aside` is the plan that was put aside last; asking for the same goal proposes it again.
    `check_for` is the task for which only an acceptance command is asked, empty for a plan. `rest`: the plan is to
    replace the tasks that are not over.
    """

    goal: str
    wording: int
    replaces: bool = False
    survey: PlanSurveyed | None = None
    attempts: tuple[PlanAttempt, ...] = ()
    misses: int = 0
    step: int = 0
    answer: PlanAnswered | None = None
    proposal: Proposal | None = None
    stage: ProposalStage = ProposalStage.FINISHED
    decision: ActionDecided | None = None
    aside: ProposedPlan | None = None
    open: bool = True
    check_for: str = ""
    rest: bool = False

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits at the gate, None if there is none."""
        return self.proposal if self.open and self.stage is ProposalStage.WAITING else None


class NoteOffer(Struct, frozen=True):
    """Notes that were offered, and their proposal once nothing else is at the gate.

    It is `open` until the notes are written, rejected or skipped. `later` are offers that came meanwhile, oldest first.
    """

    offered: NotesOffered
    proposal: Proposal | None = None
    stage: ProposalStage = ProposalStage.FINISHED
    decision: ActionDecided | None = None
    open: bool = True
    later: tuple[NotesOffered, ...] = ()

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits at the gate, None if there is none."""
        return self.proposal if self.open and self.stage is ProposalStage.WAITING else None
