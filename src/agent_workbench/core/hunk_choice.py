"""Text about the hunks of a diff that a user took and left out."""

from collections.abc import Sequence

from agent_workbench.core.patch import HunkFate
from agent_workbench.core.proposals import HunkVerdict


def hunk_choice_summary(hunks: Sequence[HunkVerdict]) -> str:
    """Return a summary such as `took 2 of 3 hunks, 1 of them in part`."""
    partly = sum(hunk.fate is HunkFate.PARTLY for hunk in hunks)
    taken = sum(hunk.fate is not HunkFate.LEFT for hunk in hunks)
    of_them = "" if not partly else " in part" if partly == taken else f", {partly} of them in part"
    return f"took {taken} of {len(hunks)} hunk{'' if len(hunks) == 1 else 's'}{of_them}"


def describe_hunk_choice(hunks: Sequence[HunkVerdict]) -> str:
    """Return in one line how much was taken, what was left out, and why."""
    return "; ".join((hunk_choice_summary(hunks), *map(describe_left_out, left_out_hunks(hunks))))


def left_out_hunks(hunks: Sequence[HunkVerdict]) -> tuple[HunkVerdict, ...]:
    """Return the hunks of which something was left out."""
    return tuple(hunk for hunk in hunks if hunk.fate in {HunkFate.LEFT, HunkFate.PARTLY})


def hunk_location(hunk: HunkVerdict) -> str:
    """Return a hunk's location as `path:line`, or the path alone if it has no lines."""
    return f"{hunk.path}:{hunk.line}" if hunk.line else hunk.path


def describe_left_out(hunk: HunkVerdict) -> str:
    """Return in one line what was left out of a hunk and why."""
    what = f"{len(hunk.left)} line{'' if len(hunk.left) == 1 else 's'} left out" if hunk.left else "left out"
    return f"{hunk_location(hunk)} {what}{f': {hunk.reason}' if hunk.reason else ''}"
