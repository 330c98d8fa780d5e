"""A real change: the texts of a few files before and after it, and its diff as git writes it."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

Texts = Mapping[str, str | None]
_HEADING = re.compile(r"^diff --git ([ab])/(.*) \1/\2$", re.MULTILINE)

# Nothing of the user's own configuration may change how git writes or reads a diff.
GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CEILING_DIRECTORIES": tempfile.gettempdir(),
}


class FilePair(Struct, frozen=True):
    """One file on both sides of a change; None where it does not exist."""

    path: str
    pre: str | None
    post: str | None

    def mapped(self, alter: Callable[[str], str]) -> "FilePair":
        """Return the pair with the same done to both sides."""
        return FilePair(self.path, *(None if text is None else alter(text) for text in (self.pre, self.post)))


class Change(Struct, frozen=True):
    """What one commit did to one to three files; `id` names commit and source."""

    id: str
    files: tuple[FilePair, ...]

    @property
    def pre(self) -> dict[str, str | None]:
        """Every path with its text before, None where there is no file."""
        return {file.path: file.pre for file in self.files}

    @property
    def post(self) -> dict[str, str | None]:
        """Every path with its text after."""
        return {file.path: file.post for file in self.files}

    def mapped(self, alter: Callable[[str], str]) -> "Change":
        """Return the change with the same done to every text."""
        return Change(self.id, tuple(file.mapped(alter) for file in self.files))


@lru_cache(maxsize=256)
def diff_of(change: Change, context: int = 3) -> str:
    """Return the change as `git diff` writes it, with so many lines of context; empty if nothing changed."""
    with tempfile.TemporaryDirectory(prefix="diff-of-") as name:
        folder = Path(name)
        for side, texts in (("a", change.pre), ("b", change.post)):
            (folder / side).mkdir()
            write_texts(folder / side, texts)
        words = ("diff", "--no-index", "--no-color", "--no-ext-diff", "--no-renames", "--no-prefix", f"-U{context}")
        done = subprocess.run(
            ["git", *words, "a", "b"], cwd=folder, env=GIT_ENVIRONMENT, capture_output=True, check=False
        )
    if done.returncode > 1:
        raise RuntimeError(f"git diff of {change.id} failed: {done.stderr.decode(errors='replace').strip()}")
    # Of a file that is on one side only, git writes `b/x b/x` here and `a/x b/x` in a repository.
    return _HEADING.sub(r"diff --git a/\2 b/\2", done.stdout.decode())


def write_texts(folder: Path, texts: Texts) -> None:
    """Write every text that is one into its file below `folder`, to the byte."""
    for path, text in texts.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text.encode())


def read_texts(folder: Path, paths: "Mapping[str, object]") -> dict[str, str | None]:
    """Return what stands in these files below `folder` now; what is no UTF-8 is shown as replaced, so it differs."""
    found: dict[str, str | None] = {}
    for path in paths:
        file = folder / path
        found[path] = file.read_bytes().decode(errors="replace") if file.is_file() else None
    return found
