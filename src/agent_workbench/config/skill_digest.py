"""The content of a folder of skills as one digest, so that trust in it ends when anything in it changes."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from agent_workbench.core.errors import TrustError
from agent_workbench.core.text.amounts import counted_text

MAX_FILES = 2000
MAX_TOTAL_BYTES = 50_000_000
INSTALLED = frozenset({"venv", ".venv", "__pycache__"})
"""Folders of a skill that tools fill, with thousands of files: the workbench neither reads nor runs what is there."""


def digest_folder(root: Path, folder: str) -> str:
    """Return how many files there are under `root/folder` and the digest of them all, empty where there are none.

    Links are followed, as whoever reads a skill follows them: what counts is what would be read. Names, contents and
    the right to execute are in the digest; what is `INSTALLED` in a skill is not. Raises `TrustError` for more than
    `MAX_FILES` or `MAX_TOTAL_BYTES`.
    """
    digest = hashlib.sha256()
    count = total = 0
    try:
        # A folder of one of these names beside the skills may be a skill itself.
        for path in _walk(root / folder, frozenset(), left_out=frozenset()):
            count += 1
            content, size = _content(path, MAX_TOTAL_BYTES - total)
            total += size
            if count > MAX_FILES or total > MAX_TOTAL_BYTES:
                raise TrustError(
                    f"{folder} holds more than {MAX_FILES} files or {MAX_TOTAL_BYTES} bytes",
                    advice="point skills.dirs at the folder that holds skills alone",
                )
            digest.update(f"{len(str(path))} {path} {content}\n".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise TrustError(f"skill files cannot be read: {error.filename}: {error.strerror}") from error
    return f"{counted_text(count, 'file')}, sha256 {digest.hexdigest()}" if count else ""


def _walk(folder: Path, above: frozenset[tuple[int, int]], left_out: frozenset[str] = INSTALLED) -> Iterator[Path]:
    if not folder.is_dir():
        return
    facts = folder.stat()
    here = (facts.st_dev, facts.st_ino)
    if here in above:
        return
    for path in sorted(folder.iterdir()):
        if path.name in left_out and path.is_dir():
            continue
        if path.is_dir():
            yield from _walk(path, above | {here})
        else:
            yield path


def _content(path: Path, limit: int) -> tuple[str, int]:
    """Return what stands for the file in the digest, and how many bytes were read (at most one over `limit`)."""
    if not path.exists():
        return "broken link", 0
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            return "not a regular file", 0
        data = file.read(limit + 1)
    return f"{mode & 0o111:o} {hashlib.sha256(data).hexdigest()}", len(data)
