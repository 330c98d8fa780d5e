"""Texts as Markdown: tables, and cells that read the same on a forge and on the site."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column whose cells are all empty is left out."""
    listed = [list(row) for row in rows]
    kept = [number for number in range(len(head)) if any(row[number] for row in listed)]
    lines = [[head[number] for number in kept], ["---" for _ in kept]]
    lines += [[_cell(row[number]) for number in kept] for row in listed]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def plain(text: str) -> str:
    """Return the text with what would be read as HTML shown literally; code spans stay as they are."""
    parts = text.split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def code(text: str) -> str:
    """Return a code span."""
    return f"`{text}`"


def choice(texts: Iterable[str]) -> str:
    """Return code spans joined by commas and an `or`."""
    *most, last = map(code, texts)
    return f"{', '.join(most)} or {last}" if most else last
