"""Store of the repos that the user trusts, and the port `Trust` on it: one question, asked again after changes."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_workbench.config.role_chains import HOOKS, hook_entry
from agent_workbench.config.settings_loader import LoadedSettings
from agent_workbench.config.trust_question import (
    RULES,
    SKILL_FILES,
    TrustQuestion,
    named_files,
    prompt_items,
    skill_items,
    trust_question,
    value_text,
)
from agent_workbench.core.errors import StorageError, TrustError
from agent_workbench.core.settings import Rule
from agent_workbench.system.atomic_files import write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import only_owner_writes, read_regular
from agent_workbench.system.locks import lock_descriptor

LOCK_SECONDS = 10.0
REMEDY = "every repo will be asked about again"
_MAX_BYTES = 50_000_000

CHANGED = "Changed since you trusted it:"


class TrustStore:
    """The file `trust.json` (0600) in `folder`; each call reads or replaces all of it, under a lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "trust.json"

    def is_trusted(self, root: Path, question: TrustQuestion) -> bool:
        """Return True if the user trusted exactly this for the repo, or if there is nothing to trust."""
        if not question.items:
            return True
        return self._read().get(_key(root), {}).get("digest") == question.digest

    def trusted_items(self, root: Path) -> Mapping[str, str] | None:
        """Return the items trusted last for the repo, by name, or None; raise `TrustError` for a broken file."""
        entry = self._read().get(_key(root))
        return None if entry is None else {key[5:]: text for key, text in entry.items() if key.startswith("item ")}

    def trust(self, root: Path, question: TrustQuestion) -> None:
        """Store the user's yes to this question; raise `StorageError`."""
        entry = {"digest": question.digest, **{f"item {name}": text for name, text in question.items.items()}}
        with self._locked():
            self._write({**self._read(), _key(root): entry})

    def revoke(self, root: Path) -> bool:
        """Remove the repo and return True if it was trusted; raise `StorageError`."""
        with self._locked():
            repos = self._read()
            known = repos.pop(_key(root), None) is not None
            if known:
                self._write(repos)
        return known

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            if not only_owner_writes(self._path):
                raise TrustError(f"{self._path} can be written by others", advice=f"check it, then remove it: {REMEDY}")
            said = json.loads(read_regular(self._path, _MAX_BYTES, follow=True))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise TrustError(f"{self._path} cannot be read: {error}", advice=f"remove it; {REMEDY}") from error
        repos = said.get("repos") if isinstance(said, dict) and said.get("version") == 1 else None
        if not isinstance(repos, dict) or not all(_is_entry(each) for each in repos.values()):
            raise TrustError(f"{self._path} is not a valid trust file", advice=f"remove it; {REMEDY}")
        return repos

    def _write(self, repos: Mapping[str, Mapping[str, str]]) -> None:
        text = json.dumps({"version": 1, "repos": repos}, indent=1, sort_keys=True)
        write_atomically(self._path, text.encode(), mode=0o600)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        check_record(self._path)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder / "trust.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                lock_descriptor(handle, self._path, LOCK_SECONDS)
                yield
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(
                f"{self._path} cannot be written: {error.strerror}", advice=f"check the permissions of {self._folder}"
            ) from error


def _key(root: Path) -> str:
    return str(root.resolve())


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(each, str) for each in entry.values())


class RuleTrust:
    """Settings of the repo at `root`, which `load` reads again for each change, and the trust in them."""

    def __init__(self, root: Path, load: Callable[[], LoadedSettings], store: TrustStore) -> None:
        self._root = root
        self._load = load
        self._store = store

    def change(self, rule: Rule, added: bool, write: Callable[[], None]) -> None:
        """Write a rule (or remove it), then trust the new file if nothing else in it changed. Blocks.

        Raises `TrustError` if the file was not trusted before (then nothing is written), or if something else changed
        (then nothing new is trusted), and whatever `write` raises.
        """
        loaded = self._load()
        before = trust_question(self._root, loaded)
        if not self._store.is_trusted(self._root, before):
            raise TrustError(
                f"{self._root} is not trusted in its present form, so a rule in its .agent.yml would be ignored",
                advice="check it with `agent trust`, or keep the rule for yourself",
            )
        rules = _rules(loaded)
        if added:
            wanted = rules if rule in rules else (*rules, rule)
        else:
            wanted = tuple(each for each in rules if each != rule)
        write()
        loaded = self._load()
        after = trust_question(self._root, loaded)
        if _rules(loaded) != wanted or _others(after.items) != _others(before.items):
            raise TrustError(
                ".agent.yml has other changes besides the rule, so it is not trusted",
                advice="check it with `agent trust`",
            )
        self._store.trust(self._root, after)


def _rules(loaded: LoadedSettings) -> tuple[Rule, ...]:
    said = loaded.layers.repo.get(RULES)
    found = said.value if said is not None else ()
    return tuple(each for each in found if isinstance(each, Rule)) if isinstance(found, tuple) else ()


def _others(items: Mapping[str, str]) -> Mapping[str, str]:
    return {name: text for name, text in items.items() if name != RULES}


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
