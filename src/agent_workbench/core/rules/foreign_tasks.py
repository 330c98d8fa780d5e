"""Tasks that are not the user's own: they run no command that a local rule does not name."""

from collections.abc import Collection

from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission

RUNS_COMMANDS = frozenset(
    {
        *(Permission.COMMAND, Permission.CHECK, Permission.SCRIPT, Permission.EXTERNAL, Permission.PLAN),
        Permission.INFRASTRUCTURE,
    }
)
"""Kinds with which a task could run a command, now or as the acceptance command of a planned task."""


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
    if proposal.kind is Permission.MERGE:
        return "a merge is approved at this machine"
    if proposal.kind is Permission.INFRASTRUCTURE:
        return "a run of a playbook is approved at this machine"
    if proposal.special:
        return f"these are approved at this machine: {', '.join(proposal.special)}"
    if not is_foreign(task) or proposal.kind not in RUNS_COMMANDS:
        return ""
    if proposal.kind is Permission.CHECK and not own_commands(proposal, configured):
        return ""
    return "commands of a task that came from elsewhere are approved at this machine"
