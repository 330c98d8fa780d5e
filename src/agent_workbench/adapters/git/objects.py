"""Trees, blobs and commits, read and written byte for byte: without filters and without line-ending conversion."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.core.errors import WorkspaceError, nameless_author
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.system.atomic_files import storage_error

# A larger file is no source code; reading it whole would cost more memory than a session may use.
MAX_FILE_BYTES = 200_000_000
REGULAR, EXECUTABLE, LINK, GITLINK = "100644", "100755", "120000", "160000"
# Author of checkpoints, and of commits where git knows no user.
WORKBENCH = ("Agent Workbench", "agent@localhost")
# File content held in memory at once while a whole tree is read.
_AUTHOR = re.compile(rb"^author (.*) <(.*)> (\d+ [+-]\d{4})$", re.MULTILINE)
_BATCH_BYTES = 32_000_000
_BATCH_FILES = 5_000
# A task reads its base and the last approved tree again and again.
_KEPT_TREES = 3


class TreeEntry(NamedTuple):
    """Entry of a tree: git's mode in octal, and the object id."""

    mode: str
    oid: str

    @property
    def is_regular(self) -> bool:
        """True for a regular file, False for a symbolic link or a submodule."""
        return self.mode in {REGULAR, EXECUTABLE}


class TreeDifference(Struct, frozen=True):
    """Path with different entries in two trees; None where a tree has no such path."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


class GitObjects:
    """Object database of one repository. `no_object` is the id of zeros that stands for no object."""

    def __init__(self, plumbing: Plumbing, algorithm: str) -> None:
        self.plumbing = plumbing
        self.algorithm = algorithm
        self.no_object = "0" * hashlib.new(algorithm, usedforsecurity=False).digest_size * 2
        # Keyed by full object ids only: their meaning never changes.
        self._trees: dict[str, str] = {}
        self._entries: dict[str, dict[str, TreeEntry]] = {}
        self._built: dict[tuple[str, frozenset[tuple[str, TreeEntry | None]]], str] = {}

    def hash(self, data: bytes) -> str:
        """Return the object id of a blob with this content."""
        return hashlib.new(self.algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def tree_of(self, revision: str) -> str:
        """Return the tree of a commit (or the tree itself); raise `WorkspaceError` if there is no such object."""
        return self.trees_of(revision)[0]

    def trees_of(self, *revisions: str) -> list[str]:
        """Return the trees of several commits (or trees) as `tree_of` does, with one process."""
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

    def entries(self, tree: str) -> dict[str, TreeEntry]:
        """Return all files, links and submodules of a tree by path."""
        if len(tree) != len(self.no_object):
            return _list(self.plumbing, tree)
        tree = self._trees.get(tree, tree)
        # Moved to the end: the entry used longest ago is dropped first.
        entries = self._entries.pop(tree, None)
        if entries is None:
            entries = _list(self.plumbing, tree)
        self._keep_entries(tree, entries)
        return entries.copy()

    def _keep_entries(self, tree: str, entries: dict[str, TreeEntry]) -> None:
        self._entries[tree] = entries
        if len(self._entries) > _KEPT_TREES:
            del self._entries[next(iter(self._entries))]

    def differences(self, before: str, after: str) -> list[TreeDifference]:
        """Return the differences between two trees, by path; a renamed file is one removed and one added."""
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
            found.append(TreeDifference(os.fsdecode(next(records)), _entry(old_mode, old), _entry(new_mode, new)))
        return found

    def contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the content of blobs by object id."""
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
                    f"the repository lacks the blob {oid}",
                    advice="in a partial clone, fetch it first: git fetch --refetch, or clone without --filter",
                )
            at = end + 1 + int(head[2])
            found[oid] = out[end + 1 : at]
            at += 1
        return found

    def files(
        self, entries: Iterable[TreeEntry | None], max_bytes: int = MAX_FILE_BYTES
    ) -> dict[TreeEntry, FileContent]:
        """Return the content of the entries that are regular files of at most `max_bytes`."""
        regular = {entry for entry in entries if entry is not None and entry.is_regular}
        sizes = self.sizes({entry.oid for entry in regular})
        fitting = [entry for entry in regular if sizes[entry.oid] <= max_bytes]
        contents = self.contents(entry.oid for entry in fitting)
        return {entry: FileContent(contents[entry.oid], entry.mode == EXECUTABLE) for entry in fitting}

    def batches(self, entries: Mapping[str, TreeEntry]) -> Iterator[list[tuple[str, TreeEntry, bytes]]]:
        """Yield paths, entries and contents (no submodules) in batches that fit into memory."""
        blobs = {path: entry for path, entry in entries.items() if entry.mode != GITLINK}
        sizes = self.sizes({entry.oid for entry in blobs.values()})
        batch: list[tuple[str, TreeEntry]] = []
        size = 0
        for path, entry in blobs.items():
            if batch and (size + sizes[entry.oid] > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
                yield self._filled(batch)
                batch, size = [], 0
            batch.append((path, entry))
            size += sizes[entry.oid]
        if batch:
            yield self._filled(batch)

    def _filled(self, batch: Sequence[tuple[str, TreeEntry]]) -> list[tuple[str, TreeEntry, bytes]]:
        contents = self.contents(entry.oid for _, entry in batch)
        return [(path, entry, contents[entry.oid]) for path, entry in batch]

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """Return the sizes of blobs in bytes, by object id."""
        wanted = list(oids)
        if not wanted:
            return {}
        asked = "".join(f"{oid}\n" for oid in wanted).encode()
        out = self.plumbing.run("cat-file", "--batch-check=%(objectsize)", stdin=asked)
        return {oid: int(line) if line.isdigit() else 0 for oid, line in zip(wanted, out.splitlines(), strict=True)}

    def write_blobs(self, files: Sequence[Path]) -> list[str]:
        """Store the unchanged content of files and return the object ids. File names must not need quoting."""
        if not files:
            return []
        stdin = b"".join(os.fsencode(file) + b"\n" for file in files)
        out = self.plumbing.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=stdin)
        return out.decode().split()

    def build(self, parent: str, updates: Mapping[str, TreeEntry | None], scratch: Path) -> str:
        """Return the tree of `parent` with these paths set or removed, built in a temporary index in `scratch`."""
        if not updates:
            return self.tree_of(parent)
        # A checkpoint asks for the tree that the applied diff has just made.
        key = parent, frozenset(updates.items())
        if key in self._built:
            return self._built[key]
        try:
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                index = str(Path(folder) / "index")
                self.plumbing.run("read-tree", parent, index=index)
                self.plumbing.run(
                    "update-index", "-z", "--index-info", stdin=_index_info(updates, self.no_object), index=index
                )
                tree = self.plumbing.run("write-tree", index=index).decode().strip()
        except OSError as error:
            raise storage_error(f"{scratch} cannot be written", error) from error
        self._trees[tree] = tree
        self._built[key] = tree
        if len(self._built) > _KEPT_TREES:
            del self._built[next(iter(self._built))]
        before = self._entries.get(self._trees.get(parent, parent), {})
        changed = {path: entry for path, entry in updates.items() if entry is not None and path in before}
        if len(changed) == len(updates):  # files that stay where they are
            self._keep_entries(tree, before | changed)
        return tree

    def stat(self, before: str, after: str) -> tuple[FileStat, ...]:
        """Return the files that differ between two trees or commits, with the numbers of lines added and removed."""
        names = self.trees_of(before, after)
        shape = ("-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
        return tuple(_stat(record) for record in paths_in(self.plumbing.run("diff-tree", *shape, *names)))

    def recommit(self, commit: str, tree: str, parent: str, committer: tuple[str, str]) -> str:
        """Store a commit with the author and message of another one, as a rebase does, and return its object id.

        Raises `WorkspaceError` for a commit without a valid author.
        """
        head, _, message = self.plumbing.run("cat-file", "commit", commit).partition(b"\n\n")
        author = _AUTHOR.search(head)
        if author is None:
            raise WorkspaceError(f"commit {commit[:12]} has no valid author", advice="rebase it by hand")
        name, mail, date = (part.decode("utf-8", "surrogateescape") for part in author.groups())
        environment = {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": mail,
            "GIT_AUTHOR_DATE": f"@{date}",
            "GIT_COMMITTER_NAME": committer[0],
            "GIT_COMMITTER_EMAIL": committer[1],
        }
        out = self.plumbing.run("commit-tree", tree, "-p", parent, "-F", "-", stdin=message, environment=environment)
        return out.decode().strip()

    def commit(self, tree: str, parents: Sequence[str], message: str, author: tuple[str, str]) -> str:
        """Store a commit by `author` (name, e-mail) with the unchanged message, and return its object id."""
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


def _list(plumbing: Plumbing, tree: str) -> dict[str, TreeEntry]:
    found = {}
    for record in _records(plumbing.run("ls-tree", "-r", "-z", "--full-tree", tree)):
        head, _, path = record.partition(b"\t")
        mode, _, oid = head.decode().split(" ")
        found[os.fsdecode(path)] = TreeEntry(mode, oid)
    return found


def _index_info(updates: Mapping[str, TreeEntry | None], no_object: str) -> bytes:
    # Removals first: a file may replace a folder, or a folder a file.
    removed = [f"0 {no_object}\t{path}\0" for path, entry in updates.items() if entry is None]
    added = [f"{entry.mode} {entry.oid}\t{path}\0" for path, entry in updates.items() if entry is not None]
    return b"".join(os.fsencode(record) for record in removed + added)


def _records(out: bytes) -> list[bytes]:
    return out.split(b"\0")[:-1]


def paths_in(out: bytes) -> list[str]:
    """Return the paths in a command's output, each of which ends with a NUL."""
    return [os.fsdecode(record) for record in _records(out)]


def _stat(record: str) -> FileStat:
    added, removed, path = record.split("\t", 2)
    text = added != "-"
    return FileStat(path, int(added) if text else None, int(removed) if text else None)


def _entry(mode: str, oid: str) -> TreeEntry | None:
    return None if mode == "000000" else TreeEntry(mode, oid)


def changes_between(trees: GitObjects, before: str, after: str) -> tuple[FileChange, ...]:
    """Return the changes from one tree to another, with file contents."""
    found = trees.differences(before, after)
    contents = trees.files(entry for each in found for entry in (each.before, each.after))
    return tuple(file_change(each, contents, contents.get(each.after) if each.after else None) for each in found)


def file_change(each: TreeDifference, before: Mapping[TreeEntry, FileContent], after: FileContent | None) -> FileChange:
    """Return a difference with the contents on both sides; `before` are contents by entry."""
    return FileChange(each.path, before.get(each.before) if each.before else None, after)


def user_identity(plumbing: Plumbing) -> tuple[str, str] | None:
    """Return the name and e-mail that git would put on a commit of the user, None if it would refuse to commit."""
    result = plumbing.attempt("var", "GIT_AUTHOR_IDENT")
    match = re.fullmatch(r"(.*) <(.*)> \d+ [+-]\d{4}\n?", result.out.decode("utf-8", "replace"))
    return (match[1], match[2]) if not result.status and match else None


def commit_author(plumbing: Plumbing) -> tuple[str, str]:
    """Return the user's identity; raise `RepoError` where git has none."""
    found = user_identity(plumbing)
    if found is None:
        raise nameless_author()
    return found
