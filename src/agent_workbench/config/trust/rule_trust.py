"""Trust in `.agent.yml` after the user added or revoked a rule: it is renewed if nothing else changed."""

from collections.abc import Callable, Mapping
from pathlib import Path

from agent_workbench.config.settings_loader import LoadedSettings
from agent_workbench.config.trust.trust_question import RULES, trust_question
from agent_workbench.config.trust.trust_store import TrustStore
from agent_workbench.core.errors import TrustError
from agent_workbench.core.settings import Rule


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
