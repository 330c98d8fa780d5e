"""Approval of a pending proposal, in whole or in part. Special paths need a second confirmation."""

from collections.abc import Callable

from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.patch.selection import PartialDiff
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.views.gate.gate_bar import Waiting


class PendingApproval:
    """Approval in progress, with its request for confirmation. `taking` returns the selected part of a diff."""

    def __init__(self, taking: Callable[[], PartialDiff | None]) -> None:
        self._taking = taking
        self._asked = ""

    def taking(self, waiting: Waiting | None) -> PartialDiff | None:
        """Return the selected part of the diff, None for all of it."""
        return self._taking() if can_select_hunks(waiting) else None

    def asked_about(self, waiting: Waiting | None) -> tuple[str, ...]:
        """Return the special paths that the user was asked about and is about to change."""
        return self._special(waiting) if self._asked and self._asked == self._decision(waiting) else ()

    def ask(self, waiting: Waiting) -> bool:
        """Return True if the user has to confirm special paths first, and remember that they were asked."""
        if not self._special(waiting) or self.asked_about(waiting):
            return False
        self._asked = self._decision(waiting)
        return True

    def intent(self, waiting: Waiting) -> ApproveProposal:
        """Return the intent that approves the proposal or the selected part of it."""
        taking = self.taking(waiting)
        if taking is None:
            return ApproveProposal(waiting.proposal.id, waiting.sha)
        return ApproveProposal(waiting.proposal.id, waiting.sha, taking.left, taking.result_sha)

    def _special(self, waiting: Waiting | None) -> tuple[str, ...]:
        if waiting is None:
            return ()
        taking = self.taking(waiting)
        return waiting.proposal.second_look if taking is None else taking.special

    def _decision(self, waiting: Waiting | None) -> str:
        """Return an identifier of this decision: the proposal with the selected part."""
        taking = self.taking(waiting)
        return "" if waiting is None else f"{waiting.key}:{taking.result_sha if taking is not None else ''}"


def can_select_hunks(waiting: Waiting | None) -> bool:
    """Return True if a proposed diff waits whose hunks can be selected."""
    if waiting is None or not waiting.proposal.by_hunk:
        return False
    return waiting.proposal.tool != KEEP_CHANGES
