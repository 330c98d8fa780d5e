"""What of a diff that waits can be taken, what is taken, and how that is said of its lines."""

from collections.abc import Collection, Iterable

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.reader.patch_reader import parse_patch
from agent_workbench.core.patch.selection.carried_choice import carried_choice
from agent_workbench.core.patch.selection.choice import HunkChoice, SelectablePart, Taking, selectable_parts, taking
from agent_workbench.core.patch.values import OWN_BOUNDS, HunkFate, Patch
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.panes.diff.rows import LEFT, PARTLY, TAKEN
from agent_workbench.tui.widgets.rows import SIGNS
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff.lines import DiffLine
from agent_workbench.views.diff.shown_diff import ShownDiff

FATES = {HunkFate.TAKEN: TAKEN, HunkFate.PARTLY: PARTLY, HunkFate.LEFT: LEFT}


class DiffParts:
    """The hunks of a shown diff with a choice among them. The diff is taken apart when that is asked for first."""

    def __init__(self, diff: str = "", shown: ShownDiff | None = None) -> None:
        self.choice = HunkChoice()
        self.taking: Taking | None = None
        self._diff = diff
        self._shown = shown or ShownDiff()
        self._patch: Patch | None = None
        self._takeables: tuple[SelectablePart, ...] = ()
        self._before: list[int] = []

    @property
    def patch(self) -> Patch | None:
        """The diff taken apart, None where that cannot be."""
        if self._patch is None and self._diff:
            self.take_apart(parsed(self._diff))
        return self._patch

    def take_apart(self, patch: Patch | None) -> None:
        """Know the parts; a patch that is not what is shown counts for nothing."""
        found = selectable_parts(patch) if patch is not None else ()
        if patch is None or len(found) != self._shown.hunks + sum(not head.hunks for head in self._shown.files):
            return
        self._patch, self._takeables = patch, found
        self._before = [0]
        for head in self._shown.files:
            self._before.append(self._before[-1] + (not head.hunks))

    def choose(self, choice: HunkChoice) -> None:
        """Let this be what is taken."""
        self.choice = choice
        self.taking = taking(self._patch, choice) if self._patch is not None and choice.left else None

    def carry(self, before: "DiffParts") -> list[str]:
        """Choose what was chosen of the text before an edit; return the reasons that nothing is left out for now."""
        if before.choice.left and before.patch is not None and self.patch is not None:
            self.choose(carried_choice(before.choice, before.patch, self.patch))
        gone = dict.fromkeys(left.reason for left in before.choice.left if left.reason)
        return [reason for reason in gone if not any(reason in left.reason for left in self.choice.left)]

    def part(self, line: DiffLine) -> SelectablePart | None:
        """Return what is decided on at a line, None where there is nothing, or nothing is known yet."""
        if line.file < 0 or not self._takeables or (line.hunk < 0 and not self.is_whole_file(line)):
            return None
        number = line.hunk if line.hunk >= 0 else self._shown.files[line.file].first_hunk
        return self._takeables[number + self._before[line.file]]

    def is_whole_file(self, line: DiffLine) -> bool:
        """Return whether this is the header of a file without hunks, which is taken or left by it."""
        return line.tone is Tone.FILE and line.file >= 0 and not self._shown.files[line.file].hunks

    def at(self, line: DiffLine) -> list[tuple[SelectablePart, None]]:
        """Return all that a line stands for: its hunk, or for the header of a file all of its hunks."""
        if line.tone is not Tone.FILE or self.is_whole_file(line):
            return [(part, None)] if (part := self.part(line)) is not None else []
        hunks = (each for each in self._shown.lines if each.tone is Tone.HUNK and each.file == line.file)
        return [(part, None) for each in hunks if (part := self.part(each)) is not None]

    def among(self, numbers: Iterable[int]) -> list[tuple[SelectablePart, Collection[int]]]:
        """Return the added and removed ones among these lines, by their hunks."""
        meant: dict[SelectablePart, set[int]] = {}
        for line in (self._shown.lines[number] for number in numbers):
            if line.tone in SIGNS and line.at >= 0 and (part := self.part(line)) is not None:
                meant.setdefault(part, set()).add(line.at)
        return list(meant.items())

    def mark(self, line: DiffLine) -> str:
        """Return the sign of what is taken of a line, empty where there is nothing to take."""
        if line.tone is Tone.HUNK or self.is_whole_file(line):
            part = self.part(line)
            return TAKEN if part is None else FATES[self.choice.fate(part)]
        if line.at < 0 or line.tone not in SIGNS:
            return ""
        part = self.part(line) if self.choice.left else None
        return LEFT if part is not None and self.choice.leaves(part, line.at) else TAKEN

    def said(self, line: DiffLine) -> str:
        """Return what the header of a hunk says: which one it is, what of it is left and why."""
        said = f"hunk {line.hunk + 1} of {self._shown.hunks}"
        part = self.part(line) if self.choice.left else None
        left = self.choice.of(part) if part is not None else None
        if part is None or left is None:
            return said
        which = f"{len(left.lines)} of {len(part.changes)} lines left" if left.lines else "left"
        return f"{said} · {which}: {sanitize_line(left.reason, 200)}" if left.reason else f"{said} · {which}"


def parsed(diff: str) -> Patch | None:
    """Return a diff taken apart, None where it cannot be."""
    try:
        return parse_patch(diff, OWN_BOUNDS)
    except PatchError:
        return None
