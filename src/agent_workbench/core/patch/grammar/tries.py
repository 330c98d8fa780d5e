"""Tries of texts with common prefixes, so that a sampler tries each prefix once.

A trie is an immutable value: adding a text makes a new trie that shares all unchanged parts. So the tries of "all lines
from here on" cost only one path for each line.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from agent_workbench.core.patch.grammar.grammar_rules import GrammarRules

Value = TypeVar("Value")


class TrieLeaf(Struct, Generic[Value], frozen=True, eq=False):
    """The rest of one text, and its value."""

    label: str
    value: Value


class TrieFork(Struct, Generic[Value], frozen=True, eq=False):
    """The common part of several texts, and their continuations by the next letter."""

    label: str
    children: "Mapping[str, Trie[Value]]"


Trie = TrieLeaf[Value] | TrieFork[Value]


def with_text(trie: Trie[Value] | None, text: str, value: Value) -> Trie[Value]:
    """Return the trie with `text` added or its value replaced. No text may be a prefix of another."""
    if trie is None or (isinstance(trie, TrieLeaf) and trie.label == text):
        return TrieLeaf(text, value)
    shared = _shared(trie.label, text)
    rest = text[shared:]
    if isinstance(trie, TrieFork) and shared == len(trie.label):
        child = with_text(trie.children.get(rest[0]), rest, value)
        return TrieFork(trie.label, {**trie.children, rest[0]: child})
    kept = trie.label[shared:]
    old: Trie[Value] = TrieLeaf(kept, trie.value) if isinstance(trie, TrieLeaf) else TrieFork(kept, trie.children)
    return TrieFork(text[:shared], {kept[0]: old, rest[0]: TrieLeaf(rest, value)})


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class TrieRules(Generic[Value]):
    """Writes tries as rules, each shared part once; `after` returns the expression that follows a text."""

    def __init__(self, rules: GrammarRules, after: Callable[[Value], str]) -> None:
        self._rules = rules
        self._after = after
        # Keeps the forks alive, so that no other object gets the same id.
        self._names: dict[int, tuple[TrieFork[Value], str]] = {}

    def body(self, trie: Trie[Value]) -> str:
        """Return the expression for the texts of `trie`, each with its continuation."""
        if isinstance(trie, TrieLeaf):
            return f"{self._rules.literal(trie.label)} {self._after(trie.value)}"
        if id(trie) not in self._names:
            ways = " | ".join(self.body(child) for _, child in sorted(trie.children.items()))
            self._names[id(trie)] = (trie, self._rules.shared(ways))
        name = self._names[id(trie)][1]
        return f"{self._rules.literal(trie.label)} {name}" if trie.label else name
