"""Selection state of a proposed diff: the hunks and lines left out, and the sign of each line."""

from collections.abc import Collection, Iterable

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.selection.carried_choice import carry_choice
from agent_workbench.core.patch.selection.choice import (
    HunkChoice,
    PartialDiff,
    SelectablePart,
    partial_diff,
    selectable_parts,
)
from agent_workbench.core.patch.values import HunkFate, Patch
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.panes.diff.rows import LEFT, PARTLY, TAKEN
from agent_workbench.tui.widgets.rows import SIGNS
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff.diff_document import DiffDocument
from agent_workbench.views.diff.lines import DiffLine

FATES = {HunkFate.TAKEN: TAKEN, HunkFate.PARTLY: PARTLY, HunkFate.LEFT: LEFT}


class HunkSelection:
    """Hunks of a proposed diff, and those that the user leaves out."""

    def __init__(self, proposal: Proposal | None = None, shown: DiffDocument | None = None) -> None:
        self.choice = HunkChoice()
        self.taking: PartialDiff | None = None
        self._proposal = proposal
        self._shown = shown or DiffDocument()
        self._patch: Patch | None = None
        self._parts: tuple[SelectablePart, ...] = ()
        self._whole_files_before: list[int] = []

    @property
    def patch(self) -> Patch | None:
        """The parsed diff, None if it cannot be parsed."""
        if self._patch is None and self._proposal is not None:
            self.take_parsed(parsed(self._proposal))
        return self._patch

    def take_parsed(self, patch: Patch | None) -> None:
        """Take the parsed diff, unless its parts are not those that are shown."""
        found = selectable_parts(patch) if patch is not None else ()
        if patch is None or len(found) != self._shown.hunks + sum(not head.hunks for head in self._shown.files):
            return
        self._patch, self._parts = patch, found
        self._whole_files_before = [0]
        for head in self._shown.files:
            self._whole_files_before.append(self._whole_files_before[-1] + (not head.hunks))

    def choose(self, choice: HunkChoice) -> None:
        """Change what is left out."""
        self.choice = choice
        special = self._proposal.special if self._proposal is not None else ()
        taking = self._patch is not None and choice.left
        self.taking = partial_diff(self._patch, choice, special) if self._patch is not None and taking else None

    def carry(self, before: "HunkSelection") -> list[str]:
        """Carry the choice over an edit of the diff; return the reasons of parts that are no longer in it."""
        if before.choice.left and before.patch is not None and self.patch is not None:
            self.choose(carry_choice(before.choice, before.patch, self.patch))
        gone = dict.fromkeys(left.reason for left in before.choice.left if left.reason)
        return [reason for reason in gone if not any(reason in left.reason for left in self.choice.left)]

    def part(self, line: DiffLine) -> SelectablePart | None:
        """Return the part that a line belongs to, None if it has none or the diff is not parsed."""
        if line.file < 0 or not self._parts or (line.hunk < 0 and not self.is_whole_file(line)):
            return None
        number = line.hunk if line.hunk >= 0 else self._shown.files[line.file].first_hunk
        return self._parts[number + self._whole_files_before[line.file]]

    def is_whole_file(self, line: DiffLine) -> bool:
        """Return True if a line is the header of a file without hunks, such as a renamed one."""
        return line.tone is Tone.FILE and line.file >= 0 and not self._shown.files[line.file].hunks

    def at(self, line: DiffLine) -> list[tuple[SelectablePart, None]]:
        """Return the part of a line; for the header of a file all of its hunks."""
        if line.tone is not Tone.FILE or self.is_whole_file(line):
            return [(part, None)] if (part := self.part(line)) is not None else []
        hunks = (each for each in self._shown.lines if each.tone is Tone.HUNK and each.file == line.file)
        return [(part, None) for each in hunks if (part := self.part(each)) is not None]

    def among(self, numbers: Iterable[int]) -> list[tuple[SelectablePart, Collection[int]]]:
        """Return the added and removed lines among these, by hunk."""
        meant: dict[SelectablePart, set[int]] = {}
        for line in (self._shown.lines[number] for number in numbers):
            if line.tone in SIGNS and line.at >= 0 and (part := self.part(line)) is not None:
                meant.setdefault(part, set()).add(line.at)
        return list(meant.items())

    def sign(self, line: DiffLine) -> str:
        """Return the sign of a line: taken, partly taken, left out; empty if it cannot be selected."""
        if line.tone is Tone.HUNK or self.is_whole_file(line):
            part = self.part(line)
            return TAKEN if part is None else FATES[self.choice.fate(part)]
        if line.at < 0 or line.tone not in SIGNS:
            return ""
        part = self.part(line) if self.choice.left else None
        return LEFT if part is not None and self.choice.leaves(part, line.at) else TAKEN

    def heading(self, line: DiffLine) -> str:
        """Return the number of a hunk, how much of it is left out and why."""
        said = f"hunk {line.hunk + 1} of {self._shown.hunks}"
        part = self.part(line) if self.choice.left else None
        left = self.choice.of(part) if part is not None else None
        if part is None or left is None:
            return said
        which = f"{len(left.lines)} of {len(part.changes)} lines left" if left.lines else "left"
        return f"{said} · {which}: {sanitize_line(left.reason, 200)}" if left.reason else f"{said} · {which}"


def parsed(proposal: Proposal) -> Patch | None:
    """Return the parsed diff of a proposal, None if it cannot be parsed."""
    try:
        return proposal.patch
    except PatchError:
        return None
