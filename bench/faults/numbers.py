"""Damage to the numbers of hunks: how many lines, and where."""

from random import Random

from msgspec.structs import replace

from bench.faults.draft import Draft, Hunk


def wrong_counts(draft: Draft, random: Random) -> Draft | None:
    """Every hunk's counts are off, as of one who does not count."""

    def alter(hunk: Hunk) -> Hunk:
        old, new = hunk.old_count, hunk.new_count
        while (old, new) == (hunk.old_count, hunk.new_count):
            old, new = (max(0, count + random.randint(-3, 3)) for count in (hunk.old_count, hunk.new_count))
        return replace(hunk, old_count=old, new_count=new)

    return draft.each_hunk(alter) if draft.modified() else None


def shifted_little(draft: Draft, random: Random) -> Draft | None:
    """Every hunk begins one to three lines from where it says."""
    return _shifted(draft, random, 1, 3)


def shifted_far(draft: Draft, random: Random) -> Draft | None:
    """Every hunk begins 20 to 300 lines from where it says."""
    return _shifted(draft, random, 20, 300)


def all_at_one(draft: Draft, random: Random) -> Draft | None:
    """Every hunk says that it begins at line 1."""
    if not draft.modified() or all(hunk.old_start == 1 for hunk in draft.hunks()):
        return None
    return draft.each_hunk(lambda hunk: replace(hunk, old_start=1, new_start=1))


def no_numbers(draft: Draft, random: Random) -> Draft | None:
    """No hunk has numbers at all."""
    header = random.choice(["@@ @@", "@@", "@@ ... @@", "@@ -,+ @@"])
    return draft.each_hunk(lambda hunk: replace(hunk, header=header)) if draft.modified() else None


def _shifted(draft: Draft, random: Random, least: int, most: int) -> Draft | None:
    def alter(hunk: Hunk) -> Hunk:
        by = random.randint(least, most) * random.choice([-1, 1])
        if hunk.old_start + by < 1:
            by = abs(by)
        return replace(hunk, old_start=hunk.old_start + by, new_start=max(1, hunk.new_start + by))

    return draft.each_hunk(alter) if draft.modified() else None
