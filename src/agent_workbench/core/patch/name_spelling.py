"""Grammar of a name that no file of its folder has yet, letter by letter.

A grammar has no negation. So a new name may follow an existing one for any number of letters, and must leave it
somewhere. Names that differ only by case are the same name.
"""

import string
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct, field

from agent_workbench.core.patch.grammar_rules import GrammarRules
from agent_workbench.core.patch.paths import fold_path
from agent_workbench.core.text.gbnf import literal

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
