"""The user's choice in a diff, by hunk or by line, and the partial diff that follows from it."""

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.patch.diff_text import patch_stat, render_patch
from agent_workbench.core.patch.hashes import file_id, patch_hash
from agent_workbench.core.patch.selection.partial_patch import leave_out
from agent_workbench.core.patch.special import special_paths
from agent_workbench.core.patch.values import HunkFate, LeftOut, Patch


class SelectablePart(Struct, frozen=True):
    """A hunk, or a file without hunks, that can be taken or left.

    `changes` are the indices of its added and removed lines.
    """

    id: str
    path: str
    changes: tuple[int, ...] = ()


def selectable_parts(patch: Patch) -> tuple[SelectablePart, ...]:
    """Return everything in a patch that can be taken or left, in its order."""
    found: list[SelectablePart] = []
    for file in patch.files:
        for hunk in file.hunks:
            found.append(SelectablePart(hunk.id, file.path, hunk.changes))
        if not file.hunks:
            found.append(SelectablePart(file_id(file), file.path))
    return tuple(found)


class HunkChoice(Struct, frozen=True):
    """The parts of a diff that are left out, with the reasons; the others are taken."""

    left: tuple[LeftOut, ...] = ()

    def of(self, each: SelectablePart) -> LeftOut | None:
        """Return the entry for this part, None if all of it is taken."""
        return next((left for left in self.left if left.id == each.id), None)

    def fate(self, each: SelectablePart) -> HunkFate:
        """Return the decision about this part: taken, left or partly taken."""
        left = self.of(each)
        if left is None:
            return HunkFate.TAKEN
        return HunkFate.PARTLY if left.lines else HunkFate.LEFT

    def leaves(self, each: SelectablePart, line: int) -> bool:
        """Return True if this line of the part is left out."""
        left = self.of(each)
        return left is not None and (not left.lines or line in left.lines)

    def toggled(self, chosen: Iterable[tuple[SelectablePart, Collection[int] | None]]) -> "HunkChoice":
        """Return the choice with these parts toggled: left out if any of their lines was taken, else taken.

        Each part comes with the indices of the lines to toggle, None for all.
        """
        meant = [(each, _meant(each, lines)) for each, lines in chosen]
        leave = any(not self.leaves(each, line) for each, lines in meant for line in lines or (0,))
        choice = self
        for each, lines in meant:
            choice = choice._with_lines(each, lines, leave=leave)
        return choice

    def _with_lines(self, each: SelectablePart, lines: frozenset[int], *, leave: bool) -> "HunkChoice":
        before = self.of(each)
        gone = frozenset(() if before is None else before.lines or each.changes)
        now = gone | lines if leave else gone - lines
        others = tuple(left for left in self.left if left.id != each.id)
        if not now and not (leave and not each.changes):
            return HunkChoice(others)
        kept = () if now.issuperset(each.changes) else tuple(sorted(now))
        return HunkChoice((*others, LeftOut(each.id, kept, before.reason if before is not None else "")))

    def with_reason(self, ids: Collection[str], reason: str) -> "HunkChoice":
        """Return the choice with this reason for the parts with these ids."""
        return HunkChoice(tuple(replace(left, reason=reason) if left.id in ids else left for left in self.left))


def _meant(each: SelectablePart, lines: Collection[int] | None) -> frozenset[int]:
    return frozenset(each.changes if lines is None else set(each.changes).intersection(lines))


class PartialDiff(Struct, frozen=True):
    """The part of a diff that a choice takes.

    `taken` of all `hunks` are taken, wholly or in part. `special` paths need a second confirmation. `text` is the
    resulting diff, `result_sha` its hash.
    """

    left: tuple[LeftOut, ...]
    taken: int
    hunks: int
    added: int
    removed: int
    special: tuple[str, ...]
    text: str
    result_sha: str

    @property
    def said(self) -> str:
        """The summary of the choice for the screen."""
        if not self.taken:
            return "nothing would be taken"
        return (
            f"taking {self.taken} of {self.hunks} hunk{'' if self.hunks == 1 else 's'}, +{self.added} −{self.removed}"
        )


def partial_diff(patch: Patch, choice: HunkChoice, special: Collection[str] = ()) -> PartialDiff:
    """Return the part that a choice takes; raise `PatchError` if the choice belongs to another patch.

    `special` are those of the whole patch.
    """
    kept = leave_out(patch, choice.left)
    text = render_patch(kept)
    all_of_it = selectable_parts(patch)
    taken = sum(choice.fate(each) is not HunkFate.LEFT for each in all_of_it)
    added, removed = patch_stat(kept)
    return PartialDiff(
        choice.left, taken, len(all_of_it), added, removed, special_paths(kept, special), text, patch_hash(text)
    )
