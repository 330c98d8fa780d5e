"""Approval modes: each is a set of rules for diffs, checks, summaries and commits, and for nothing else."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import POLICY, Proposal
from agent_workbench.core.rules.matching import EVERY_FILE, RuleScope, StoredRule
from agent_workbench.core.settings import ApprovalMode, Permission, Rule

_EDITS = (Rule(Permission.DIFF, paths=(EVERY_FILE,)),)
_TO_THE_COMMIT = tuple(Rule(kind, any=True) for kind in (Permission.CHECK, Permission.SUMMARY, Permission.COMMIT))
MODE_RULES: Mapping[ApprovalMode, tuple[Rule, ...]] = MappingProxyType(
    {
        ApprovalMode.ASK: (),
        ApprovalMode.ACCEPT_EDITS: _EDITS,
        ApprovalMode.ACCEPT_UNTIL_DONE: (*_EDITS, *_TO_THE_COMMIT),
    }
)
"""Rules of each mode. As any rule, they never approve a diff with special files."""


class ActiveMode(Struct, frozen=True):
    """Mode in force. `kept` is the scope of its rules: all repos for the start mode of the user's own settings.

    `spared` is a proposal that waited when the mode was entered, and that the user decides.
    """

    mode: ApprovalMode = ApprovalMode.ASK
    kept: RuleScope = RuleScope.SESSION
    spared: ProposalId | None = None

    def rules_for(self, proposal: Proposal) -> tuple[StoredRule, ...]:
        """Return the rules of the mode that count for this proposal."""
        if proposal.id == self.spared:
            return ()
        return tuple(StoredRule(rule, self.kept) for rule in MODE_RULES[self.mode])


def mode_label(mode: ApprovalMode) -> str:
    """Return the mode as the screen shows it."""
    return mode.value.replace("_", " ")


def decided_in(mode: ApprovalMode) -> str:
    """Return the value of a decision's `by` for a mode."""
    return f"{POLICY}mode {mode_label(mode)}"


def next_mode(mode: ApprovalMode) -> ApprovalMode:
    """Return the mode after this one; the first after the last."""
    order = tuple(ApprovalMode)
    return order[(order.index(mode) + 1) % len(order)]
