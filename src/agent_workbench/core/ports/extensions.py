"""Ports of what the user adds: skills in three tiers, prompts that words call, playbooks, and hooks.

The tiers are those of Agent Skills: an entry of the catalogue, the body of a `SKILL.md`, the files beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.events import SkillText
from agent_workbench.core.hook_answers import HookOutcome
from agent_workbench.core.playbooks import LintReport, PlaybookRequest, PlaybookSearch, RunAccess
from agent_workbench.core.ports.workspace import OnOutput, Sources
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.skills import SkillEntry, SkillHit, SkillPlace


class Skills(Protocol):
    """Catalogue of skills. Of several skills with one name the nearest counts: repo, user, package."""

    async def list(self) -> tuple[SkillEntry, ...]:
        """Return all skills sorted by name, those that cannot be used with their problems."""

    async def places(self) -> tuple[SkillPlace, ...]:
        """Return the folders that are searched, in their order."""

    async def rank(self, words: str) -> tuple[SkillHit, ...]:
        """Return the usable skills that fit the words, best first."""

    async def body(self, name: str) -> str:
        """Return the text of a skill without its front matter.

        Raises `ConfigError` for an unknown name (naming the known ones) or one that cannot be used.
        """

    async def read_file(self, name: str, path: str) -> str:
        """Return the text of a file in the skill's folder; `path` is relative to it.

        Raises `ConfigError` for an unknown skill, and for a path that leaves the folder or is no readable text.
        """

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        """Return the bodies of these skills in order; raise as `body` does."""


class CustomPrompts(Protocol):
    """Prompts of a trusted repository, and of the user. Of two with one name that of the repository counts."""

    async def list(self) -> Sequence[CustomPrompt]:
        """Return all prompts sorted by name, those that cannot be called with their problems."""

    async def load(self, name: str) -> CustomPrompt | None:
        """Return a prompt as its file is now, None if there is none; raise `ConfigError` for one with a problem.

        Raises `TrustError` for one of a repository that is not trusted in its present form.
        """


class Hooks(Protocol):
    """Runner of the hooks in the settings. No process of a hook outlives its run."""

    async def run(self, name: str, point: HookPoint, document: str, workspace: str) -> HookOutcome:
        """Run a hook at `point` with the document on its standard input, to its end or its time limit.

        `workspace` is the worktree that it may read besides the repository, empty if there is none. What keeps it from
        running, or an error, is the outcome's `failure`. Cancelling the run stops it.
        """


class Playbooks(Protocol):
    """Playbooks of one repository."""

    @property
    def access(self) -> RunAccess:
        """Key files, SSH agent and passwords that the user's settings allow to a run."""

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
