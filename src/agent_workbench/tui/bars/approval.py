"""As what something that waits is let through: all of it or a part, and twice where unusual paths are in it."""

from collections.abc import Callable

from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.patch.selection.choice import PartialDiff
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.gate.gate_bar import Waiting


class Approval:
    """Knows what was asked about. `taking` returns what is taken of the diff that waits, None when that is all."""

    def __init__(self, taking: Callable[[], PartialDiff | None]) -> None:
        self._taking = taking
        self._asked = ""

    def taking(self, waiting: Waiting | None) -> PartialDiff | None:
        """Return what is taken of it, None when that is all."""
        return self._taking() if is_by_hunk(waiting) else None

    def asked_about(self, waiting: Waiting | None) -> tuple[str, ...]:
        """Return the unusual paths that the user was asked about and would let through now."""
        return self._special(waiting) if self._asked and self._asked == self._decision(waiting) else ()

    def ask(self, waiting: Waiting) -> bool:
        """Return whether it has to be asked about; then that counts as done."""
        if not self._special(waiting) or self.asked_about(waiting):
            return False
        self._asked = self._decision(waiting)
        return True

    def intent(self, waiting: Waiting) -> ApproveProposal:
        """Return what the session is told."""
        taking = self.taking(waiting)
        if taking is None:
            return ApproveProposal(waiting.proposal.id, waiting.sha)
        return ApproveProposal(waiting.proposal.id, waiting.sha, taking.left, taking.result_sha)

    def _special(self, waiting: Waiting | None) -> tuple[str, ...]:
        if waiting is None or waiting.proposal.kind is not Permission.DIFF:
            return ()
        taking = self.taking(waiting)
        return tuple(
            sanitize_line(path, 120) for path in (waiting.proposal.special if taking is None else taking.special)
        )

    def _decision(self, waiting: Waiting | None) -> str:
        """Return what tells this decision from every other."""
        taking = self.taking(waiting)
        return "" if waiting is None else f"{waiting.key}:{taking.result_sha if taking is not None else ''}"


def is_by_hunk(waiting: Waiting | None) -> bool:
    """Return whether a diff waits of which parts can be left."""
    if waiting is None or waiting.proposal.kind is not Permission.DIFF:
        return False
    return waiting.proposal.tool != KEEP_CHANGES
