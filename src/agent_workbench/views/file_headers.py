"""File headers of a diff: several lines of git's, shown as one."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.text.sanitizer import sanitize_whole

_NOTHING = "/dev/null"
_PLAIN, _EXECUTABLE = "100644", "100755"


class FileHead(Struct, frozen=True):
    """Header of one file: its sanitized paths and the kind of change.

    `hunks` is the number of its hunks, `first_hunk` the number of the first one in the diff, from 0.
    """

    path: str = ""
    old_path: str = ""
    begins: bool = False
    ends: bool = False
    renamed: bool = False
    copied: bool = False
    old_mode: str = ""
    new_mode: str = ""
    added: int = 0
    removed: int = 0
    first_hunk: int = 0
    hunks: int = 0

    @property
    def text(self) -> str:
        """Path and change in one line."""
        name = (self.old_path if self.ends else self.path) or self.old_path or self.path
        return " · ".join((name, *self._said()))

    def _said(self) -> tuple[str, ...]:
        moved = self.old_path != self.path and bool(self.old_path and self.path) and not (self.begins or self.ends)
        word = "copied" if self.copied else "renamed"
        mode = f"mode {self.old_mode} → {self.new_mode}" if self.old_mode else ""
        made = "" if self.old_mode or self.new_mode in {"", _PLAIN} else f"mode {self.new_mode}"
        return tuple(
            said
            for said, holds in (
                ("new file", self.begins),
                ("deleted", self.ends),
                (f"{word} from {self.old_path}", moved),
                (mode, mode),
                ("executable" if made.endswith(_EXECUTABLE) else made, made),
            )
            if holds
        )


def is_header(line: str) -> bool:
    """Return True if this line, outside of a hunk, belongs to a file header."""
    return line.startswith(tuple(_READ) + _IGNORED)


def with_header(head: FileHead, line: str) -> FileHead:
    """Return the header with the facts of this line."""
    for begins, read in _READ.items():
        if line.startswith(begins):
            return read(head, sanitize_whole(line.removeprefix(begins), keep_returns=True))
    return head


def _git(head: FileHead, names: str) -> FileHead:
    """Return the header with the names of a `diff --git` line, which are certain only if both are the same."""
    half = len(names) // 2
    old, new = names[:half].removeprefix("a/"), names[half + 1 :].removeprefix("b/")
    return replace(head, old_path=old, path=new) if old == new else replace(head, path=names)


def _old(head: FileHead, name: str) -> FileHead:
    if name == _NOTHING:
        return replace(head, begins=True)
    return replace(head, old_path=name.removesuffix("\t").removeprefix("a/"))


def _new(head: FileHead, name: str) -> FileHead:
    if name == _NOTHING:
        return replace(head, ends=True)
    return replace(head, path=name.removesuffix("\t").removeprefix("b/"))


_READ: dict[str, Callable[[FileHead, str], FileHead]] = {
    "diff --git ": _git,
    "--- ": _old,
    "+++ ": _new,
    "new file mode ": lambda head, mode: replace(head, begins=True, new_mode=mode),
    "deleted file mode ": lambda head, mode: replace(head, ends=True),
    "old mode ": lambda head, mode: replace(head, old_mode=mode),
    "new mode ": lambda head, mode: replace(head, new_mode=mode),
    "rename from ": lambda head, name: replace(head, old_path=name, renamed=True),
    "rename to ": lambda head, name: replace(head, path=name, renamed=True),
    "copy from ": lambda head, name: replace(head, old_path=name, copied=True),
    "copy to ": lambda head, name: replace(head, path=name, copied=True),
}
_IGNORED = ("index ", "similarity ", "dissimilarity ")
