"""Texts that share their beginnings, so that a sampler tries each beginning once.

A trie is a value: what is added makes a new one that shares all that did not change. So the tries of "all lines from
here on" cost, for each line, only the way to it.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from agent_workbench.core.patch.grammar.rule_list import Rules

Value = TypeVar("Value")


class Leaf(Struct, Generic[Value], frozen=True, eq=False):
    """The rest of one text, and what it stands for."""

    label: str
    value: Value


class Fork(Struct, Generic[Value], frozen=True, eq=False):
    """What several texts have in common, and how they go on, by their next letter."""

    label: str
    children: "Mapping[str, Trie[Value]]"


Trie = Leaf[Value] | Fork[Value]


def with_text(trie: Trie[Value] | None, text: str, value: Value) -> Trie[Value]:
    """Return the trie with `text`; its value replaces one that was there. No text may be the beginning of another."""
    if trie is None or (isinstance(trie, Leaf) and trie.label == text):
        return Leaf(text, value)
    shared = _shared(trie.label, text)
    rest = text[shared:]
    if isinstance(trie, Fork) and shared == len(trie.label):
        child = with_text(trie.children.get(rest[0]), rest, value)
        return Fork(trie.label, {**trie.children, rest[0]: child})
    kept = trie.label[shared:]
    old: Trie[Value] = Leaf(kept, trie.value) if isinstance(trie, Leaf) else Fork(kept, trie.children)
    return Fork(text[:shared], {kept[0]: old, rest[0]: Leaf(rest, value)})


def _shared(one: str, other: str) -> int:
    """Return how many letters two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class TrieRules(Generic[Value]):
    """Writes tries as rules, what they share once; `after` names what follows a text."""

    def __init__(self, rules: Rules, after: Callable[[Value], str]) -> None:
        self._rules = rules
        self._after = after
        # Holds the forks too, so that none goes and leaves its number to another.
        self._names: dict[int, tuple[Fork[Value], str]] = {}

    def body(self, trie: Trie[Value]) -> str:
        """Return what stands for the texts of `trie`, each followed by what follows it, as one sequence."""
        if isinstance(trie, Leaf):
            return f"{self._rules.literal(trie.label)} {self._after(trie.value)}"
        if id(trie) not in self._names:
            ways = " | ".join(self.body(child) for _, child in sorted(trie.children.items()))
            self._names[id(trie)] = (trie, self._rules.add(ways))
        name = self._names[id(trie)][1]
        return f"{self._rules.literal(trie.label)} {name}" if trie.label else name
