"""Reads and writes git's trees and blobs, byte for byte: no filter and no line ending stands between."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.adapters.git.file_access.folders import MAX_FILE_BYTES
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.values import FileContent
from agent_workbench.core.workspace import FileStat
from agent_workbench.system.atomic_files import storage_error

REGULAR, EXECUTABLE, LINK, GITLINK = "100644", "100755", "120000", "160000"
# How much file content is held at once when a whole tree is read.
_BATCH_BYTES = 32_000_000
_BATCH_FILES = 5_000
# A task asks again and again for what it was begun on and for what was approved last.
_KEPT_TREES = 3


class Entry(NamedTuple):
    """What a tree holds at a path: git's mode in octal, and the object's name."""

    mode: str
    oid: str

    @property
    def is_regular(self) -> bool:
        """Whether it is a file, and no symbolic link and no submodule."""
        return self.mode in {REGULAR, EXECUTABLE}


class Difference(Struct, frozen=True):
    """A path that is not the same in two trees; None where one of them lacks it."""

    path: str
    before: Entry | None
    after: Entry | None


class GitObjects:
    """The objects of one repository."""

    def __init__(self, plumbing: Plumbing, algorithm: str) -> None:
        self.plumbing = plumbing
        self.algorithm = algorithm
        self.no_object = "0" * hashlib.new(algorithm, usedforsecurity=False).digest_size * 2
        # Of whole names only: what such a name stands for never changes.
        self._trees: dict[str, str] = {}
        self._entries: dict[str, dict[str, Entry]] = {}

    def hash(self, data: bytes) -> str:
        """Return the name a blob of these bytes has."""
        return hashlib.new(self.algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def tree_of(self, revision: str) -> str:
        """Return the tree of a commit (or the tree itself); raise `WorkspaceError` if there is no such object."""
        return self.trees_of(revision)[0]

    def trees_of(self, *revisions: str) -> list[str]:
        """Return the trees of some commits (or trees) as `tree_of` does; one process for all of them."""
        unknown = [revision for revision in dict.fromkeys(revisions) if revision not in self._trees]
        found = dict(zip(unknown, self.plumbing.resolve(*(f"{each}^{{tree}}" for each in unknown)), strict=True))
        trees = []
        for revision in revisions:
            tree = self._trees.get(revision) or found[revision]
            if tree is None:
                raise WorkspaceError(f"{revision} is not a commit of this repository")
            if len(revision) == len(self.no_object):
                self._trees[revision] = tree
            trees.append(tree)
        return trees

    def entries(self, tree: str) -> dict[str, Entry]:
        """Return all files, links and submodules of a tree by path."""
        if len(tree) != len(self.no_object):
            return self._list(tree)
        tree = self._trees.get(tree, tree)
        # Asked for last, so forgotten last.
        entries = self._entries.pop(tree, None)
        if entries is None:
            entries = self._list(tree)
        self._entries[tree] = entries
        if len(self._entries) > _KEPT_TREES:
            del self._entries[next(iter(self._entries))]
        return entries.copy()

    def _list(self, tree: str) -> dict[str, Entry]:
        found = {}
        for record in _records(self.plumbing.run("ls-tree", "-r", "-z", "--full-tree", tree)):
            head, _, path = record.partition(b"\t")
            mode, _, oid = head.decode().split(" ")
            found[os.fsdecode(path)] = Entry(mode, oid)
        return found

    def differences(self, before: str, after: str) -> list[Difference]:
        """Return what is not the same in two trees, by path; a renamed file is one removed and one added."""
        if self._trees.get(before) == self._trees.get(after, after):
            return []
        out = self.plumbing.run(
            *("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index"),
            *("--no-abbrev", "--ignore-submodules=none", before, after, "--"),
        )
        records = iter(_records(out))
        found = []
        for record in records:
            old_mode, new_mode, old, new, _ = record.decode().removeprefix(":").split(" ")
            found.append(Difference(os.fsdecode(next(records)), _entry(old_mode, old), _entry(new_mode, new)))
        return found

    def contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the content of blobs by name."""
        wanted = list(dict.fromkeys(oids))
        if not wanted:
            return {}
        out = self.plumbing.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
        found, at = {}, 0
        for oid in wanted:
            end = out.index(b"\n", at)
            head = out[at:end].split(b" ")
            if len(head) != 3 or head[1] != b"blob":
                raise WorkspaceError(
                    f"the repository lacks the content {oid}",
                    advice="in a partial clone, fetch it first: git fetch --refetch, or clone without --filter",
                )
            at = end + 1 + int(head[2])
            found[oid] = out[end + 1 : at]
            at += 1
        return found

    def files(self, entries: Iterable[Entry | None], max_bytes: int = MAX_FILE_BYTES) -> dict[Entry, FileContent]:
        """Return the content of those entries that are regular files and have at most `max_bytes`."""
        regular = {entry for entry in entries if entry is not None and entry.is_regular}
        sizes = self.sizes({entry.oid for entry in regular})
        fitting = [entry for entry in regular if sizes[entry.oid] <= max_bytes]
        contents = self.contents(entry.oid for entry in fitting)
        return {entry: FileContent(contents[entry.oid], entry.mode == EXECUTABLE) for entry in fitting}

    def batches(self, entries: Mapping[str, Entry]) -> Iterator[list[tuple[str, Entry, bytes]]]:
        """Yield paths, entries and contents (no submodules) in portions that fit the memory."""
        blobs = {path: entry for path, entry in entries.items() if entry.mode != GITLINK}
        sizes = self.sizes({entry.oid for entry in blobs.values()})
        batch: list[tuple[str, Entry]] = []
        size = 0
        for path, entry in blobs.items():
            if batch and (size + sizes[entry.oid] > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
                yield self._filled(batch)
                batch, size = [], 0
            batch.append((path, entry))
            size += sizes[entry.oid]
        if batch:
            yield self._filled(batch)

    def _filled(self, batch: Sequence[tuple[str, Entry]]) -> list[tuple[str, Entry, bytes]]:
        contents = self.contents(entry.oid for _, entry in batch)
        return [(path, entry, contents[entry.oid]) for path, entry in batch]

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """Return how many bytes blobs have, by name."""
        wanted = list(oids)
        if not wanted:
            return {}
        asked = "".join(f"{oid}\n" for oid in wanted).encode()
        out = self.plumbing.run("cat-file", "--batch-check=%(objectsize)", stdin=asked)
        return {oid: int(line) if line.isdigit() else 0 for oid, line in zip(wanted, out.splitlines(), strict=True)}

    def write_blobs(self, files: Sequence[Path]) -> list[str]:
        """Store the files' bytes as they are and return the blobs' names. The files' own names must be plain."""
        if not files:
            return []
        stdin = b"".join(os.fsencode(file) + b"\n" for file in files)
        out = self.plumbing.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin)
        return out.decode().split()

    def build(self, parent: str, updates: Mapping[str, Entry | None], scratch: Path) -> str:
        """Return the tree of `parent` with these paths set or removed, made in an index of its own in `scratch`."""
        if not updates:
            return self.tree_of(parent)
        try:
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                index = str(Path(folder) / "index")
                self.plumbing.run("read-tree", parent, index=index)
                self.plumbing.run("update-index", "-z", "--index-info", stdin=self._index_info(updates), index=index)
                tree = self.plumbing.run("write-tree", index=index).decode().strip()
        except OSError as error:
            raise storage_error(f"{scratch} cannot be written", error) from error
        self._trees[tree] = tree
        return tree

    def _index_info(self, updates: Mapping[str, Entry | None]) -> bytes:
        # Removals first: a file may take the place of a folder, or a folder that of a file.
        removed = [f"0 {self.no_object}\t{path}\0" for path, entry in updates.items() if entry is None]
        added = [f"{entry.mode} {entry.oid}\t{path}\0" for path, entry in updates.items() if entry is not None]
        return b"".join(os.fsencode(record) for record in removed + added)

    def stat(self, before: str, after: str) -> tuple[FileStat, ...]:
        """Return the files in which two trees or commits differ, with lines added and removed."""
        names = self.trees_of(before, after)
        shape = ("-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
        return tuple(_stat(record) for record in paths_in(self.plumbing.run("diff-tree", *shape, *names)))

    def commit(self, tree: str, parents: Sequence[str], message: str, author: tuple[str, str]) -> str:
        """Store a commit by `author` (name, e-mail) with the message as it is, and return its name."""
        name, mail = author
        environment = {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": mail,
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": mail,
        }
        of = [word for parent in parents for word in ("-p", parent)]
        text = message.encode("utf-8", "replace")
        out = self.plumbing.run("commit-tree", tree, *of, "-F", "-", stdin=text, environment=environment)
        return out.decode().strip()


def _records(out: bytes) -> list[bytes]:
    return out.split(b"\0")[:-1]


def paths_in(out: bytes) -> list[str]:
    """Return the paths of a command's output that ends each with a NUL."""
    return [os.fsdecode(record) for record in _records(out)]


def _stat(record: str) -> FileStat:
    added, removed, path = record.split("\t", 2)
    text = added != "-"
    return FileStat(path, int(added) if text else None, int(removed) if text else None)


def _entry(mode: str, oid: str) -> Entry | None:
    return None if mode == "000000" else Entry(mode, oid)
