"""Digest of a folder of skills or prompts, so that the trust in it ends with any change."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from agent_workbench.core.errors import TrustError
from agent_workbench.core.skills.entries import ENVIRONMENT_MARK, ENVIRONMENTS, is_compiled
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.system.regular_files import NotRegularError, open_regular

MAX_FILES = 2000
MAX_FOLDERS = 2000
"""Folders that are looked into, each as often as links lead to it: links to links can name one a billion times."""
MAX_TOTAL_BYTES = 50_000_000


def digest_folder(root: Path, folder: str) -> str:
    """Return the number of files below `root/folder` and their digest, empty if there are none.

    Links are followed, as a reader of the skill follows them. The digest covers names, contents and the executable bit.
    Left out are compiled files and a skill's environment, whose content is accepted by itself. Raises `TrustError` for
    more than `MAX_FILES`, `MAX_FOLDERS` or `MAX_TOTAL_BYTES`.
    """
    digest = hashlib.sha256()
    count = folders = total = 0
    try:
        for path in _walk(root / folder, frozenset()):
            if path is None:
                folders += 1
                if folders > MAX_FOLDERS:
                    raise TrustError(
                        f"{folder} contains more than {MAX_FOLDERS} folders, or links to folders",
                        advice="keep only skills, or prompts, in that folder",
                    )
                continue
            count += 1
            content, size = _content(path, MAX_TOTAL_BYTES - total)
            total += size
            if count > MAX_FILES or total > MAX_TOTAL_BYTES:
                raise TrustError(
                    f"{folder} contains more than {MAX_FILES} files or {MAX_TOTAL_BYTES} bytes",
                    advice="keep only skills, or prompts, in that folder",
                )
            digest.update(f"{len(str(path))} {path} {content}\n".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise TrustError(
            f"the file {error.filename} of {folder} cannot be read: {error.strerror}", advice="check its permissions"
        ) from error
    return f"{counted_text(count, 'file')}, sha256 {digest.hexdigest()}" if count else ""


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path | None]:
    """Yield the files below a folder, and None for each folder, so that these are counted too."""
    if not folder.is_dir():
        return
    facts = folder.stat()
    here = (facts.st_dev, facts.st_ino)
    if here in above:
        return
    yield None
    # Only directly in a skill: beside the skills, and deeper in one, a folder of that name is content like any other.
    environment = _environment(folder) if len(above) == 1 else None
    for path in sorted(folder.iterdir()):
        if path == environment or is_compiled(folder.name, path.name):
            continue
        if path.is_dir():
            yield from _walk(path, above | {here})
        else:
            yield path


def _environment(skill: Path) -> Path | None:
    return next((skill / name for name in ENVIRONMENTS if (skill / name / ENVIRONMENT_MARK).is_file()), None)


def _content(path: Path, limit: int) -> tuple[str, int]:
    """Return the file's part of the digest, and the number of bytes read (at most one over `limit`)."""
    if not path.exists():
        return "broken link", 0
    try:
        with os.fdopen(open_regular(path, follow=True), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(limit + 1)
    except NotRegularError:
        return "not a regular file", 0
    return f"{mode & 0o111:o} {hashlib.sha256(data).hexdigest()}", len(data)
