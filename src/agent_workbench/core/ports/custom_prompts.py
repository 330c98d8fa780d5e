"""Port of the user's own prompts, which words call by name."""

from collections.abc import Sequence
from typing import Protocol

from agent_workbench.core.custom_prompts import CustomPrompt


class CustomPrompts(Protocol):
    """Prompts of a trusted repository, and of the user. Of two with one name that of the repository counts."""

    async def list(self) -> Sequence[CustomPrompt]:
        """Return all prompts sorted by name, those that cannot be called with their problems."""

    async def load(self, name: str) -> CustomPrompt | None:
        """Return a prompt as its file is now, None if there is none; raise `ConfigError` for one with a problem.

        Raises `TrustError` for one of a repository that is not trusted in its present form.
        """
