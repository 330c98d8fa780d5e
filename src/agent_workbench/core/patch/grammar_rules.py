"""Rules of a GBNF grammar with short names, and tries of texts with common prefixes.

A trie is an immutable value: adding a text makes a new trie that shares all unchanged parts. So the tries of "all lines
from here on" cost only one path for each line.
"""

import string
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from agent_workbench.core.text.gbnf import literal

_DIGITS = string.digits + string.ascii_lowercase
_INLINE_CHARS = 6

Value = TypeVar("Value")


class GrammarRules:
    """Collects the rules of one grammar. Names begin with `prefix`; each literal is written once."""

    def __init__(self, prefix: str = "x") -> None:
        self._prefix = prefix
        self.lines: list[str] = []
        self._literals: dict[str, str] = {}
        self._shared: dict[str, str] = {}
        self._named: dict[object, str] = {}
        self._count = 0

    def fresh(self) -> str:
        """Return a name without a rule."""
        name, number = "", self._count
        self._count += 1
        while True:
            number, digit = divmod(number, len(_DIGITS))
            name = _DIGITS[digit] + name
            if not number:
                return self._prefix + name

    def name_of(self, key: object) -> str:
        """Return the name of what `key` stands for, always the same."""
        if key not in self._named:
            self._named[key] = self.fresh()
        return self._named[key]

    def define(self, name: str, body: str) -> None:
        """Write a rule."""
        self.lines.append(f"{name} ::= {body}")

    def add(self, body: str) -> str:
        """Write a rule with a new name; return the name."""
        name = self.fresh()
        self.define(name, body)
        return name

    def shared(self, body: str) -> str:
        """Return the name of the rule with this body, which is written once."""
        if body not in self._shared:
            self._shared[body] = self.add(body)
        return self._shared[body]

    def literal(self, text: str) -> str:
        """Return the expression for `text`: a literal if it is short, else the name of its rule."""
        if len(text) <= _INLINE_CHARS:
            return literal(text)
        if text not in self._literals:
            self._literals[text] = self.add(literal(text))
        return self._literals[text]


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
