"""Approval of a pending proposal, in whole or in part. Special paths need a second confirmation."""

from collections.abc import Callable, Sequence

from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.patch.selection.choice import PartialDiff
from agent_workbench.core.proposals import BY_HUNK, KEEP_CHANGES, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line
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
        return special_parts(waiting.proposal) if taking is None else taking.special

    def _decision(self, waiting: Waiting | None) -> str:
        """Return an identifier of this decision: the proposal with the selected part."""
        taking = self.taking(waiting)
        return "" if waiting is None else f"{waiting.key}:{taking.result_sha if taking is not None else ''}"


def special_parts(proposal: Proposal) -> tuple[str, ...]:
    """Return what needs a second confirmation: special paths of a diff, unusual commands of a plan."""
    return proposal.special if proposal.kind is Permission.DIFF or proposal.plan is not None else ()


def special_text(proposal: Proposal, special: Sequence[str]) -> str:
    """Return what an approval of these special parts does, as one line."""
    if proposal.plan is not None:
        return f"tasks must pass {'; '.join(sanitize_line(line, 120) for line in special)}"
    return f"this changes {', '.join(sanitize_line(path, 120) for path in special)}"


def can_select_hunks(waiting: Waiting | None) -> bool:
    """Return True if a proposed diff waits whose hunks can be selected."""
    if waiting is None or waiting.proposal.kind not in BY_HUNK:
        return False
    return waiting.proposal.tool != KEEP_CHANGES
