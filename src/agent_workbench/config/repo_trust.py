"""The port `Trust` on the user's trust store: one question per repo, asked again after any change of its content."""

import asyncio
from pathlib import Path

from agent_workbench.config.named_files import named_files
from agent_workbench.config.role_chains import HOOKS, hook_entry
from agent_workbench.config.settings_loader import LoadedSettings
from agent_workbench.config.trust_question import (
    SKILL_FILES,
    TrustQuestion,
    prompt_items,
    skill_items,
    trust_question,
    value_text,
)
from agent_workbench.config.trust_store import TrustStore

CHANGED = "Changed since you trusted it:"


class RepoTrust:
    """Trust in what the repo at `root` would run or configure."""

    def __init__(self, root: Path, loaded: LoadedSettings, store: TrustStore) -> None:
        self._root = root
        self._loaded = loaded
        self._store = store
        self._asked: TrustQuestion | None = None

    async def question(self) -> tuple[str, ...]:
        """Return the items to trust, a line each, empty if they are trusted."""
        return await asyncio.to_thread(self._question)

    @property
    def digest(self) -> str:
        """Return the digest of what the last `question` asked about, empty if nothing was left to trust."""
        return self._asked.digest if self._asked is not None else ""

    async def untrusted(self) -> tuple[str, ...]:
        """Return the names of the settings and skill folders that are ignored because they are not trusted."""
        asked = await self.question() and self._asked
        return tuple(asked.items) if asked else ()

    async def accept(self) -> None:
        """Store the yes to the last `question`, not to the present content of the repo."""
        if self._asked is not None:
            await asyncio.to_thread(self._store.trust, self._root, self._asked)

    async def revoke(self) -> bool:
        """Remove the trust in the repo; return True if it was trusted."""
        return await asyncio.to_thread(self._store.revoke, self._root)

    def is_trusted(self) -> bool:
        """Return True if nothing is left to trust. Blocks."""
        return not self._question()

    def covers_skills(self) -> bool:
        """Return True if the repo's skills are as they were trusted last, whatever else changed. Blocks."""
        then = self._store.trusted_items(self._root) or {}
        now = {name: value_text(digest) for name, digest in skill_items(self._root, self._loaded).items()}
        return now == {name: text for name, text in then.items() if name.startswith(SKILL_FILES)}

    def covers_prompts(self, folder: str) -> bool:
        """Return True if the prompts in this folder are as they were trusted last, whatever else changed. Blocks."""
        then = self._store.trusted_items(self._root) or {}
        now = {name: value_text(digest) for name, digest in prompt_items(self._root, folder).items()}
        return bool(now) and now.items() <= then.items()

    def covers_hook(self, name: str) -> bool:
        """Return True if a hook of the repo, and each file that it names, is as it was trusted last. Blocks.

        Other changes do not count, such as a rule that was added meanwhile, which is trusted at once.
        """
        entry = {f"{HOOKS}{name}.{key}": said for key, said in hook_entry(self._loaded.layers.repo, name).items()}
        now = {key: value_text(said.value) for key, said in entry.items()} | dict(named_files(self._root, entry))
        then = self._store.trusted_items(self._root) or {}
        own = (f"{HOOKS}{name}.", f"{HOOKS}{name} file ")
        return bool(entry) and now == {key: text for key, text in then.items() if key.startswith(own)}

    def _question(self) -> tuple[str, ...]:
        asked = trust_question(self._root, self._loaded, self._store.trusted_items(self._root))
        if self._store.is_trusted(self._root, asked):
            return ()
        self._asked = asked
        return (*asked.lines, "", CHANGED, *asked.changes) if asked.changes else asked.lines
