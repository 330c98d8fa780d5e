"""Selection of hunks and lines in the diff pane, and its keys: leave out, give a reason, edit, show."""

import asyncio
from collections.abc import Collection, Iterable

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.selection import (
    HunkChoice,
    PartialDiff,
    SelectablePart,
    carry_choice,
    partial_diff,
    selectable_parts,
)
from agent_workbench.core.patch.values import HunkFate, Patch
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.panes.diff_cursor import DiffCursor
from agent_workbench.tui.panes.diff_rendering import LineMarks
from agent_workbench.tui.panes.diff_rows import LEFT, PARTLY, TAKEN
from agent_workbench.tui.panes.diff_viewer import DiffViewer, HunkEditWanted, ReasonWanted, SelectionChanged
from agent_workbench.tui.widgets.rows import SIGNS
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.diff_document import DiffDocument, DiffLine, DiffReader
from agent_workbench.views.gate.proposal_views import DiffView

FATES = {HunkFate.TAKEN: TAKEN, HunkFate.PARTLY: PARTLY, HunkFate.LEFT: LEFT}

PARSED_AT_ONCE_CHARS = 50_000
"""A longer diff from a journal is parsed in a thread before its parts are asked for."""


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


class HunkActions(LineMarks):
    """Handler of the keys that change a `HunkSelection`. `shows_result`: the viewer shows the result."""

    def __init__(self, viewer: DiffViewer, cursor: DiffCursor) -> None:
        self.shows_result = False
        self._viewer = viewer
        self._cursor = cursor
        self._selection = HunkSelection()
        self._explained: set[str] = set()

    @property
    def visible(self) -> bool:
        return self._viewer.view.by_hunk and not self.shows_result

    def sign(self, number: int) -> str:
        return self._selection.sign(self._viewer.diff.shown.lines[number])

    def covers_cursor(self, number: int) -> bool:
        return self._cursor.covers(number)

    def before_heading(self, number: int) -> str:
        line = self._viewer.diff.shown.lines[number]
        return f"{self._selection.heading(line)}  " if self.visible and line.tone is Tone.HUNK else ""

    @property
    def taking(self) -> PartialDiff | None:
        """The result of the selection, None if nothing is left out."""
        return self._selection.taking

    def is_edited_by(self, view: DiffView) -> bool:
        """Return True if a view is an edited version of the shown proposal."""
        shown = self._viewer.view.proposal
        return view.by_hunk and not view.partial and shown != view.proposal and _id(shown) == _id(view.proposal)

    def reset(self) -> HunkSelection:
        """Leave the proposal that was shown; return the selection of its hunks."""
        before, self._selection = self._selection, HunkSelection()
        self.shows_result = False
        self._explained = set()
        self._cursor.reset()
        return before

    def begin(self, view: DiffView, edited: HunkSelection | None, hunk: int) -> None:
        """Start the selection in a new proposal. An `edited` version of the last one keeps selection and cursor."""
        self._selection = HunkSelection(view.source, self._viewer.diff.shown)
        lost = self._selection.carry(edited) if edited is not None else []
        self._explained = {left.id for left in self._selection.choice.left}
        if lost:
            reasons = sanitize_line("; ".join(lost))
            self._viewer.notify(f"what was left out is no longer in the diff: {reasons}", markup=False)
        self._cursor.point_to(next(iter(self._viewer.diff.changes()), 0))
        if edited is not None:
            self._changed()
            line = next((at for at, each in enumerate(self._viewer.diff.shown.lines) if each.hunk == hunk >= 0), -1)
            self._viewer.call_after_refresh(self._cursor.to_change, line)
        if len(view.diff) > PARSED_AT_ONCE_CHARS and view.source is not None:
            self._viewer.run_worker(self._parse(self._selection, view.source), group="parse", exclusive=True)

    async def _parse(self, selection: HunkSelection, proposal: Proposal) -> None:
        """Parse a long diff before its parts are asked for."""
        selection.take_parsed(await asyncio.to_thread(parsed, proposal))

    def hunk_here(self) -> int:
        """Return the number of the hunk under the cursor, -1 if there is none."""
        viewer = self._viewer
        lines = DiffReader().read(viewer.view.diff).lines if self.shows_result else viewer.diff.shown.lines
        return lines[self._cursor.at].hunk if 0 <= self._cursor.at < len(lines) else -1

    def _line_here(self) -> DiffLine | None:
        return self._viewer.diff.shown.lines[self._cursor.at] if self._cursor.active else None

    def _patch(self) -> Patch | None:
        """Return the parsed diff; tell the user if it cannot be parsed."""
        if self._selection.patch is None:
            self._warn("this diff cannot be taken apart: approve, edit or reject it as a whole")
        return self._selection.patch

    def toggle(self) -> None:
        """Leave out the hunk under the cursor, or the lines of the range; take them if they are left out."""
        if self.shows_result:
            self.toggle_result()
            return
        line, selection = self._line_here(), self._selection
        if line is None or self._patch() is None:
            return
        chosen = selection.among(self._cursor.selected()) if self._cursor.anchor >= 0 else selection.at(line)
        if not chosen:
            self._warn("nothing here is added or removed")
            return
        self._cursor.anchor = -1
        self._choose(selection.choice.toggled(chosen))
        left = (part.id for part, _ in chosen if selection.choice.of(part) is not None)
        new = tuple(each for each in left if each not in self._explained)
        if new:
            self._explained.update(new)
            what = "this hunk" if len(new) == 1 else f"these {len(new)} hunks"
            self._viewer.post_message(ReasonWanted(new, what))

    def _choose(self, choice: HunkChoice) -> None:
        self._selection.choose(choice)
        self._changed()

    def _changed(self) -> None:
        self._viewer.lay_out_again()
        self._viewer.post_message(SelectionChanged())

    def explain(self, ids: tuple[str, ...], reason: str | None) -> None:
        """Keep the reason why parts are left out; without one (None) they are taken again."""
        choice = self._selection.choice
        if reason is not None:
            self._choose(choice.with_reason(ids, reason))
            return
        self._explained.difference_update(ids)
        self._choose(HunkChoice(tuple(left for left in choice.left if left.id not in ids)))

    def change_reason(self) -> None:
        """Ask again why the hunk under the cursor is left out."""
        line = self._line_here()
        part = self._selection.part(line) if line is not None else None
        left = self._selection.choice.of(part) if part is not None else None
        if left is None:
            self._warn("a reason belongs to what is left; space leaves a hunk")
        else:
            self._viewer.post_message(ReasonWanted((left.id,), "this hunk", left.reason, known=True))

    def toggle_result(self) -> None:
        """Show what would be applied, or the whole diff again."""
        viewer, taking = self._viewer, self.taking
        if not self.shows_result and taking is None:
            viewer.notify("nothing is left out: what is shown is what would be applied")
            return
        self.shows_result = not self.shows_result
        if self.shows_result and taking is not None:
            viewer.show_title("3 Diff · as it would be applied")
            viewer.show_lines(DiffReader().read(taking.text))
            viewer.scroll_to(x=0, y=0, animate=False)
        else:
            viewer.show_title(f"3 {viewer.view.title}")
            viewer.show_lines(DiffReader().read(viewer.view.diff))
            self._cursor.move(self._cursor.at)
        self._cursor.draw()
        viewer.post_message(SelectionChanged())

    def result_notes(self) -> tuple[Block, ...]:
        """Return the notes above the result."""
        taking = self.taking
        some = taking is not None and taking.taken
        said = f"This is what would be applied: {taking.said}." if taking is not None and some else "All of it is left."
        return (Block(said, Tone.STRONG),)

    def edit(self, *, outside: bool) -> None:
        """Ask for another text of the hunk under the cursor."""
        line = self._line_here()
        patch = self._patch() if line is not None and line.hunk >= 0 else None
        part = self._selection.part(line) if line is not None and patch is not None else None
        if line is None or patch is None or part is None:
            self._warn("the cursor is on no hunk that waits")
            return
        what = f"{self._selection.heading(line)} · {sanitize_line(part.path, 120)}"
        self._viewer.post_message(HunkEditWanted(patch, part.id, what, outside))

    def _warn(self, text: str) -> None:
        self._viewer.notify(text, severity="warning")


def _id(key: str) -> str:
    """Return the proposal's id in a key that `proposal_key` made."""
    return key.partition(":")[0]
