"""Rules of a GBNF grammar: literals, tries of texts with common prefixes, and names that no file has yet.

A trie is an immutable value: adding a text makes a new trie that shares all unchanged parts. So the tries of "all lines
from here on" cost only one path for each line.

A grammar has no negation. So a new name may follow an existing one for any number of letters, and must leave it
somewhere. Names that differ only by case are the same name.
"""

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from msgspec import Struct, field

from agent_workbench.core.errors import UsageError
from agent_workbench.core.patch.paths import fold_path

_DIGITS = string.digits + string.ascii_lowercase
_INLINE_CHARS = 6

Value = TypeVar("Value")

_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")

_FOLLOWED_CHARS = 100
_FIRST = string.ascii_letters + string.digits + "_"
LETTERS = _FIRST + "+@-"

COMMON = (
    "a ::= [A-Za-z0-9_+@-]",
    'f ::= ( "."? a ){0,40}',
    "g ::= [A-Za-z0-9_] f",
)
"""Rules for all new names: a letter, the rest of a name, and a name in a new folder."""

Pattern = tuple[str, str]
"""The beginning and the end of a name."""


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


def literal(text: str) -> str:
    """Return `text` as a GBNF literal; raise `UsageError` for NUL and lone surrogates."""
    if _IMPOSSIBLE.search(text):
        raise UsageError(f"{text[:60]!r} holds a character that no grammar can: NUL or half of a surrogate pair")
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def spelled_anew(rules: GrammarRules, taken: Iterable[str], pattern: Pattern) -> str:
    """Return the expression for all names of a pattern that are not taken, empty if there is none."""
    before, after = pattern
    if after == "\n":
        return "" if fold_path(before) in taken else literal(before)
    folded = fold_path(before), fold_path(after)
    stems = {
        name[len(before) : len(name) - len(after)]
        for name in taken
        if len(name) > len(before) + len(after) and name.startswith(folded[0]) and name.endswith(folded[1])
    }
    name = rules.shared(_leaving(rules, _letters_of(stems), 0, "/"))
    return f"{literal(before) if before else ''} {name} {literal(after) if after else ''}".strip()


class _Letters(Struct):
    """A tree of names by letters; `ends` is True if a name ends here."""

    ends: bool = False
    after: dict[str, "_Letters"] = field(default_factory=dict)


def _letters_of(names: Iterable[str]) -> _Letters:
    root = _Letters()
    for name in sorted(names):
        # New names have no other letters, and are not that long.
        if set(name) <= {*LETTERS, "."}:
            node = root
            for letter in name[:_FOLLOWED_CHARS]:
                node = node.after.setdefault(letter, _Letters())
            node.ends = True
    return root


def _leaving(rules: GrammarRules, node: _Letters, depth: int, last: str) -> str:
    """Return the alternatives for the rest of a name that is equal to others up to `node`.

    What many names have in common is written once: the letters with which a name is left, and ends such as `.py`.
    """
    ways = []
    if depth < _FOLLOWED_CHARS:
        dot = ' | "." a f' if "." not in node.after and last != "." else ""
        ways.append(rules.shared(f"{_others(LETTERS if depth else _FIRST, frozenset(node.after))} f{dot}"))
    for letter, child in sorted(node.after.items()):
        follow = _leaving(rules, child, depth + 1, letter)
        if not follow:
            continue
        inner = rules.shared(follow) if letter == "." or len(node.after) > 1 else f"({follow})"
        may_end = not child.ends and letter != "."
        ways.append(f"{_both_cases(letter)}{inner}{'?' if may_end else ''}")
    return "|".join(ways)


@lru_cache(maxsize=1024)
def _others(letters: str, taken: frozenset[str]) -> str:
    return _one_of([each for each in letters if each.lower() not in taken])


@lru_cache(maxsize=128)
def _both_cases(letter: str) -> str:
    return _one_of(sorted({letter, letter.upper()}))


def _one_of(letters: Sequence[str]) -> str:
    """Return a character class; consecutive letters become a range."""
    ranges: list[list[str]] = []
    for letter in sorted(letters):
        if ranges and ord(letter) == ord(ranges[-1][-1]) + 1:
            ranges[-1].append(letter)
        else:
            ranges.append([letter])
    dash = "-" if ["-"] in ranges else ""
    spans = [each[0] + (f"-{each[-1]}" if len(each) > 1 else "") for each in ranges if each != ["-"]]
    return f"[{''.join(spans)}{dash}]"
