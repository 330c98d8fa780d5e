"""Ports of what the user adds: the skills catalogue in three tiers, and prompts that words call by name.

The tiers are those of Agent Skills: an entry of the catalogue, the body of a `SKILL.md`, the files beside it.
"""

from collections.abc import Sequence
from typing import Protocol

from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.events import SkillText
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
