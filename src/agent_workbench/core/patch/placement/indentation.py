"""Placement of hunks with another indentation than the file: one rule must explain all indents."""

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.placement.pieces import Doubt, HunkPiece, Placement
from agent_workbench.core.patch.reader.hunk_bodies import WrittenLine

_LEADING = re.compile(r"[ \t]*")
_WIDTHS = (2, 3, 4, 8)

Rule = Callable[[str], str | None]


def reindented(piece: HunkPiece, file: FileLines) -> list[Placement]:
    """Return the placements of a piece whose indents a rule converts into those of the file, with converted lines.

    Raises `Doubt` if several rules fit the old lines and indent an added line differently.
    """
    old = piece.old
    found = file.find_stripped([line.text.strip() for line in old])
    placements = []
    for start in found:
        if not piece.marks_fit(file, start):
            continue
        pairs = [
            (_indent(line.text), _indent(body))
            for line, body in zip(old, file.texts[start : start + len(old)], strict=True)
            if line.text.strip()
        ]
        if not any(line.sign == "-" and line.text.strip() for line in old) and _by_odd_blanks(pairs):
            continue  # One of the spaces may be the sign of a context line that was lost.
        rules = [rule for rule in _rules(pairs) if all(rule(written) == actual for written, actual in pairs)]
        if rules and len(pairs) > 1:
            _check_blanks(piece, file.texts[start : start + len(old)])
            lines = tuple(_converted(line, rules, file) for line in piece.lines)
            repair = "its lines were indented as those of the file are"
            at = tuple(range(start, start + len(old)))
            placements.append(Placement(piece, at, 0.0, (repair,), lines))
    return placements


def _by_odd_blanks(pairs: Sequence[tuple[str, str]]) -> bool:
    return any((len(actual) - len(written)) % 2 and "\t" not in written + actual for written, actual in pairs)


def _check_blanks(piece: HunkPiece, bodies: Sequence[str]) -> None:
    """Raise `Doubt` if the conversion affects lines that are blank but not empty."""
    added = [line.text for line in piece.lines if line.sign == "+" and not line.text.strip()]
    lost = any(body and not body.strip() and body != line.text for line, body in zip(piece.old, bodies, strict=True))
    if any(added) or (added and lost):
        raise Doubt("which blanks an added line has is not certain")


def _rules(pairs: Sequence[tuple[str, str]]) -> Iterator[Rule]:
    """Yield rules that may convert the written indents into those of the file."""
    written, actual = next(((a, b) for a, b in pairs if a or b), ("", ""))
    if actual.endswith(written):
        more = actual.removesuffix(written) if written else actual
        yield lambda indent: more + indent
    if written.endswith(actual):
        less = written.removesuffix(actual) if actual else written
        yield lambda indent: indent.removeprefix(less) if indent.startswith(less) else None
    for width in _WIDTHS:
        yield _spaced(width)
        yield _tabbed(width)
        yield _expanded(width)
        for other in _WIDTHS:
            if other != width:
                yield _scaled(width, other)


def _spaced(width: int) -> Rule:
    return lambda indent: indent.replace("\t", " " * width)


def _expanded(width: int) -> Rule:
    return lambda indent: indent.expandtabs(width)


def _tabbed(width: int) -> Rule:
    return lambda indent: indent.replace(" " * width, "\t")


def _scaled(width: int, other: int) -> Rule:
    def rule(indent: str) -> str | None:
        if "\t" in indent or len(indent) % width:
            return None
        return " " * (len(indent) // width * other)

    return rule


def _converted(line: WrittenLine, rules: Sequence[Rule], file: FileLines) -> WrittenLine:
    if line.sign != "+" or not line.text.strip():
        return line
    indent = _indent(line.text)
    ways = {rule(indent) for rule in rules}
    only = ways.pop()
    if ways or only is None:
        raise Doubt("how an added line is to be indented is not certain")
    if (
        "\t" in only
        and "\t" not in indent
        and _has_inner_blanks(line.text)
        and any("\t" in b.strip() for b in file.texts)
    ):
        raise Doubt("an added line may have had tabs inside")
    return replace(line, text=only + line.text[len(indent) :])


def _has_inner_blanks(text: str) -> bool:
    return "  " in text.strip()


def _indent(text: str) -> str:
    match = _LEADING.match(text)
    return match[0] if match else ""
