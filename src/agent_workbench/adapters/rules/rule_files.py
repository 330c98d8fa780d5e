"""Rule store: the repo's rules in its settings, the user's in a file of their own, past actions from journals."""

import asyncio
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from agent_workbench.adapters.rules.rule_edits import Compose, Keys, rules_at, with_rule, without_rule
from agent_workbench.core.errors import ConfigError, TrustError, UsageError
from agent_workbench.core.history.mode_approvals import PastActions
from agent_workbench.core.rules.matching import RuleScope, StoredRule, rule_problem
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.yaml_documents.nodes import MAX_BYTES, DocumentError, YamlMapping, decode_document
from agent_workbench.core.yaml_documents.typed_values import expected, is_nothing, unknown_key
from agent_workbench.system.regular_files import only_owner_writes
from agent_workbench.system.repo_files import change_inside, read_inside

SETTINGS = ".agent.yml"
OWN = "rules.yaml"
REPO_KEYS: Keys = ("approvals", "rules")
EVERYWHERE, REPOS = "everywhere", "repos"
HEADING = "# Your own rules, for all repos and for single ones; `agent rules` lists those that count in a repo.\n"

Trusted = Callable[[Rule, bool, Callable[[], None]], None]
"""Called with a rule, True if it is added, and a writer: runs the writer and renews the trust in the file."""


class RuleFiles:
    """Implements `core.ports.repo_files.RuleStore` for the repo at `root`; the user's file is in `own_folder`."""

    def __init__(
        self,
        root: Path,
        own_folder: Path,
        compose: Compose,
        trusted: Trusted,
        past: Callable[[Permission], PastActions],
    ) -> None:
        self._root = root
        self._own_folder = own_folder
        self._compose = compose
        self._trusted = trusted
        self._past = past

    async def kept(self) -> tuple[StoredRule, ...]:
        return await asyncio.to_thread(self._own)

    async def keep(self, kept: StoredRule) -> None:
        await asyncio.to_thread(self._change, kept, True)

    async def revoke(self, kept: StoredRule) -> None:
        await asyncio.to_thread(self._change, kept, False)

    async def past(self, kind: Permission) -> PastActions:
        return await asyncio.to_thread(self._past, kind)

    def _own(self) -> tuple[StoredRule, ...]:
        data = read_inside(self._own_folder, OWN, MAX_BYTES)
        if data is None:
            return ()
        self._check_ours()
        try:
            text = decode_document(data)
            self._check_keys(text)
            found = tuple(
                StoredRule(rule, kept)
                for kept in (RuleScope.USER, RuleScope.EVERYWHERE)
                for rule in rules_at(text, self._keys(kept), self._compose)
            )
        except DocumentError as fault:
            raise ConfigError(fault.in_file(str(self._own_folder / OWN)), advice=fault.advice) from fault
        if why := next(filter(None, (rule_problem(each.rule) for each in found)), ""):
            raise ConfigError(f"{self._own_folder / OWN}: {why}", advice="change that rule, or remove it")
        return found

    def _check_ours(self) -> None:
        """Raise `TrustError` if somebody else could have written the user's rules."""
        path = self._own_folder / OWN
        if not only_owner_writes(path):
            raise TrustError(
                f"{path} can be written by others", advice=f"check it, then: chmod go-w {shlex.quote(str(path))}"
            )

    def _check_keys(self, text: str) -> None:
        root = self._compose(text)
        if root is None or is_nothing(root):
            return
        if not isinstance(root, YamlMapping):
            raise expected(root, f"a mapping with {EVERYWHERE} and {REPOS}", "")
        for key, _ in root.entries:
            if key.text not in (EVERYWHERE, REPOS):
                raise unknown_key(key, (EVERYWHERE, REPOS), "")
        repos = root.get(REPOS)
        for key, _ in repos.entries if isinstance(repos, YamlMapping) else ():
            if not key.text.startswith("/") or key.text != os.path.normpath(key.text):
                raise expected(key, "the absolute path of a repo", REPOS, "write it as `pwd -P` prints it there")

    def _change(self, kept: StoredRule, present: bool) -> None:
        if kept.kept is RuleScope.SESSION:
            raise UsageError("a session's rule is kept by the session alone")
        if kept.kept is RuleScope.REPO:
            self._trusted(kept.rule, present, lambda: self._write(self._root, SETTINGS, kept, present))
        else:
            self._write(self._own_folder, OWN, kept, present)

    def _write(self, folder: Path, name: str, kept: StoredRule, present: bool) -> None:
        def changed(data: bytes | None) -> bytes | None:
            if data is None and not present:
                return None
            heading = HEADING if name == OWN else ""
            change = with_rule if present else without_rule
            try:
                text = heading if data is None else decode_document(data)
                return change(text, self._keys(kept.kept), kept.rule, self._compose).encode()
            except DocumentError as fault:
                raise ConfigError(fault.in_file(name), advice=fault.advice) from fault

        fresh = name == OWN and not (folder / name).exists()
        change_inside(folder, name, MAX_BYTES, changed)
        if fresh and (folder / name).exists():
            (folder / name).chmod(0o600)

    def _keys(self, kept: RuleScope) -> Keys:
        match kept:
            case RuleScope.REPO:
                return REPO_KEYS
            case RuleScope.USER:
                return (REPOS, str(self._root.resolve()))
            case _:
                return (EVERYWHERE,)
