"""The diff pane: a cursor on the diff that waits, and what of it is taken or left."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from textual import events
from textual.message import Message

from agent_workbench.core.errors import PatchError
from agent_workbench.core.inert import inert_line
from agent_workbench.core.patch.choice import HunkChoice, Takeable, Taking, takeables, taking
from agent_workbench.core.patch.parse import parse_patch
from agent_workbench.core.patch.values import Patch, PatchBounds
from agent_workbench.core.proposals import HunkFate
from agent_workbench.core.views.diff import DiffView
from agent_workbench.core.views.diff_lines import DiffLine
from agent_workbench.core.views.shown_diff import DiffReader
from agent_workbench.core.views.tones import Block, Tone
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.diff.looking import DiffLooking
from agent_workbench.tui.panes.diff.rows import LEFT, PARTLY, SIGNS, TAKEN

ANY_SIZE = PatchBounds(max_bytes=1_000_000_000, max_files=1_000_000)
PARSED_AT_ONCE_CHARS = 50_000
MARGIN_ROWS = 2
FATES = {HunkFate.TAKEN: TAKEN, HunkFate.PARTLY: PARTLY, HunkFate.LEFT: LEFT}


class DiffPane(DiffLooking):
    """Shows a `DiffView`; of a diff that waits, hunks and lines can be left. Posts what the user wants with them."""

    BINDINGS = bindings(Scope.DIFF, Scope.SCROLL)
    scope = Scope.DIFF

    class Chosen(Message):
        """Other hunks or lines are taken now."""

    @dataclass
    class LeftUnexplained(Message):
        """These were left for the first time, or their reason is to be another one: ask why."""

        ids: tuple[str, ...]
        what: str
        reason: str = ""
        known: bool = False

    @dataclass
    class HunkEditWanted(Message):
        """The user wants to change a hunk; `outside` in an editor of his own."""

        patch: Patch
        hunk: str
        what: str
        outside: bool = False

    def __init__(self) -> None:
        super().__init__()
        self._patch: Patch | None = None
        self._takeables: tuple[Takeable, ...] = ()
        self._choice = HunkChoice()
        self._taking: Taking | None = None
        self._asked: set[str] = set()
        self._at = -1
        self._anchor = -1
        self._shows_result = False

    # What is shown.

    @property
    def marks(self) -> bool:
        return self._view.by_hunk and not self._shows_result

    @property
    def counts(self) -> bool:
        return super().counts and not self._shows_result

    @property
    def taking(self) -> Taking | None:
        """What would be applied, if anything of the diff that waits is left."""
        return self._taking if self._choice.left else None

    def show(self, view: DiffView) -> None:
        if view.key != self._view.key:
            self._choice, self._taking, self._asked = HunkChoice(), None, set()
            self._patch, self._takeables = None, ()
            self._at = self._anchor = -1
            self._shows_result = False
        elif self._shows_result and view.diff == self._view.diff:
            self._view = view
            return
        super().show(view)
        if view.by_hunk and self._at < 0:
            self._point_to(next(iter(self.changes()), 0))
            if len(view.diff) > PARSED_AT_ONCE_CHARS and self._patch is None:
                self.run_worker(self._parse_behind(view), group="parse", exclusive=True)

    async def _parse_behind(self, view: DiffView) -> None:
        patch = await asyncio.to_thread(_parsed, view.diff)
        if view.key == self._view.key and self._patch is None:
            self._take_patch(patch)

    def _take_patch(self, patch: Patch | None) -> None:
        self._takeables = takeables(patch) if patch is not None else ()
        headers = self._shown.hunks + sum(not head.hunks for head in self._shown.files)
        self._patch = patch if len(self._takeables) == headers else None

    def _known_patch(self) -> Patch | None:
        """Return the diff taken apart; say so where that cannot be."""
        if self._patch is None:
            self._take_patch(_parsed(self._view.diff))
        if self._patch is None:
            self.notify("this diff cannot be taken apart: approve, edit or reject it as a whole", severity="warning")
        return self._patch

    def notes(self) -> tuple[Block, ...]:
        if not self._shows_result:
            return super().notes()
        said = self._taking.said if self._taking is not None else ""
        return (Block(f"This is what would be applied: {said}.", Tone.STRONG),)

    def head_text(self, number: int) -> str:
        line = self._shown.lines[number]
        if line.tone is not Tone.HUNK or not self._view.by_hunk or self._shows_result:
            return line.text
        return f"{self._said_of(line)}  {line.text}"

    def _said_of(self, line: DiffLine) -> str:
        each = self._takeable(line)
        said = f"hunk {line.hunk + 1} of {self._shown.hunks}"
        left = self._choice.of(each) if each is not None else None
        if each is None or left is None:
            return said
        many = len(left.lines) or len(each.changes)
        of = f"{many} of {len(each.changes)} lines left" if left.lines else "left"
        return f"{said} · {of}: {inert_line(left.reason, 200)}" if left.reason else f"{said} · {of}"

    def mark_of(self, number: int) -> str:
        line = self._shown.lines[number]
        if line.tone is Tone.HUNK or (line.tone is Tone.FILE and not self._hunks_of(line)):
            each = self._takeable(line)
            return TAKEN if each is None else FATES[self._choice.fate(each)]
        if line.at < 0 or line.tone not in SIGNS:
            return ""
        each = self._takeable(line) if self._choice.left else None
        return LEFT if each is not None and self._choice.leaves(each, line.at) else TAKEN

    def _hunks_of(self, line: DiffLine) -> int:
        return self._shown.files[line.file].hunks if line.file >= 0 else 1

    def _takeable(self, line: DiffLine) -> Takeable | None:
        """Return what is decided on at a line, None where the diff was not taken apart yet."""
        if line.file < 0:
            return None
        before = sum(not head.hunks for head in self._shown.files[: line.file])
        number = line.hunk if line.hunk >= 0 else self._shown.files[line.file].first_hunk
        place = number + before
        return self._takeables[place] if place < len(self._takeables) else None

    # The cursor.

    @property
    def _points(self) -> bool:
        return self.marks and self.has_focus

    def pointed(self, number: int) -> bool:
        if not self._points:
            return False
        first, last = self._range()
        partner = self._layout.partner.get(number, number) if self._layout.look.split else number
        return first <= number <= last or first <= partner <= last

    def _range(self) -> tuple[int, int]:
        anchor = self._at if self._anchor < 0 else self._anchor
        return min(anchor, self._at), max(anchor, self._at)

    def _point_to(self, line: int) -> None:
        self._at = self._layout.shown_line(line) if self._shown.lines else -1
        self._pointer_moved()

    def _pointer_moved(self) -> None:
        self.cursor = self._at if self._points else -1
        self._drawn.forget()
        self.refresh()

    def on_focus(self) -> None:
        self._pointer_moved()

    def on_blur(self) -> None:
        self._anchor = -1
        self._pointer_moved()

    def on_click(self, event: events.Click) -> None:
        """Point to what was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and self.marks:
            line = self.line_of(self.scroll_offset.y + offset.y)
            self._point_to(min(line, len(self._shown.lines) - 1))

    def _move(self, to: int) -> None:
        """Point to another line and bring it on screen."""
        self._point_to(max(0, min(to, len(self._shown.lines) - 1)))
        row, top, height = self.row_of(self._at), self.scroll_offset.y, self.room.height
        last = row + self._layout.height(self._at) - 1
        if self._at == 0:
            self.scroll_to(y=0, animate=False)
        elif row < top + MARGIN_ROWS:
            self.scroll_to(y=row - MARGIN_ROWS, animate=False)
        elif last > top + height - 1 - MARGIN_ROWS:
            self.scroll_to(y=min(row, last - height + 1 + MARGIN_ROWS), animate=False)

    def action_line_down(self) -> None:
        if not self._points:
            super().action_line_down()
            return
        row = self.row_of(self._at) - len(self.rows) + self._layout.height(self._at)
        if row < self._layout.row_count:
            self._move(self._layout.line_at(row)[0])

    def action_line_up(self) -> None:
        if not self._points:
            super().action_line_up()
            return
        row = self.row_of(self._at) - len(self.rows)
        self._move(self._layout.line_at(row - 1)[0] if row > 0 else 0)

    def action_page_down(self) -> None:
        super().action_page_down()
        self._point_into_view()

    def action_page_up(self) -> None:
        super().action_page_up()
        self._point_into_view()

    def action_to_top(self) -> None:
        super().action_to_top()
        self._point_into_view()

    def action_to_bottom(self) -> None:
        super().action_to_bottom()
        self._point_into_view()

    def _point_into_view(self) -> None:
        """Keep the cursor on screen when the pane was scrolled."""
        if self._points:
            top = self.scroll_target_y
            row = min(max(self.row_of(self._at), top), top + self.room.height - 1)
            self._point_to(min(self.line_of(int(row)), len(self._shown.lines) - 1))

    def action_next_change(self) -> None:
        if self._points:
            self._to_change(next((line for line in self.changes() if line > self._at), -1))
        else:
            super().action_next_change()

    def action_previous_change(self) -> None:
        if self._points:
            self._to_change(next((line for line in reversed(self.changes()) if line < self._at), -1))
        else:
            super().action_previous_change()

    def _to_change(self, line: int) -> None:
        """Point to the header of a hunk, and show as much of that hunk as there is room for."""
        if line < 0:
            return
        self._move(line)
        end = line
        while end + 1 < len(self._shown.lines) and self._shown.lines[end + 1].hunk == self._shown.lines[line].hunk:
            end += 1
        row, last = self.row_of(line), self.row_of(end) + self._layout.height(end) - 1
        if last > self.scroll_target_y + self.room.height - 1:
            self.scroll_to(y=min(row - 1, last - self.room.height + 1), animate=False)

    def action_fold(self) -> None:
        if self._points:
            self.fold_at(self._at)
            self._move(self._at)
        else:
            super().action_fold()

    # What is taken.

    def action_select_lines(self) -> None:
        if self._points:
            self._anchor = self._at if self._anchor < 0 else -1
            self._pointer_moved()

    def action_take_hunk(self) -> None:
        """Take or leave the hunk under the cursor, or the lines of the range."""
        if self._shows_result:
            self.action_result()
            return
        if not self._points or self._known_patch() is None:
            return
        chosen = list(self._range_chosen() if self._anchor >= 0 else self._hunk_chosen())
        if not chosen:
            self.notify("nothing here is added or removed", severity="warning")
            return
        self._anchor = -1
        self._choose(self._choice.turned(chosen))
        new = [each for each, _ in chosen if self._choice.of(each) is not None and each.id not in self._asked]
        if new:
            self._asked.update(each.id for each in new)
            what = "this hunk" if len(new) == 1 else f"these {len(new)} hunks"
            self.post_message(self.LeftUnexplained(tuple(each.id for each in new), what))

    def _hunk_chosen(self) -> Iterable[tuple[Takeable, None]]:
        line = self._shown.lines[self._at]
        if line.hunk >= 0 or not self._hunks_of(line):
            each = self._takeable(line)
            return [(each, None)] if each is not None else []
        return [(each, None) for each in self._of_file(line.file)]

    def _of_file(self, file: int) -> list[Takeable]:
        headers = (line for line in self._shown.lines if line.tone is Tone.HUNK and line.file == file)
        return [each for line in headers if (each := self._takeable(line)) is not None]

    def _range_chosen(self) -> Iterable[tuple[Takeable, set[int]]]:
        first, last = self._range()
        meant: dict[Takeable, set[int]] = {}
        for number, line in enumerate(self._shown.lines):
            if line.tone in SIGNS and line.at >= 0 and (first <= number <= last or self.pointed(number)):
                each = self._takeable(line)
                if each is not None:
                    meant.setdefault(each, set()).add(line.at)
        return meant.items()

    def _choose(self, choice: HunkChoice) -> None:
        self._choice = choice
        self._taking = taking(self._patch, choice) if self._patch is not None and choice.left else None
        self.lay_out_again()
        self.post_message(self.Chosen())

    def explain(self, ids: tuple[str, ...], reason: str | None) -> None:
        """Keep why these are left; without a word (None) they are taken again."""
        if reason is not None:
            self._choose(self._choice.explained(ids, reason))
            return
        self._asked.difference_update(ids)
        self._choose(HunkChoice(tuple(left for left in self._choice.left if left.id not in ids)))

    def action_why_left(self) -> None:
        """Change the reason of what is left under the cursor."""
        each = self._takeable(self._shown.lines[self._at]) if self._points else None
        left = self._choice.of(each) if each is not None else None
        if left is None:
            self.notify("a reason belongs to what is left; space leaves a hunk", severity="warning")
        else:
            self.post_message(self.LeftUnexplained((left.id,), "this hunk", left.reason, known=True))

    def action_result(self) -> None:
        """Show what would be applied, or the whole diff again."""
        if self._shows_result:
            self._shows_result = False
            self.show_lines(self._reader.read(self._view.diff))
            self._move(self._at)
        elif self._taking is None:
            self.notify("nothing is left out: what is shown is what would be applied")
        else:
            self._shows_result = True
            self.show_lines(DiffReader().read(self._taking.text))
            self.scroll_to(x=0, y=0, animate=False)
        self.show_title(f"3 {'Diff · as it would be applied' if self._shows_result else self._view.title}")
        self._pointer_moved()

    def show_unseen(self) -> None:
        if self._shows_result:
            self.action_result()
        super().show_unseen()

    def action_edit_hunk(self, outside: bool = False) -> None:
        """Change the text of the hunk under the cursor."""
        line = self._shown.lines[self._at] if self._points else None
        patch = self._known_patch() if line is not None and line.hunk >= 0 else None
        each = self._takeable(line) if line is not None and patch is not None else None
        if each is None or patch is None or line is None:
            self.notify("the cursor is on no hunk that waits", severity="warning")
            return
        what = f"hunk {line.hunk + 1} of {self._shown.hunks} · {inert_line(each.path, 120)}"
        self.post_message(self.HunkEditWanted(patch, each.id, what, outside))

    def action_edit_hunk_outside(self) -> None:
        self.action_edit_hunk(outside=True)


def _parsed(diff: str) -> Patch | None:
    try:
        return parse_patch(diff, ANY_SIZE)
    except PatchError:
        return None
