"""Hunks as a diff writes them, before anything about them is known to be correct."""

import re
from collections.abc import Sequence

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import HunkLine, LineKind

UNSIGNED = "?"
"""The sign of a line without a sign: context that lost its space, or text that is not part of the hunk."""
_NUMBERS = re.compile(r"@@ *-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *@@(?: ?(.*))?", re.ASCII | re.DOTALL)


class WrittenLine(Struct, frozen=True):
    """One line of a hunk. `sign` is one of ` -+?`; `newline` is False before the marker of a missing line feed."""

    sign: str
    text: str
    newline: bool = True

    @property
    def is_context(self) -> bool:
        """True if the line stays in the file."""
        return self.sign in {" ", UNSIGNED}

    @property
    def forms(self) -> tuple[str, ...]:
        """The texts it may have in the file: its own and, for a context line, its own after a space.

        A context line that begins with a space may have lost its sign.
        """
        return (self.text, f" {self.text}") if self.sign == " " else (self.text,)

    def as_hunk_line(self) -> HunkLine:
        """Return the line as part of a patch."""
        return HunkLine(LineKind.CONTEXT if self.is_context else LineKind(self.sign), self.text, self.newline)


class HeaderNumbers(Struct, frozen=True):
    """The numbers in the header of a hunk: first lines, counted from 1, and line counts."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int


class WrittenHunk(Struct, frozen=True):
    """One hunk. `numbers` is None if its header has none.

    `body` are its lines verbatim, `lines` the same lines with their signs split off. `counted` is True if the header
    counts them correctly. The last `tail` lines have no sign and may be prose.
    """

    numbers: HeaderNumbers | None
    section: str
    body: tuple[str, ...]
    lines: tuple[WrittenLine, ...]
    counted: bool = True
    tail: int = 0

    @property
    def growth(self) -> int:
        """The number of added lines minus the number of removed lines."""
        signs = [line.sign for line in self.lines]
        return signs.count("+") - signs.count("-")


def read_numbers(header: str) -> tuple[HeaderNumbers | None, str]:
    """Return the numbers of a hunk header, None if it has none, and the text after the second `@@`."""
    match = _NUMBERS.fullmatch(header)
    if match is None:
        return None, header[2:].partition("@@")[2].strip()
    old_start, old_count, new_start, new_count = (1 if each is None else int(each) for each in match.groups()[:4])
    return HeaderNumbers(old_start, old_count, new_start, new_count), (match[5] or "").strip()


def read_lines(body: Sequence[str]) -> tuple[WrittenLine, ...]:
    """Return the lines of a hunk's body. A marker is merged into the line before it; empty lines are context."""
    lines: list[WrittenLine] = []
    for raw in body:
        if raw.startswith("\\") and lines:
            if not lines[-1].newline:
                raise PatchError(
                    f"`{shown(raw)}` stands twice behind {shown(lines[-1].text)}: the line of the second one is lost",
                    advice="Give each marker behind the line that it belongs to, once.",
                )
            lines[-1] = WrittenLine(lines[-1].sign, lines[-1].text, newline=False)
        elif raw in {"", "\r"}:
            # Editors and models strip the space of an empty context line; git reads it like this too.
            lines.append(WrittenLine(" ", raw))
        elif raw[0] in " -+":
            lines.append(WrittenLine(raw[0], raw[1:]))
        else:
            lines.append(WrittenLine(UNSIGNED, raw))
    return tuple(lines)


def unsigned_tail(lines: Sequence[WrittenLine]) -> int:
    """Return the number of lines at the end that have no sign."""
    signed = [at for at, line in enumerate(lines) if line.sign != UNSIGNED]
    return len(lines) - 1 - signed[-1] if signed else len(lines)
