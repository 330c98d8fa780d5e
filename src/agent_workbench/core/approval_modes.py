"""Approval modes as sets of rules, and tasks that are not the user's own, which run only what a local rule names."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.core.approval_rules import EVERY_FILE, RuleScope, StoredRule
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.proposals import POLICY, Proposal
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


def is_foreign(task: Task | None) -> bool:
    """Return True for a task from a forge, an MCP client, a database, or a file that came with the repository."""
    return task is not None and task.origin is not TaskOrigin.LOCAL


def own_commands(proposal: Proposal, configured: Collection[str]) -> tuple[str, ...]:
    """Return the commands of a proposal that are none of the `configured` ones (tests and lint of the settings)."""
    return tuple(line for line in proposal.commands if line not in configured)


def local_person_reason(proposal: Proposal, task: Task | None, configured: Collection[str]) -> str:
    """Return why only a person at this machine may approve a proposal, empty if a forge's allowed user may too.

    `configured` are the tests and lint of the settings, `task` the one that is worked on (None: a plan or a chat).
    """
    if proposal.local_only:
        return proposal.local_only
    if proposal.special:
        return f"these are approved at this machine: {', '.join(proposal.special)}"
    if not is_foreign(task) or not proposal.runs_commands:
        return ""
    if proposal.kind is Permission.CHECK and not own_commands(proposal, configured):
        return ""
    return "commands of a task that came from elsewhere are approved at this machine"
