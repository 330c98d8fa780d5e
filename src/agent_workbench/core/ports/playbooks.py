"""Port of playbooks: search, runs, lint and templates. The programs are those of the bundled skill's environment."""

from collections.abc import Mapping
from typing import Protocol

from agent_workbench.core.playbooks import LintReport, PlaybookRequest, PlaybookSearch, RunAccess
from agent_workbench.core.ports.workspace import OnOutput, Sources
from agent_workbench.core.repo.workspace import CommandOutcome


class Playbooks(Protocol):
    """Playbooks of one repository."""

    @property
    def access(self) -> RunAccess:
        """What the user's settings let a run use."""

    async def search(self, files: Sources, words: str) -> PlaybookSearch:
        """Return the one playbook that fits the words, else the nearest ones. Nothing is run."""

    async def obstacle(self) -> str:
        """Return why nothing can be run now, empty if no reason is known."""

    async def run(self, request: PlaybookRequest, folder: str, seconds: float, on_output: OnOutput) -> CommandOutcome:
        """Run a playbook of the worktree `folder` with network and keys.

        Raises `ToolError`, `ShellError`, and `ConfigError` for a key or password that is not there.
        """

    async def lint(self, playbook: str, folder: str, seconds: float) -> LintReport:
        """Return what ansible-lint finds in a playbook and what it includes; it changes nothing and has no network."""

    async def render(self, values: Mapping[str, str]) -> Mapping[str, str]:
        """Return the text of each template of a new role, by the template's name; raise `ToolError`."""

    async def close(self) -> None:
        """End what runs in the background."""
