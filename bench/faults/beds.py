"""Files that a diff does not fit, or that tempt to put it in the wrong place."""

from random import Random

from msgspec.structs import replace

from bench.faults.change import Change, FilePair, Texts, diff_of
from bench.faults.context import rename_in
from bench.faults.draft import Draft, read_draft
from bench.faults.oracle import results


def decoy(change: Change, random: Random) -> Change | None:
    """Return the change in files that begin with an almost equal copy of the first hunk's old lines."""
    return _with_copy(change, random, altered=True)


def twin(change: Change, random: Random) -> Change | None:
    """Return the change in files that begin with an equal copy of the first hunk's old lines."""
    return _with_copy(change, random, altered=False)


def gone(change: Change, draft: Draft, random: Random) -> Texts | None:
    """Return files that lack the old lines of one hunk; None where they stand elsewhere, too."""
    at = random.randrange(len(draft.files))
    file, drafted = change.files[at], draft.files[at]
    hunk = random.choice(drafted.hunks)
    if file.pre is None or file.post is None or len(hunk.old) < 3:
        return None
    lines = file.pre.split("\n")
    del lines[hunk.old_start - 1 : hunk.old_start - 1 + hunk.old_count]
    return _unfit(change, draft, file.path, "\n".join(lines))


def already(change: Change, draft: Draft, random: Random) -> Texts | None:
    """Return the files as they are after the change; None where the old lines can be found in them again."""
    for file, drafted in zip(change.files, draft.files, strict=True):
        if file.pre is None or file.post is None or results(file.post, drafted.hunks):
            return None
    return change.post


def _unfit(change: Change, draft: Draft, path: str, text: str) -> Texts | None:
    hunks = next(drafted.hunks for drafted in draft.files if drafted.path == path)
    return None if results(text, hunks) else {**change.pre, path: text}


def _with_copy(change: Change, random: Random, *, altered: bool) -> Change | None:
    file = change.files[0]
    if file.pre is None or file.post is None:
        return None
    hunk = read_draft(diff_of(change)).files[0].hunks[0]
    copy = list(hunk.old)
    if len(copy) < 3 or hunk.old_start == 1:
        return None
    if altered:
        at = random.randrange(len(copy))
        other = rename_in(copy[at], random)
        if other is None:
            return None
        copy[at] = other
    head = "\n".join(copy) + "\n\n"
    pair = FilePair(file.path, head + file.pre, head + file.post)
    return replace(change, files=(pair, *change.files[1:]))
