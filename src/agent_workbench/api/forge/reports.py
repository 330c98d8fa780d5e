"""Reports of queued tasks to the forge's issue that they belong to."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.inbox import InboxItem
    from agent_workbench.core.plan import Task


class Reports:
    """Reports of one repository's tasks; without a forge they do nothing.

    No method raises: each returns a sentence about what failed, empty if nothing did. Each may be repeated after a
    crash and then changes nothing. A task without an issue is not reported.
    """

    async def started(self, task: "Task", session: "SessionId") -> str:
        """Report that a session works on the task."""
        del task, session
        return ""

    async def parked(self, task: "Task", session: "SessionId", item: "InboxItem") -> str:
        """Report a proposal that waits for a person, in full, with the reference that decides it."""
        del task, session, item
        return ""
