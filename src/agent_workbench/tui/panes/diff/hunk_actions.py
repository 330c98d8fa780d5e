"""Key actions on hunks in the diff pane: leave out, give a reason, edit, show the result."""

import asyncio

from agent_workbench.core.patch.selection.choice import HunkChoice, PartialDiff
from agent_workbench.core.patch.values import Patch
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.panes.diff.cursor import DiffCursor
from agent_workbench.tui.panes.diff.hunk_selection import HunkSelection, parsed
from agent_workbench.tui.panes.diff.messages import HunkEditWanted, ReasonWanted, SelectionChanged
from agent_workbench.tui.panes.diff.rendering import LineMarks
from agent_workbench.tui.panes.diff.viewer import DiffViewer
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.diff.diff_document import DiffReader
from agent_workbench.views.diff.lines import DiffLine
from agent_workbench.views.gate.diff_pane import DiffView

PARSED_AT_ONCE_CHARS = 50_000
"""A longer diff from a journal is parsed in a thread before its parts are asked for."""


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
