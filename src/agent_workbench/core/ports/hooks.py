"""Port of hooks: commands of the user or the repository that are told of an event."""

from typing import Protocol

from agent_workbench.core.hook_answers import HookOutcome
from agent_workbench.core.settings.hooks import HookPoint


class Hooks(Protocol):
    """Runner of the hooks in the settings. No process of a hook outlives its run."""

    async def run(self, name: str, point: HookPoint, document: str, workspace: str) -> HookOutcome:
        """Run a hook at `point` with the document on its standard input, to its end or its time limit.

        `workspace` is the worktree that it may read besides the repository, empty if there is none. What keeps it from
        running, or an error, is the outcome's `failure`. Cancelling the run stops it.
        """
