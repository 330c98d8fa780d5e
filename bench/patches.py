"""Speed of reading and applying diffs: many hunks in one file, many files, wrong line numbers, a mistyped line."""

from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.patch_reader import read_diff
from agent_workbench.core.patch.values import FileChange, FileContent, PatchBounds
from bench.figures import Figure, milliseconds, seconds_of

BOUNDS = PatchBounds(max_bytes=10_000_000, max_files=1_000)


def measure(lines: int = 5_000, hunks: int = 50, files: int = 50, rounds: int = 15) -> list[Figure]:
    """Apply diffs over files of `lines` lines with `hunks` hunks, and over `files` files with one hunk each."""
    before = _source(lines)
    edited = _edited(before, range(0, lines, max(1, lines // hunks)))
    many = render_changes([FileChange("big.py", FileContent(before), FileContent(edited))])
    moved = _source(7) + before
    one = render_changes([FileChange("big.py", FileContent(before), FileContent(_edited(before, [lines // 2])))])
    small = {f"file_{number}.py": FileContent(_source(200)) for number in range(files)}
    wide = render_changes([FileChange(p, c, FileContent(_edited(c.data, [100]))) for p, c in small.items()])
    big = {"big.py": FileContent(before)}
    long = _source(4 * lines)
    hunk = render_changes([FileChange("big.py", FileContent(long), FileContent(_edited(long, [2 * lines])))])
    mistyped = hunk.replace(f" value_{2 * lines - 1} ", f" vaule_{2 * lines - 1} ")
    return [
        milliseconds(f"{hunks} hunks in a file of {lines:,} lines", _apply(many, big, rounds)),
        milliseconds(f"one hunk in {files} files", _apply(wide, small, rounds)),
        milliseconds("one hunk, 7 lines from where it says", _apply(one, {"big.py": FileContent(moved)}, rounds)),
        milliseconds(
            f"a mistyped line of context in {4 * lines:,} lines",
            _apply(mistyped, {"big.py": FileContent(long)}, rounds),
        ),
    ]


def _apply(diff: str, contents: dict[str, FileContent], rounds: int) -> list[float]:
    return seconds_of(lambda: fit_diff(read_diff(diff, BOUNDS, contents), contents, contents), rounds)


def _source(lines: int) -> bytes:
    return "".join(f"value_{number} = compute({number}, {number * 7919 % 9973})\n" for number in range(lines)).encode()


def _edited(data: bytes, at: "range | list[int]") -> bytes:
    lines = data.splitlines(keepends=True)
    for number in at:
        lines[number] = b"changed(%d)\n" % number
    return b"".join(lines)
