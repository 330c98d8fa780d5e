"""The user's own checkout, looked at without running anything it configures and without touching a byte of it."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from agent_workbench.adapters.git.commands.discovery import Place
from agent_workbench.adapters.git.commands.identity import WORKBENCH
from agent_workbench.adapters.git.commands.objects import (
    EXECUTABLE,
    GITLINK,
    LINK,
    REGULAR,
    Difference,
    Entry,
    GitObjects,
    paths_in,
)
from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.adapters.git.commands.refs import Refs
from agent_workbench.adapters.git.file_access.folders import MAX_FILE_BYTES, link_target, look
from agent_workbench.core.errors import RepoError
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.workspace import RepoFacts

_HEADS = "refs/heads/"


class Checkout:
    """HEAD, index and files of the user. Blocking; nothing is kept between calls."""

    def __init__(self, place: Place, plumbing: Plumbing, trees: GitObjects, refs: Refs) -> None:
        self.place = place
        self.plumbing, self._trees, self._refs = plumbing, trees, refs

    def head(self) -> CommitId:
        """Return the commit HEAD is at; raise `RepoError` when there is none yet."""
        found = self._refs.commit("HEAD")
        if found is None:
            branch = self.branch()
            where = f"the branch {branch}" if branch else "HEAD"
            raise RepoError(
                f"{self.place.root} has no commit on {where} yet",
                advice="make a first commit, if need be an empty one: git commit --allow-empty -m Start",
            )
        return found

    def branch(self) -> str:
        """Return the short name of the checked-out branch, empty when HEAD is detached."""
        outcome = self.plumbing.attempt("symbolic-ref", "--quiet", "HEAD")
        return os.fsdecode(outcome.out).strip().removeprefix(_HEADS)

    def facts(self) -> RepoFacts:
        """Return the checkout as it stands."""
        head, branch, shallow = self.where()
        tracked, untracked = self._listed()
        return RepoFacts(
            root=self.place.root,
            git_dir=self.place.git_dir,
            common_dir=self.place.common_dir,
            head=head,
            branch=branch,
            dirty_paths=tuple(sorted(self.dirty())),
            untracked_paths=tuple(sorted(untracked)),
            shallow=shallow,
            submodules=tuple(sorted(path for mode, path in tracked if mode == GITLINK)),
        )

    def where(self) -> tuple[CommitId, str, bool]:
        """Return `head`, `branch`, and whether the history is cut off; raise as `head` does."""
        three = ("--is-shallow-repository", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
        outcome = self.plumbing.attempt("rev-parse", *three)
        said = os.fsdecode(outcome.out).removesuffix("\n").split("\n")
        # Without a commit git says something else, and less where a branch is named HEAD too.
        if outcome.status or len(said) != len(three) - 1:
            return self.head(), self.branch(), self.plumbing.line("rev-parse", "--is-shallow-repository") == "true"
        shallow, head, name = said
        return CommitId(head), "" if name == "HEAD" else name.removeprefix(_HEADS), shallow == "true"

    def dirty(self) -> set[str]:
        """Return tracked paths that differ from HEAD, in the index or on the disk."""
        out = self._files("diff-index", "--cached", *_RAW, "HEAD", "--")
        return {each.path for each in parse_raw(out)} | self._modified()

    def untracked(self) -> list[str]:
        """Return files that are neither tracked nor ignored; a repository inside is one name that ends in a slash."""
        return paths_in(self._files("ls-files", "-z", "--others", "--exclude-standard"))

    def files(self) -> tuple[str, ...]:
        """Return the tracked files and those that are neither tracked nor ignored, sorted; none of submodules."""
        tracked, untracked = self._listed()
        names = {path for mode, path in tracked if mode != GITLINK}.union(untracked)
        return tuple(sorted(name for name in names if not name.endswith("/")))

    def _listed(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Return modes and paths of what is tracked, and what `untracked` returns."""
        # One walk for both; the tag says which is which, and of the tracked alone there is more before the path.
        listed = self._files("ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard")
        tracked, untracked = [], []
        for tag, _, rest in (line.partition(" ") for line in paths_in(listed)):
            if tag == "?":
                untracked.append(rest)
            else:
                head, _, path = rest.partition("\t")
                tracked.append((head.partition(" ")[0], path))
        return tracked, untracked

    def unmerged(self) -> bool:
        """Return whether the index holds conflicts."""
        return bool(self._files("ls-files", "-z", "--unmerged"))

    def _modified(self) -> set[str]:
        """Return paths whose file differs from the index. Where only times differ the content decides."""
        found, doubtful = set(), {}
        for each in parse_raw(self._files("diff-files", *_RAW, "--ignore-submodules=dirty", "--")):
            same_kind = each.before and each.after and each.before.mode == each.after.mode
            if same_kind and each.before and each.before.is_regular and self._is_readable(each.path):
                doubtful[each.path] = each.before.oid
            else:
                found.add(each.path)
        oids = self._hash(doubtful)
        return found | {path for path, oid in doubtful.items() if oids.get(path) != oid}

    def _is_readable(self, path: str) -> bool:
        """Return True for a file that may be read whole; git would wait for the other end of a pipe."""
        status = look(self.place.root, path)
        return status is None or (stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES)

    def _hash(self, paths: Iterable[str], *, store: bool = False) -> dict[str, str]:
        """Return how git names the files' content, with line endings as configured, no filter run. Empty on failure."""
        names = list(paths)
        if not names:
            return {}
        outcome = self.plumbing.attempt(
            *("hash-object", *(["-w"] if store else []), "--stdin-paths"),
            stdin=b"".join(_quoted(name) for name in names),
            work_tree=self.place.root,
        )
        return {} if outcome.status else dict(zip(names, outcome.out.decode().split(), strict=True))

    def _files(self, *arguments: str) -> bytes:
        return self.plumbing.run(*arguments, work_tree=self.place.root)

    def snapshot(self, session: SessionId, scratch: Path) -> CommitId:
        """Return a commit on HEAD that holds all uncommitted and untracked files as they are; HEAD if there are none.

        It is kept under `refs/agent/<session>/base`. Index, files and HEAD stay as they are.
        """
        head = self.head()
        paths = self.dirty() | {path for path in self.untracked() if not path.endswith("/")}
        known = self._trees.entries(head)
        tree = self._trees.build(head, self._states(paths, known), scratch)
        if tree == self._trees.tree_of(head):
            return head
        text = f"Uncommitted changes at the start of session {session}"
        commit = CommitId(self._trees.commit(tree, [head], text, WORKBENCH))
        self._refs.set(f"refs/agent/{session}/base", commit)
        return commit

    def _states(self, paths: set[str], known: dict[str, Entry]) -> dict[str, Entry | None]:
        states: dict[str, Entry | None] = {}
        regular: dict[str, str] = {}
        for path in sorted(paths):
            status = look(self.place.root, path)
            if status is None:
                states[path] = None
            elif stat.S_ISREG(status.st_mode):
                regular[path] = EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR
            elif stat.S_ISLNK(status.st_mode):
                states[path] = Entry(LINK, self._store_link(path))
            elif path in known and known[path].mode != GITLINK:
                states[path] = None
        oids = self._hash(regular, store=True)
        if len(oids) != len(regular):
            raise RepoError("your uncommitted changes could not be read", advice="see that all files can be read")
        return states | {path: Entry(mode, oids[path]) for path, mode in regular.items()}

    def _store_link(self, path: str) -> str:
        target = link_target(self.place.root, path)
        return self.plumbing.run("hash-object", "-w", "--no-filters", "--stdin", stdin=target).decode().strip()


_RAW = ("--raw", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-abbrev")


def parse_raw(out: bytes) -> list[Difference]:
    """Return the differences that `git diff-… --raw -z` told; content that git did not look at is named by zeros."""
    words = iter(paths_in(out))
    found = []
    for head in words:
        before, after, old, new, _ = head.removeprefix(":").split(" ")
        path = next(words)
        found.append(
            Difference(
                path,
                None if before == "000000" else Entry(before, old),
                None if after == "000000" else Entry(after, new),
            )
        )
    return found


def _quoted(path: str) -> bytes:
    """Return a line that names the path; git takes a line that begins with a quote for one with escapes."""
    raw = os.fsencode(path)
    if raw.startswith(b'"') or b"\n" in raw:
        raw = b'"%s"' % raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return raw + b"\n"
