"""Sentences of a GBNF grammar, drawn at random: what llama.cpp would let a model write.

    sentence = sample(grammar, random.Random(7))

Read is what our grammars use of the notation: rules, literals, character classes, groups, `|`, `?`, `*`, `+`, `{m,n}`.
"""

import random
import re
from functools import lru_cache

from msgspec import Struct

_TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<times>\{\d+(?:,\d*)?\})'
    r"|(?P<sign>[()|?*+])|(?P<name>[A-Za-z0-9-]+))",
    re.DOTALL,
)
_ESCAPES = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
# Letters of all kinds for a class that leaves some out.
_LETTERS = [*map(chr, range(0x20, 0x7F)), "\n", "\t", "é", "ß", "Ж", "中", "😀", "\u200b", "\ud7ff", "\U0010ffff"]
MOST_REPEATS = 6
"""More repetitions are drawn only where the grammar demands them; sometimes the most that it allows."""


class Text(Struct, frozen=True):
    text: str


class Letters(Struct, frozen=True):
    letters: tuple[str, ...]


class Name(Struct, frozen=True):
    name: str


class Sequence(Struct, frozen=True):
    parts: "tuple[Node, ...]"


class Choice(Struct, frozen=True):
    ways: "tuple[Node, ...]"


class Repeat(Struct, frozen=True):
    part: "Node"
    least: int
    most: int | None


Node = Text | Letters | Name | Sequence | Choice | Repeat


def sample(grammar: str, chance: random.Random, root: str = "root") -> str:
    """Return one sentence; raise `ValueError` for a grammar that cannot be read."""
    rules = _rules(grammar)
    out: list[str] = []
    waiting: list[Node] = [rules[root]]
    while waiting:
        match waiting.pop():
            case Text(text=text):
                out.append(text)
            case Letters(letters=letters):
                out.append(chance.choice(letters))
            case Name(name=name):
                waiting.append(rules[name])
            case Sequence(parts=parts):
                waiting += reversed(parts)
            case Choice(ways=ways):
                waiting.append(chance.choice(ways))
            case Repeat(part=part, least=least, most=most):
                waiting += [part] * _times(chance, least, most)
    return "".join(out)


def _times(chance: random.Random, least: int, most: int | None) -> int:
    few = least + chance.randint(0, MOST_REPEATS)
    if most is None:
        return few
    return most if chance.random() < 0.1 else min(few, most)


@lru_cache(maxsize=64)
def _rules(grammar: str) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for line in grammar.splitlines():
        name, sign, body = line.partition(" ::= ")
        if not sign or not re.fullmatch(r"[A-Za-z0-9-]+", name) or name in found:
            raise ValueError(f"no rule, or a second one: {line!r}")
        found[name] = _parse(body)
    return found


def _parse(body: str) -> Node:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(body.rstrip()):
        token = _TOKEN.match(body, at)
        if token is None or token.lastgroup is None:
            raise ValueError(f"cannot be read: {body[at : at + 40]!r}")
        tokens.append((token.lastgroup, token[token.lastgroup]))
        at = token.end()
    node, rest = _choice(tokens)
    if rest:
        raise ValueError(f"left over: {rest[:3]}")
    return node


def _choice(tokens: list[tuple[str, str]]) -> tuple[Node, list[tuple[str, str]]]:
    ways: list[Node] = []
    while True:
        way, tokens = _sequence(tokens)
        ways.append(way)
        if not tokens or tokens[0][1] != "|":
            return (ways[0] if len(ways) == 1 else Choice(tuple(ways))), tokens
        tokens = tokens[1:]


def _sequence(tokens: list[tuple[str, str]]) -> tuple[Node, list[tuple[str, str]]]:
    parts: list[Node] = []
    while tokens and tokens[0] not in {("sign", "|"), ("sign", ")")}:
        (kind, said), tokens = tokens[0], tokens[1:]
        match kind, said:
            case "text", _:
                parts.append(Text(_unescaped(said[1:-1])))
            case "set", _:
                parts.append(_letters(said[1:-1]))
            case "name", _:
                parts.append(Name(said))
            case "sign", "(":
                inner, tokens = _choice(tokens)
                tokens = tokens[1:]
                parts.append(inner)
            case "sign", "?":
                parts[-1] = Repeat(parts[-1], 0, 1)
            case "sign", "*":
                parts[-1] = Repeat(parts[-1], 0, None)
            case "sign", "+":
                parts[-1] = Repeat(parts[-1], 1, None)
            case "times", _:
                least, _, most = said[1:-1].partition(",")
                parts[-1] = Repeat(parts[-1], int(least), int(most or least))
    return Sequence(tuple(parts)), tokens


def _letters(said: str) -> Letters:
    excluded = said.startswith("^")
    marks = [_unescaped(each[0]) for each in re.finditer(r"\\x..|\\u....|\\U.{8}|\\.|.", said[excluded:], re.DOTALL)]
    within: list[tuple[str, str]] = []
    while marks:
        if len(marks) > 2 and marks[1] == "-":
            within.append((marks[0], marks[2]))
            marks = marks[3:]
        else:
            within.append((marks[0], marks[0]))
            marks = marks[1:]
    if excluded:
        return Letters(tuple(x for x in _LETTERS if not any(low <= x <= high for low, high in within)))
    return Letters(tuple(chr(code) for low, high in within for code in range(ord(low), ord(high) + 1)))


def _unescaped(text: str) -> str:
    def letter(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        return chr(int(code, 16)) if code else _PLAIN.get(found[4], found[4])

    return _ESCAPES.sub(letter, text)
