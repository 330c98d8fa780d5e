"""Damage to what stands before the hunks of a file, and to the order of hunks."""

from random import Random

from msgspec.structs import replace

from bench.faults.draft import Draft, FileDraft


def no_prefixes(draft: Draft, random: Random) -> Draft | None:
    """Names stand without a/ and b/."""

    def alter(file: FileDraft) -> FileDraft:
        git_lines = [line.replace(" a/", " ").replace(" b/", " ") for line in file.git_lines]
        names = [line.replace("--- a/", "--- ").replace("+++ b/", "+++ ") for line in file.names]
        return replace(file, git_lines=tuple(git_lines), names=tuple(names))

    return draft.each_file(alter)


def no_git_lines(draft: Draft, random: Random) -> Draft | None:
    """Every file has --- and +++ alone."""
    return draft.each_file(lambda file: replace(file, git_lines=()))


def timestamps(draft: Draft, random: Random) -> Draft | None:
    """A time stands behind every name, as `diff -u` writes it."""
    times = ["2024-02-29 23:59:58.123456789 +0100", "2026-01-02 03:04:05", "Mon Jan  2 15:04:05 2006"]
    time = random.choice(times)
    return draft.each_file(
        lambda file: replace(
            file, names=tuple(line if "/dev/null" in line else f"{line}\t{time}" for line in file.names)
        )
    )


def hunks_swapped(draft: Draft, random: Random) -> Draft | None:
    """The hunks of each file stand in another order; not where that would tell another story of equal old lines."""
    if all(len(file.hunks) < 2 for file in draft.files):
        return None
    if any(len({tuple(hunk.old) for hunk in file.hunks}) < len(file.hunks) for file in draft.files):
        return None

    def alter(file: FileDraft) -> FileDraft:
        hunks = list(file.hunks)
        while len(hunks) > 1 and tuple(hunks) == file.hunks:
            random.shuffle(hunks)
        return replace(file, hunks=tuple(hunks))

    return draft.each_file(alter)


def split_sections(draft: Draft, random: Random) -> Draft | None:
    """A file has two sections, each with a part of its hunks."""
    if all(len(file.hunks) < 2 for file in draft.files):
        return None
    files: list[FileDraft] = []
    for file in draft.files:
        at = random.randint(1, len(file.hunks) - 1) if len(file.hunks) > 1 else len(file.hunks)
        files += [replace(file, hunks=part) for part in (file.hunks[:at], file.hunks[at:]) if part]
    return Draft(tuple(files))
