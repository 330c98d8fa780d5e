"""The user's files as entries of a tree: their modes, and their content as git would store it without filters."""

import os
import stat
from collections.abc import Iterable

from agent_workbench.adapters.git.folders import link_target, status_below
from agent_workbench.adapters.git.objects import (
    EXECUTABLE,
    LINK,
    MAX_FILE_BYTES,
    REGULAR,
    GitObjects,
    TreeEntry,
)
from agent_workbench.adapters.git.plumbing import Plumbing


class FileEntries:
    """Entries of the files below `root`. Blocking; nothing is cached between calls."""

    def __init__(self, root: str, plumbing: Plumbing, objects: GitObjects) -> None:
        self._root, self._plumbing, self._objects = root, plumbing, objects

    def read(self, paths: Iterable[str], *, store: bool = False) -> dict[str, TreeEntry]:
        """Return files and links as git would store them, without filters; with `store` they are stored.

        An object id of zeros stands for content that cannot be read. Other kinds of files are left out.
        """
        found, regular = {}, {}
        for path in paths:
            status = status_below(self._root, path)
            if status is None:
                continue
            if stat.S_ISREG(status.st_mode):
                regular[path] = EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR
            elif stat.S_ISLNK(status.st_mode):
                found[path] = TreeEntry(LINK, self._link_oid(path, store=store))
        readable = [path for path in regular if store or self.is_readable(path)]
        oids = self.hash(readable, store=store)
        return found | {
            path: TreeEntry(mode, oids.get(path, self._objects.no_object)) for path, mode in regular.items()
        }

    def _link_oid(self, path: str, *, store: bool) -> str:
        target = link_target(self._root, path)
        if not store:
            return self._objects.hash(target)
        return self._plumbing.run("hash-object", "-w", "--no-filters", "--stdin", stdin=target).decode().strip()

    def store(self, path: str, data: bytes) -> str:
        """Store content that a file is to have, with its configured line endings and without filters; return the id."""
        stored = self._plumbing.run("hash-object", "-w", "--stdin", f"--path={path}", stdin=data, work_tree=self._root)
        return stored.decode().strip()

    def is_readable(self, path: str) -> bool:
        """Return True for a file that may be read in full; git would block on a pipe."""
        status = status_below(self._root, path)
        return status is None or (stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES)

    def hash(self, paths: Iterable[str], *, store: bool = False) -> dict[str, str]:
        """Return blob ids of the readable files, with configured line endings and without filters."""
        names = list(paths)
        if not names:
            return {}
        result = self._plumbing.attempt(
            *("hash-object", *(["-w"] if store else []), "--stdin-paths"),
            stdin=b"".join(_quoted(name) for name in names),
            work_tree=self._root,
        )
        if not result.status:
            return dict(zip(names, result.out.decode().split(), strict=True))
        # git stops at the first file that it cannot read.
        alone = (self.hash([name], store=store) for name in names) if len(names) > 1 else ()
        return {name: oid for each in alone for name, oid in each.items()}


def _quoted(path: str) -> bytes:
    """Return the path as an input line; git reads a line that begins with a quote as escaped."""
    raw = os.fsencode(path)
    if raw.startswith(b'"') or b"\n" in raw:
        raw = b'"%s"' % raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return raw + b"\n"
