"""The user's own checkout, its files as entries of a tree, and git's settings, read without running their programs."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.git.discovery import RepoPaths, is_bare
from agent_workbench.adapters.git.folders import link_target, status_below
from agent_workbench.adapters.git.objects import (
    EXECUTABLE,
    GITLINK,
    LINK,
    MAX_FILE_BYTES,
    REGULAR,
    WORKBENCH,
    GitObjects,
    TreeDifference,
    TreeEntry,
    paths_in,
    user_identity,
)
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.refs import Refs
from agent_workbench.core.errors import RepoError
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.repo.workspace import OwnGit, RepoFacts
from agent_workbench.system.folder_trees import read_regular

Contents = Mapping[str, bytes]
_HEADS = "refs/heads/"
_SNAPSHOT = "Uncommitted changes at the start of session"

_HOOKS = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-merge")
_PROMISOR = re.compile(r"remote\..*\.promisor|extensions\.partialclone", re.DOTALL)
_FALSE = frozenset({"false", "no", "off", "0", ""})


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


class Checkout:
    """HEAD, index and files of the user. Blocking; nothing is cached between calls."""

    def __init__(self, paths: RepoPaths, plumbing: Plumbing, objects: GitObjects, refs: Refs) -> None:
        self.paths = paths
        self.plumbing, self.objects, self._refs = plumbing, objects, refs
        self._entries = FileEntries(paths.root, plumbing, objects)

    def head(self) -> CommitId:
        """Return the commit of HEAD; raise `RepoError` if there is none yet."""
        found = self._refs.commit("HEAD")
        if found is None:
            branch = self.branch()
            where = f"the branch {branch}" if branch else "HEAD"
            raise RepoError(
                f"{self.paths.root} has no commit on {where} yet",
                advice="make a first commit, which may be empty: git commit --allow-empty -m Start",
            )
        return found

    def first_commit(self) -> CommitId:
        """Return the commit without parent that HEAD began with: all clones have it. Raises `RepoError`."""
        if self.plumbing.line("rev-parse", "--is-shallow-repository") == "true":
            raise RepoError(
                f"{self.paths.root} is a shallow clone: what it began with is not here",
                advice="machines that share a database need whole clones: git fetch --unshallow",
            )
        return CommitId(self.plumbing.line("rev-list", "--first-parent", "--max-parents=0", self.head()))

    def branch(self) -> str:
        """Return the short name of the checked-out branch, empty if HEAD is detached."""
        result = self.plumbing.attempt("symbolic-ref", "--quiet", "HEAD")
        return os.fsdecode(result.out).strip().removeprefix(_HEADS)

    def holder_of(self, branch: str, *, besides: Path | None) -> str:
        """Return git's folder of a worktree in which the branch is checked out, empty if there is no other one."""
        common = Path(self.paths.common_dir)
        wanted = f"ref: {_HEADS}{branch}".encode()
        for folder in (common, *sorted(common.glob("worktrees/*"))):
            with suppress(OSError):
                if besides is not None and folder.samefile(besides):
                    continue
                holds = read_regular(folder / "HEAD", 10_000).strip() == wanted
                # The HEAD of a bare repository is no checkout, only the branch that clones begin with.
                if holds and (folder != common or not is_bare(self.plumbing.program, str(common))):
                    return str(folder)
        return ""

    def facts(self) -> RepoFacts:
        """Return the current state of the checkout."""
        head, branch, shallow = self.where()
        tracked, untracked = self.listed()
        return RepoFacts(
            *(self.paths.root, self.paths.git_dir, self.paths.common_dir, head, branch),
            dirty_paths=tuple(sorted(self.dirty())),
            untracked_paths=tuple(sorted(untracked)),
            shallow=shallow,
            submodules=tuple(sorted(path for mode, path in tracked if mode == GITLINK)),
            own_git=self.own_git(),
            filtered=tuple(filtered(self.plumbing, self.paths.root, (path for _, path in tracked))),
        )

    def own_git(self) -> OwnGit:
        """Return what the user's git would do here and the workbench does not."""
        return read_own_git(self.paths, self.plumbing)

    def where(self) -> tuple[CommitId, str, bool]:
        """Return `head`, `branch`, and True for a shallow clone; raise as `head` does."""
        three = ("--is-shallow-repository", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
        result = self.plumbing.attempt("rev-parse", *three)
        said = os.fsdecode(result.out).removesuffix("\n").split("\n")
        # Without a commit, or with a branch named HEAD, git prints fewer lines.
        if result.status or len(said) != len(three) - 1:
            return self.head(), self.branch(), self.plumbing.line("rev-parse", "--is-shallow-repository") == "true"
        shallow, head, name = said
        return CommitId(head), "" if name == "HEAD" else name.removeprefix(_HEADS), shallow == "true"

    def dirty(self) -> set[str]:
        """Return tracked paths that differ from HEAD in the index or on the disk."""
        return {*self._staged(), *self._modified()}

    def untracked(self) -> list[str]:
        """Return files that are neither tracked nor ignored; a nested repository is one name that ends in a slash."""
        return paths_in(self._files("ls-files", "-z", "--others", "--exclude-standard"))

    def files(self) -> tuple[str, ...]:
        """Return tracked files and files that are neither tracked nor ignored, sorted, without submodules."""
        tracked, untracked = self.listed()
        names = {path for mode, path in tracked if mode != GITLINK}.union(untracked)
        return tuple(sorted(name for name in names if not name.endswith("/")))

    def listed(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Return modes and paths of tracked entries, and the untracked paths."""
        # One walk for both. The tag tells them apart; only tracked entries have fields before the path.
        listed = self._files("ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard")
        tracked, untracked = [], []
        for tag, _, rest in (line.partition(" ") for line in paths_in(listed)):
            if tag == "?":
                untracked.append(rest)
            else:
                head, _, path = rest.partition("\t")
                tracked.append((head.partition(" ")[0], path))
        return tracked, untracked

    def tracked_in(self, folder: str) -> frozenset[str] | None:
        """Return the names of the entries of a folder that git tracks, None if the folder is of a submodule.

        Names are compared as a file system does that ignores case.
        """
        wanted = f"{folder}/".casefold()
        names = set()
        for line in paths_in(self._files("ls-files", "-z", "--stage", "--cached")):
            head, _, path = line.partition("\t")
            if head.startswith(GITLINK) and wanted.startswith(f"{path}/".casefold()):
                return None
            if path.casefold().startswith(wanted):
                names.add(path[len(wanted) :].partition("/")[0])
        return frozenset(names)

    def unmerged(self) -> bool:
        """Return True if the index contains conflicts."""
        return bool(self._files("ls-files", "-z", "--unmerged"))

    def _staged(self) -> dict[str, TreeEntry | None]:
        """Return the paths whose entry in the index differs from HEAD, with the entry; None for a removed one."""
        return {each.path: each.after for each in parse_raw(self._files("diff-index", "--cached", *_RAW, "HEAD", "--"))}

    def _modified(self) -> dict[str, str]:
        """Return paths whose file differs from the index, with git's mode of the file, empty if there is none.

        If only times differ, the content decides.
        """
        found, doubtful = {}, {}
        for each in parse_raw(self._files("diff-files", *_RAW, "--ignore-submodules=dirty", "--")):
            found[each.path] = each.after.mode if each.after else ""
            same_kind = each.before and each.after and each.before.mode == each.after.mode
            if same_kind and each.before and each.before.is_regular and self._entries.is_readable(each.path):
                doubtful[each.path] = each.before.oid
        oids = self._entries.hash(doubtful)
        return {path: mode for path, mode in found.items() if path not in doubtful or oids.get(path) != doubtful[path]}

    def overlooked_edits(self, entries: Mapping[str, TreeEntry]) -> dict[str, str]:
        """Return the paths whose file differs from its entry although git is told to overlook it, with git's flag.

        Where a skipped path has no file, nothing is edited: the checkout is sparse.
        """
        flags = {}
        for tag, _, path in (line.partition(" ") for line in paths_in(self._files("ls-files", "-z", "-v"))):
            if path in entries and entries[path].mode != GITLINK and (tag == "S" or tag.islower()):
                flags[path] = "skip-worktree" if tag in {"S", "s"} else "assume-unchanged"
        there = self._entries.read(flags)
        return {
            path: flag
            for path, flag in flags.items()
            if (there[path].oid != entries[path].oid if path in there else not self._is_skipped(path, flag))
        }

    def _is_skipped(self, path: str, flag: str) -> bool:
        return flag == "skip-worktree" and status_below(self.paths.root, path) is None

    def _files(self, *arguments: str) -> bytes:
        return self.plumbing.run(*arguments, work_tree=self.paths.root)

    def snapshot(self, session: SessionId, scratch: Path, unsaved: Contents, without: Sequence[str]) -> CommitId:
        """Return a commit on HEAD with what is not committed, or HEAD if there is nothing: see `Workspaces`.

        Index, files and HEAD do not change. Raises `RepoError`, also for an unsaved file that is not there.
        """
        head = self.head()
        known = self.objects.entries(head)
        states = without_paths(self._states(known), without)
        states |= unsaved_entries({**known, **states}, unsaved, self._entries)
        tree = self.objects.build(head, states, scratch)
        if tree == self.objects.tree_of(head):
            return head
        commit = CommitId(self.objects.commit(tree, [head], f"{_SNAPSHOT} {session}", WORKBENCH))
        self._refs.set(f"refs/agent/{session}/base", commit)
        return commit

    def _states(self, known: Mapping[str, TreeEntry]) -> dict[str, TreeEntry | None]:
        """Return the uncommitted and untracked paths with their stored content, None for a removed one."""
        staged, edited = self._staged(), self._modified()
        paths = {*staged, *edited, *(path for path in self.untracked() if not path.endswith("/"))}
        there = self._entries.read(sorted(paths), store=True)
        if any(entry.oid == self.objects.no_object for entry in there.values()):
            raise RepoError(
                f"uncommitted changes in {self.paths.root} could not be read",
                advice="check the permissions of your files",
            )
        states: dict[str, TreeEntry | None] = {}
        for path in sorted(paths):
            if path in there:
                # git knows whether the file system has modes at all.
                mode = edited.get(path) or (staged.get(path) or there[path]).mode
                states[path] = TreeEntry(mode, there[path].oid)
            elif path not in edited and status_below(self.paths.root, path) is None:
                states[path] = staged[path]  # outside of a sparse checkout, the index alone has the content
            elif path not in known or known[path].mode != GITLINK:
                states[path] = None
        return states


def without_paths(states: Mapping[str, TreeEntry | None], without: Sequence[str]) -> dict[str, TreeEntry | None]:
    """Return the states besides these paths, and what is below a folder of them (with a slash)."""
    folders = tuple(each for each in without if each.endswith("/"))
    return {path: entry for path, entry in states.items() if path not in without and not path.startswith(folders)}


def unsaved_entries(
    there: Mapping[str, TreeEntry | None], unsaved: Contents, files: FileEntries
) -> dict[str, TreeEntry]:
    """Return the stored contents that an editor did not save; raise `RepoError` for a path that is no file there."""
    found = {}
    for path, data in unsaved.items():
        entry = there.get(path)
        if entry is None or not entry.is_regular:
            raise RepoError(f"{path} has unsaved changes and is no file of the repository", advice="save it first")
        found[path] = TreeEntry(entry.mode, files.store(path, data))
    return found


_RAW = ("--raw", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-abbrev")


def parse_raw(out: bytes) -> list[TreeDifference]:
    """Return the differences in the output of `git diff-… --raw -z`; unread content has an object id of zeros."""
    words = iter(paths_in(out))
    found = []
    for head in words:
        before, after, old, new, _ = head.removeprefix(":").split(" ")
        path = next(words)
        found.append(
            TreeDifference(
                path,
                None if before == "000000" else TreeEntry(before, old),
                None if after == "000000" else TreeEntry(after, new),
            )
        )
    return found


def read_own_git(paths: RepoPaths, plumbing: Plumbing) -> OwnGit:
    """Return what git is configured to do; nothing of it is run."""
    values = dict(plumbing.configured)
    return OwnGit(
        nameless=user_identity(plumbing) is None,
        signs=_on(values.get("commit.gpgsign", "false")),
        hooks=tuple(_hooks(paths, values.get("core.hookspath"))),
        lacks_objects=any(map(_PROMISOR.fullmatch, values)) and _lacks_objects(plumbing),
    )


def filtered(plumbing: Plumbing, root: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths whose content git would pass through a configured filter, each with the filter's name."""
    if not plumbing.filters:
        return
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = paths_in(plumbing.run("check-attr", "-z", "--stdin", "filter", stdin=stdin, work_tree=root))
    yield from ((path, name) for path, name in zip(words[::3], words[2::3], strict=True) if name in plumbing.filters)


def _on(value: str | None) -> bool:
    """Return the truth value of a setting; one without a value is true."""
    return value is None or value.lower() not in _FALSE


def _lacks_objects(plumbing: Plumbing) -> bool:
    listed = plumbing.run("rev-list", "--objects", "--no-object-names", "--missing=print", "--max-count=1", "HEAD")
    return b"\n?" in listed


def _hooks(paths: RepoPaths, configured: str | None) -> Iterator[str]:
    """Yield the hooks of commits and merges that git would run; a relative folder is one of the checkout."""
    folder = Path(paths.root, Path(configured).expanduser()) if configured else Path(paths.common_dir, "hooks")
    # `os.access` comes first: it is false, as for git, where the folder may not be entered.
    yield from (name for name in _HOOKS if os.access(folder / name, os.X_OK) and (folder / name).is_file())
