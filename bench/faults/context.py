"""Damage to context: lines of it that are lost, misquoted or left out with dots."""

import re
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from bench.faults.draft import MARKER, Draft, Hunk

DOTS = ("...", " ...", " # ...", " // ...", " [...]", " # ... unchanged ...")
_LONG_RUN = 5
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_KEYWORDS = frozenset(
    {"and", "class", "def", "for", "from", "func", "import", "not", "return", "self", "this", "while"}
)

Alter = Callable[[Hunk, Random], Hunk | None]


def edges_lost(at_head: int, at_tail: int, *, counted: bool) -> Callable[[Draft, Random], Draft | None]:
    """Return the damage that takes up to so many context lines off the head and the tail of every hunk that has them.

    `counted` says whether the header knows. A hunk keeps at least one old line.
    """

    def alter(hunk: Hunk, random: Random) -> Hunk | None:
        lost = _cut_edges(hunk, at_head, at_tail)
        if lost is None or not counted:
            return lost
        head = min(at_head, _run(hunk.body))
        return replace(lost, old_start=hunk.old_start + head, new_start=hunk.new_start + head).counted()

    return lambda draft, random: _where_possible(draft, random, alter)


def one_edge_lost(draft: Draft, random: Random) -> Draft | None:
    """Every hunk lacks one or two context lines at its head or at its tail; the counts know, the start does not."""

    def alter(hunk: Hunk, chance: Random) -> Hunk | None:
        count = chance.randint(1, 2)
        ends = [(count, 0), (0, count)]
        chance.shuffle(ends)
        found = next((lost for end in ends if (lost := _cut_edges(hunk, *end))), None)
        return None if found is None else found.counted()

    return _where_possible(draft, random, alter)


def blank_lost(draft: Draft, random: Random) -> Draft | None:
    """One hunk lacks a blank context line that stands between two others."""
    return _in_one(draft, random, _without_blank)


def middle_lost(draft: Draft, random: Random) -> Draft | None:
    """One hunk lacks a context line that stands between two others."""
    return _in_one(draft, random, lambda hunk, chance: _without_one(hunk, chance, beside=False))


def middle_lost_counted(draft: Draft, random: Random) -> Draft | None:
    """The same, and the counts of every hunk know."""
    lost = middle_lost(draft, random)
    return None if lost is None else lost.each_hunk(Hunk.counted)


def beside_lost(draft: Draft, random: Random) -> Draft | None:
    """One hunk lacks a context line that stands beside a changed one, and is not the hunk's first or last."""
    return _in_one(draft, random, lambda hunk, chance: _without_one(hunk, chance, beside=True))


def beside_lost_counted(draft: Draft, random: Random) -> Draft | None:
    """The same, and the counts of every hunk know."""
    lost = beside_lost(draft, random)
    return None if lost is None else lost.each_hunk(Hunk.counted)


def spelled_otherwise(draft: Draft, random: Random) -> Draft | None:
    """One context line has other blanks, quotes or punctuation inside."""
    return _in_one(draft, random, lambda hunk, chance: _misquoted(hunk, chance, " ", _respell))


def mistyped(draft: Draft, random: Random) -> Draft | None:
    """One context line has a typing error."""
    return _in_one(draft, random, lambda hunk, chance: _misquoted(hunk, chance, " ", _typo))


def renamed(draft: Draft, random: Random) -> Draft | None:
    """One context line has another name in place of one of its names."""
    return _in_one(draft, random, lambda hunk, chance: _misquoted(hunk, chance, " ", rename_in))


def removed_mistyped(draft: Draft, random: Random) -> Draft | None:
    """One removed line has a typing error."""
    return _in_one(draft, random, lambda hunk, chance: _misquoted(hunk, chance, "-", _typo))


def elided(draft: Draft, random: Random) -> Draft | None:
    """The middle of long context between two changes is replaced by dots."""
    dots = random.choice(DOTS)
    return _in_one(draft, random, lambda hunk, chance: _elided(hunk, chance, dots))


def _where_possible(draft: Draft, random: Random, alter: Alter) -> Draft | None:
    altered = draft.each_hunk(lambda hunk: alter(hunk, random) or hunk)
    return altered if altered != draft and draft.modified() else None


def _in_one(draft: Draft, random: Random, alter: Alter) -> Draft | None:
    """Return the draft with one hunk of it altered, a random one of those where that is possible."""
    hunks = draft.hunks()
    order = list(range(len(hunks)))
    random.shuffle(order)
    for chosen in order:
        altered = alter(hunks[chosen], random)
        if altered is not None and draft.modified():
            numbers = iter(range(len(hunks)))
            return draft.each_hunk(lambda hunk: altered if next(numbers) == chosen else hunk)  # noqa: B023
    return None


def _cut_edges(hunk: Hunk, at_head: int, at_tail: int) -> Hunk | None:
    head = min(at_head, _run(hunk.body))
    tail = min(at_tail, _run(hunk.body[::-1]))
    body = hunk.body[head : len(hunk.body) - tail]
    # A marker belongs to the line before it, and would be another's.
    if not head + tail or MARKER in hunk.body or not any(line[:1] in {" ", "-"} for line in body):
        return None
    return replace(hunk, body=body)


def _run(body: tuple[str, ...]) -> int:
    """Return how many context lines stand at the beginning."""
    return next((at for at, line in enumerate(body) if line[:1] != " "), len(body))


def _without_one(hunk: Hunk, random: Random, *, beside: bool) -> Hunk | None:
    kinds = [line[:1] for line in hunk.body if line != MARKER]
    inner = [
        at for at in range(1, len(kinds) - 1) if kinds[at] == " " and (set(kinds[at - 1 : at + 2]) != {" "}) == beside
    ]
    inner = [
        at for at in inner if hunk.body[at].strip() and hunk.body[at] not in {hunk.body[at - 1], hunk.body[at + 1]}
    ]
    if not inner:
        return None
    at = random.choice(inner)
    return replace(hunk, body=hunk.body[:at] + hunk.body[at + 1 :])


def _without_blank(hunk: Hunk, random: Random) -> Hunk | None:
    body = hunk.body
    inner = [at for at in range(1, len(body) - 1) if body[at] == " " and {body[at - 1][:1], body[at + 1][:1]} == {" "}]
    # Of two blank lines beside a change either may be the lost one, which tells two stories of where the change is.
    inner = [at for at in inner if " " not in {body[at - 1], body[at + 1]}]
    if not inner:
        return None
    at = random.choice(inner)
    return replace(hunk, body=body[:at] + body[at + 1 :])


def _misquoted(hunk: Hunk, random: Random, kind: str, spoil: Callable[[str, Random], str | None]) -> Hunk | None:
    """Return the hunk with one line of the kind spoiled; None where no other old line would tell its place."""
    lines = [at for at, line in enumerate(hunk.body) if line[:1] == kind and len(line.strip()) > 6]
    others = [line for line in hunk.old if len(line.strip()) > 1]
    if not lines or len(others) < 3:
        return None
    at = random.choice(lines)
    spoiled = spoil(hunk.body[at][1:], random)
    if spoiled is None:
        return None
    return replace(hunk, body=(*hunk.body[:at], kind + spoiled, *hunk.body[at + 1 :]))


def _typo(text: str, random: Random) -> str | None:
    places = [at for at in range(len(text) - 1) if text[at].isalpha() and text[at + 1].isalpha()]
    if not places:
        return None
    at = random.choice(places)
    forms = [
        text[:at] + text[at + 1 :],
        text[:at] + text[at] + text[at:],
        text[:at] + text[at + 1] + text[at] + text[at + 2 :],
    ]
    return next((form for form in random.sample(forms, 3) if form != text), None)


def _respell(text: str, random: Random) -> str | None:
    body = text.lstrip()
    indent = text[: len(text) - len(body)]
    forms = [
        body.replace(" ", "  ", 1),
        body.replace(", ", ","),
        body.replace(" = ", "="),
        body.replace("'", '"'),
        body.replace('"', "'"),
        body.rstrip(",;:"),
    ]
    forms = [form for form in forms if form.rstrip() != body.rstrip()]
    return indent + random.choice(forms) if forms else None


def rename_in(text: str, random: Random) -> str | None:
    """Return the line with another name in place of one of its names; None if it has none."""
    names = [found for found in _IDENTIFIER.finditer(text) if found[0] not in _KEYWORDS]
    if not names:
        return None
    name = random.choice(names)
    other = random.choice([f"new_{name[0]}", f"{name[0]}s", f"{name[0]}_value", name[0].swapcase()])
    return text[: name.start()] + other + text[name.end() :]


def _elided(hunk: Hunk, random: Random, dots: str) -> Hunk | None:
    kinds = "".join(line[:1] for line in hunk.body)
    runs = [found for found in re.finditer(" +", kinds) if found.start() and found.end() < len(kinds)]
    runs = [found for found in runs if found.end() - found.start() >= _LONG_RUN]
    if not runs:
        return None
    run = random.choice(runs)
    head, tail = run.start() + random.randint(1, 2), run.end() - random.randint(1, 2)
    return replace(hunk, body=(*hunk.body[:head], dots, *hunk.body[tail:]))
