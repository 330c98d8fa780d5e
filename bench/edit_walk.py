"""Plain second implementation of applying a diff: the judge of `bench.edits`.

It shares nothing with the workbench's own applier, and nothing is forgiven: old lines stand in one place of the file,
behind those of the hunk before, or the diff is none that may have been written.
"""

from collections.abc import Mapping

MARKER = "\\ No newline at end of file"


class BrokenPromise(Exception):
    """A diff does not keep to what its grammar promises."""


def replay(diff: str, files: Mapping[str, bytes], *, ended: bool = True) -> dict[str, bytes | None]:
    """Return the new content of each file in the diff, None for a removed one; raise `BrokenPromise`.

    One that did not end was cut behind a line; the marker that should follow that line may be missing.
    """
    if not diff.endswith("\n"):
        raise BrokenPromise("the last line has no end")
    lines = diff.split("\n")[:-1]
    after: dict[str, bytes | None] = {}
    at = 0
    while at < len(lines):
        if not _begins(lines, at):
            raise BrokenPromise(f"line {at + 1} is no header: {lines[at]!r}")
        end = at + 2
        while end < len(lines) and not _begins(lines, end):
            end += 1
        old, new = lines[at].split(" ", 1)[1], lines[at + 1].split(" ", 1)[1]
        moved = lines[at].startswith("rename ")
        if moved:
            old, new = f"a/{old.removeprefix('from ')}", f"b/{new.removeprefix('to ')}"
        name = (new if old == "/dev/null" else old)[2:]
        made = [new[2:]] if moved or old == "/dev/null" else []
        if after.keys() & {name, *made}:
            raise BrokenPromise(f"{name} is named twice")
        if {each.lower() for each in made} & {each.lower() for each in (*files, *after)}:
            raise BrokenPromise(f"{made[0]} is there already")
        before = b"" if old == "/dev/null" else files[name]
        changed = _changed(before, _hunks(lines[at + 2 : end]), forgiving=not ended and end == len(lines))
        if new == "/dev/null" and changed:
            raise BrokenPromise(f"{name} is removed with lines left")
        after[name] = None if new == "/dev/null" or moved else changed
        if moved:
            after[new[2:]] = changed
        at = end
    return after


def _begins(lines: list[str], at: int) -> bool:
    first, second = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
    plain = first.startswith("--- ") and second.startswith("+++ ")
    return plain or (first.startswith("rename from ") and second.startswith("rename to "))


def _hunks(lines: list[str]) -> list[list[str]]:
    hunks: list[list[str]] = []
    for line in lines:
        if line.startswith("@@"):
            hunks.append([])
        else:
            hunks[-1].append(line)
    return hunks


def _changed(before: bytes, hunks: list[list[str]], *, forgiving: bool) -> bytes:
    pieces = before.split(b"\n")
    ends = [b"\n"] * (len(pieces) - 1) + [b""]
    if not pieces[-1]:
        pieces, ends = pieces[:-1], ends[:-1]
    for at, piece in enumerate(pieces):
        if piece.endswith(b"\r") and ends[at]:
            pieces[at], ends[at] = piece[:-1], b"\r\n"
    common = b"\r\n" if ends and all(end != b"\n" for end in ends) and b"\r\n" in ends else b"\n"
    out: list[bytes] = []
    done = 0
    for hunk in hunks:
        old = [line[1:].encode() for line in hunk if line[:1] in {"", " ", "-"}]
        found = [at for at in range(len(pieces) - len(old) + 1) if pieces[at : at + len(old)] == old]
        if not old and pieces:
            raise BrokenPromise("a hunk without old lines in a file that has some")
        if old and (len(found) != 1 or found[0] < done):
            raise BrokenPromise(f"old lines stand at {found}, behind line {done}: {old[:3]}")
        start = found[0] if old else 0
        out += [piece + end for piece, end in zip(pieces[done:start], ends[done:start], strict=True)]
        cut = forgiving and hunk is hunks[-1]
        if cut and hunk[-1][:1] in {" ", "-"} and start + len(old) == len(ends) and not ends[-1]:
            hunk.append(MARKER)
        out += _replaced(hunk, pieces, ends, start, common)
        done = start + len(old)
    out += [piece + end for piece, end in zip(pieces[done:], ends[done:], strict=True)]
    return b"".join(out)


def _replaced(hunk: list[str], pieces: list[bytes], ends: list[bytes], at: int, common: bytes) -> list[bytes]:
    """Return the new lines of a hunk; an added one ends as the line before it in the hunk, or the first one, does."""
    out: list[bytes] = []
    first = ends[at] if at < len(ends) else b""
    near = first or common
    for number, line in enumerate(hunk):
        marked = hunk[number + 1 : number + 2] == [MARKER]
        if line.startswith("+"):
            out.append(line[1:].encode() + (b"" if marked else near))
        elif line != MARKER:
            if marked != (ends[at] == b""):
                raise BrokenPromise(f"the marker of a missing line feed is in the wrong place: {line!r}")
            if not line.startswith("-"):
                out.append(pieces[at] + ends[at])
            near = ends[at] or near
            at += 1
    return out
