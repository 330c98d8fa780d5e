"""Tasks that are not the user's own: they run no command that a local rule does not name."""

from collections.abc import Collection

from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission


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
