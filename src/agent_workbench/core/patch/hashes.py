"""SHA-256 ids of hunks, file contents and diffs, as decisions and the journal name them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from agent_workbench.core.patch.values import FileContent, FilePatch, HunkLine, LineKind, Patch


def hunk_id(path: str, lines: Iterable[HunkLine], occurrence: int = 0) -> str:
    """Return the SHA-256 (hex) of a hunk's path, old lines and new lines, without its line numbers.

    `occurrence` is the number of equal hunks before it in the same file, so that equal hunks get different ids.
    """
    each = tuple(lines)
    parts = [path, *([str(occurrence)] if occurrence else [])]
    parts += [_marked("-", line) for line in each if line.kind is not LineKind.ADDED]
    parts += [_marked("+", line) for line in each if line.kind is not LineKind.REMOVED]
    return _digest("\n".join(parts))


def hunk_ids(path: str, hunks: Iterable[Iterable[HunkLine]]) -> Iterator[str]:
    """Yield the id of each hunk of a file. Each hunk is given by its lines; equal hunks are numbered."""
    seen: Counter[str] = Counter()
    for lines in map(tuple, hunks):
        plain = hunk_id(path, lines)
        yield hunk_id(path, lines, seen[plain]) if seen[plain] else plain
        seen[plain] += 1


def file_id(file: FilePatch) -> str:
    """Return the SHA-256 (hex) that names a change without hunks: a rename, a mode, an empty file."""
    mode = "" if file.mode is None else f"{file.mode:o}"
    return _digest("\n".join(("file", file.operation, file.old_path, file.path, mode)))


def selectable_ids(patch: Patch) -> tuple[str, ...]:
    """Return the ids of everything in a patch that can be taken or left: its hunks, and its files without hunks."""
    return tuple(each for file in patch.files for each in (tuple(hunk.id for hunk in file.hunks) or (file_id(file),)))


def content_hash(content: FileContent | None) -> str:
    """Return the SHA-256 (hex) of a file's bytes, or the empty string if there is no file."""
    return "" if content is None else hashlib.sha256(content.data).hexdigest()


def patch_hash(text: str) -> str:
    """Return the SHA-256 (hex) of a diff's text in UTF-8."""
    return _digest(text)


def _marked(sign: str, line: HunkLine) -> str:
    return f"{sign}{line.text}" if line.newline else f"{sign}{line.text}\n\\"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
