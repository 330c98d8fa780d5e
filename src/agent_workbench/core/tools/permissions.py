"""Permissions of proposals: one table says for each how it is decided, shown and matched by rules."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.core.settings import Approval, Permission


class UnattendedRule(StrEnum):
    """Decision about a proposal in an unattended run."""

    POLICY = "policy"
    """`auto` and rules approve it; otherwise the task is parked."""
    SANDBOX = "sandbox"
    """As `policy`, but only where a sandbox confines it; elsewhere it is rejected."""
    WORKBENCH = "workbench"
    """The workbench approves it: the task cannot continue without it."""
    PARKED = "parked"
    """It always waits for a person."""


class PermissionFacts(Struct, frozen=True):
    """Facts of one permission.

    `plural` names several proposals. `default` is the setting where `.agent.yml` has none. `rule_fields` are the fields
    that a rule may name, exactly one of them; none: no rule matches. `opened_by` is the flag of `agent run` that
    approves it. `edits` names what the user may edit before approving (empty: nothing). `skips`: the task can go on
    without it.
    `calls`: the proposal is the call of a source's tool, whose arguments are shown in full.
    """

    plural: str
    default: Approval
    rule_fields: tuple[str, ...]
    unattended: UnattendedRule = UnattendedRule.POLICY
    opened_by: str = ""
    edits: str = ""
    skips: bool = False
    calls: bool = False


_AUTO, _ASK = Approval.AUTO, Approval.ASK
_YES, _COMMANDS = "--yes", "--commands"

PERMISSIONS: Mapping[Permission, PermissionFacts] = MappingProxyType(
    {
        Permission.READ: PermissionFacts("reads", _AUTO, ("tool",)),
        Permission.DIFF: PermissionFacts("diffs", _ASK, ("paths",), opened_by=_YES, edits="diff"),
        Permission.CHECK: PermissionFacts("checks", Approval.ONCE, ("commands", "any"), opened_by=_YES, skips=True),
        Permission.COMMAND: PermissionFacts(
            *("commands", _ASK, ("commands", "program"), UnattendedRule.SANDBOX),
            opened_by=_COMMANDS,
            edits="command",
            skips=True,
        ),
        Permission.COMMIT: PermissionFacts("commits", _ASK, ("any",), opened_by=_YES, edits="message"),
        Permission.MERGE: PermissionFacts("merges", _ASK, (), UnattendedRule.PARKED, edits="message", skips=True),
        Permission.SUMMARY: PermissionFacts("summaries", _ASK, ("any",), UnattendedRule.WORKBENCH, edits="summary"),
        Permission.FINISH: PermissionFacts("finishes", _ASK, ("any",)),
        Permission.PLAN: PermissionFacts("plan changes", _ASK, ("tool",), skips=True, calls=True),
        Permission.KNOWLEDGE: PermissionFacts("knowledge changes", _ASK, ("any",), edits="notes", skips=True),
        Permission.SCRIPT: PermissionFacts("scripts", _ASK, ("tool",), UnattendedRule.SANDBOX, skips=True, calls=True),
        Permission.EXTERNAL: PermissionFacts("external calls", _ASK, ("tool",), skips=True, calls=True),
        Permission.INFRASTRUCTURE: PermissionFacts("playbook runs", _ASK, (), UnattendedRule.PARKED, skips=True),
    }
)
"""One row for each permission."""

CALLS = frozenset(permission for permission, facts in PERMISSIONS.items() if facts.calls)
"""Permissions of tools that a source brings: their arguments are shown in full, and a rule names the tool's spec."""

RUNS_PROGRAMS = frozenset({Permission.COMMAND, Permission.INFRASTRUCTURE}) | CALLS
"""Permissions of actions that run foreign programs: files that these change are put back and proposed."""

STOPPABLE = frozenset({Permission.READ, Permission.CHECK}) | RUNS_PROGRAMS
"""Permissions of actions that the user may stop while they run; any other is brought to its end."""


def opened_by(flag: str) -> dict[str, str]:
    """Return the settings that a flag of `agent run` overrides."""
    return {f"approvals.{name}": Approval.AUTO.value for name, facts in PERMISSIONS.items() if facts.opened_by == flag}
