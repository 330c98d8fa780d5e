"""The diff pane: of what waits, hunks and lines are taken or left, explained and edited."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from textual.message import Message

from agent_workbench.core.patch.selection.choice import HunkChoice, Taking
from agent_workbench.core.patch.values import Patch
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.diff.cursor import DiffPointing
from agent_workbench.tui.panes.diff.hunk_selection import DiffParts, parsed
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.diff.shown_diff import DiffReader
from agent_workbench.views.gate.diff_pane import DiffView

PARSED_AT_ONCE_CHARS = 50_000
_USELESS_IN_RESULT = frozenset({"take_hunk", "select_lines", "why_left", "edit_hunk"})


class DiffPane(DiffPointing):
    """Shows a `DiffView`; of a diff that waits, hunks and lines can be left. Posts what the user wants with them."""

    BINDINGS = bindings(Scope.DIFF, Scope.SCROLL)
    scope = Scope.DIFF

    class Chosen(Message):
        """Other hunks or lines are taken or shown now."""

    @dataclass
    class LeftUnexplained(Message):
        """These were left for the first time, or (`known`) their reason is to be another one: ask why."""

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
        self._parts = DiffParts()
        self._asked: set[str] = set()
        self._shows_result = False
        super().__init__()

    @property
    def marks(self) -> bool:
        return self._view.by_hunk and not self._shows_result

    @property
    def counts(self) -> bool:
        return super().counts and not self._shows_result

    @property
    def useless(self) -> frozenset[str]:
        """The actions that can do nothing for what is shown, so that nobody offers them."""
        return _USELESS_IN_RESULT if self._shows_result else frozenset()

    @property
    def labels(self) -> Mapping[str, str]:
        """The words for actions that do something else than usual now."""
        return {"result": "all of it"} if self._shows_result else {}

    @property
    def taking(self) -> Taking | None:
        """What would be applied, if anything of the diff that waits is left."""
        return self._parts.taking

    def is_edited_by(self, view: DiffView) -> bool:
        """Whether this is what is shown with another content, so that the user goes on with it where they are."""
        shown = self._view.proposal
        return view.by_hunk and not view.taken and shown != view.proposal and _id(shown) == _id(view.proposal)

    def show(self, view: DiffView) -> None:
        new = view.key != self._view.key
        edited = self.is_edited_by(view)
        before, hunk = (self._parts, self._hunk_pointed_to()) if edited else (DiffParts(), -1)
        if new:
            self._parts, self._shows_result = DiffParts(), False
            self._asked = set()
            self._at = self._anchor = -1
        elif self._shows_result:
            return
        super().show(view)
        if new and view.by_hunk:
            self._parts = DiffParts(view.diff, self._shown)
            self._carry(before)
            self._point_to(next(iter(self.changes()), 0))
            if edited:
                self._return_to(hunk)
            if len(view.diff) > PARSED_AT_ONCE_CHARS:
                self.run_worker(self._take_apart(self._parts, view.diff), group="parse", exclusive=True)

    def _carry(self, before: DiffParts) -> None:
        """Choose what was chosen before an edit, and say which reasons have nothing left to be about."""
        lost = self._parts.carry(before)
        self._asked = {left.id for left in self._parts.choice.left}
        if lost:
            self.notify(f"what was left out is no longer in the diff: {sanitize_line('; '.join(lost))}", markup=False)

    def _hunk_pointed_to(self) -> int:
        lines = DiffReader().read(self._view.diff).lines if self._shows_result else self._shown.lines
        return lines[self._at].hunk if 0 <= self._at < len(lines) else -1

    def _return_to(self, hunk: int) -> None:
        """After an edit stay where the user was, and lay out what was carried over."""
        self.lay_out_again()
        self.post_message(self.Chosen())
        line = next((at for at, each in enumerate(self._shown.lines) if each.hunk == hunk >= 0), -1)
        self.call_after_refresh(self._to_change, line)

    async def _take_apart(self, parts: DiffParts, diff: str) -> None:
        """Take a long diff apart before anybody asks for its parts."""
        parts.take_apart(await asyncio.to_thread(parsed, diff))

    def _patch(self) -> Patch | None:
        """Return the diff taken apart; say so where that cannot be."""
        if self._parts.patch is None:
            self.notify("this diff cannot be taken apart: approve, edit or reject it as a whole", severity="warning")
        return self._parts.patch

    def notes(self) -> tuple[Block, ...]:
        if self._shows_result and self.taking is not None:
            said = f"This is what would be applied: {self.taking.said}." if self.taking.taken else "All of it is left."
            return (Block(said, Tone.STRONG),)
        return super().notes()

    def head_text(self, number: int) -> str:
        line = self._shown.lines[number]
        return self.fitted(number, f"{self._parts.said(line)}  " if self.marks and line.tone is Tone.HUNK else "")

    def mark_of(self, number: int) -> str:
        return self._parts.mark(self._shown.lines[number])

    def action_take_hunk(self) -> None:
        """Take or leave the hunk under the cursor, or the lines of the range."""
        if self._shows_result:
            self.action_result()
            return
        if not self._points or self._patch() is None:
            return
        parts = self._parts
        chosen = parts.among(self.selected()) if self._anchor >= 0 else parts.at(self._shown.lines[self._at])
        if not chosen:
            self.notify("nothing here is added or removed", severity="warning")
            return
        self._anchor = -1
        self._choose(parts.choice.turned(chosen))
        new = tuple(part.id for part, _ in chosen if parts.choice.of(part) is not None and part.id not in self._asked)
        if new:
            self._asked.update(new)
            what = "this hunk" if len(new) == 1 else f"these {len(new)} hunks"
            self.post_message(self.LeftUnexplained(new, what))

    def _choose(self, choice: HunkChoice) -> None:
        self._parts.choose(choice)
        self.lay_out_again()
        self.post_message(self.Chosen())

    def explain(self, ids: tuple[str, ...], reason: str | None) -> None:
        """Keep why these are left; without a word (None) they are taken again."""
        choice = self._parts.choice
        if reason is not None:
            self._choose(choice.explained(ids, reason))
            return
        self._asked.difference_update(ids)
        self._choose(HunkChoice(tuple(left for left in choice.left if left.id not in ids)))

    def action_why_left(self) -> None:
        """Change the reason of what is left under the cursor."""
        part = self._parts.part(self._shown.lines[self._at]) if self._points else None
        left = self._parts.choice.of(part) if part is not None else None
        if left is None:
            self.notify("a reason belongs to what is left; space leaves a hunk", severity="warning")
        else:
            self.post_message(self.LeftUnexplained((left.id,), "this hunk", left.reason, known=True))

    def action_result(self) -> None:
        """Show what would be applied, or the whole diff again."""
        if not self._shows_result and self.taking is None:
            self.notify("nothing is left out: what is shown is what would be applied")
            return
        self._shows_result = not self._shows_result
        if self._shows_result and self.taking is not None:
            self.show_title("3 Diff · as it would be applied")
            self.show_lines(DiffReader().read(self.taking.text))
            self.scroll_to(x=0, y=0, animate=False)
        else:
            self.show_title(f"3 {self._view.title}")
            self.show_lines(DiffReader().read(self._view.diff))
            self._move(self._at)
        self._pointer_moved()
        self.post_message(self.Chosen())

    def show_unseen(self) -> None:
        if self._shows_result:
            self.action_result()
        super().show_unseen()

    def action_edit_hunk(self, outside: bool = False) -> None:
        """Change the text of the hunk under the cursor."""
        line = self._shown.lines[self._at] if self._points else None
        patch = self._patch() if line is not None and line.hunk >= 0 else None
        part = self._parts.part(line) if line is not None and patch is not None else None
        if part is None or patch is None or line is None:
            self.notify("the cursor is on no hunk that waits", severity="warning")
            return
        what = f"{self._parts.said(line)} · {sanitize_line(part.path, 120)}"
        self.post_message(self.HunkEditWanted(patch, part.id, what, outside))

    def action_edit_hunk_outside(self) -> None:
        self.action_edit_hunk(outside=True)


def _id(key: str) -> str:
    """Return the id in what `proposal_key` made."""
    return key.partition(":")[0]
