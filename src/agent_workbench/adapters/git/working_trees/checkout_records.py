"""Records of checkouts, by which a moved one finds the state that is kept under its path, and a copy does not.

State is kept by path. A file with a random id in git's folder tells a checkout from others at the same path, and the
stamp of that file (device, inode, time of its last change) a moved checkout from a copy: nobody can copy or unpack it.
The id alone opens nothing.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from agent_workbench.adapters.git.discovery import RepoPaths
from agent_workbench.core.errors import LockedError, RepoError, StorageError
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import open_regular, read_regular
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder
from agent_workbench.system.user_dirs import repo_key

_ID = re.compile(r"[0-9a-f]{32}")
_MOST_BYTES = 100_000
_LOCK_SECONDS = 10.0
_FOLDER = "agent-workbench"
# Folders of the state that are named by `repo_key` of the checkout.
_BY_ROOT = ("queue", "reports")
_REPLACED = " was replaced "


class CheckoutRecord(Struct, frozen=True):
    """A checkout as it was last seen: `stamp` is that of its id file.

    `root` is empty for a git folder that was only seen through a linked worktree.
    """

    id: str
    root: str
    git_dir: str
    stamp: tuple[int, int, int]


class Standing(Struct, frozen=True):
    """Relation of a checkout to known ones: `copy_of` another that exists, or possibly a `left` one that is gone."""

    copy_of: str = ""
    left: str = ""


class _OwnId(Struct, frozen=True):
    id: str
    stamp: tuple[int, int, int]


class CheckoutRecords:
    """Records in the folder `state` of all that the workbench keeps. Blocking."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._records = state / "repositories"
        self._sessions = state / "sessions"

    def settle(self, paths: RepoPaths) -> Standing:
        """Bring the state of a moved checkout to its new path, set that of a replaced one aside; return the standing.

        Raises `LockedError` while a process works in the checkout at its old path.
        """
        found = [self._settle(git_dir, root) for git_dir, root in _folders(paths)]
        return next((each for each in found if each != Standing()), Standing())

    def remember(self, paths: RepoPaths) -> None:
        """Record a checkout in which work begins; raise `RepoError` if it may be another one's continuation.

        Where git's folder cannot be written there is no record, and a moved checkout is not recognized.
        """
        if left := self.settle(paths).left:
            raise _undecided(paths.root, left)
        with suppress(OSError, StorageError), self._locked():
            for git_dir, root in _folders(paths):
                self._remember(git_dir, root)

    def take_over(self, paths: RepoPaths, *, leave: bool) -> str:
        """Make the state of a checkout that is gone that of this one, which has its id, and return its path.

        With `leave` this one gets an id of its own instead. Raises `RepoError` if there is no such checkout.
        """
        left = self.settle(paths).left
        if not left:
            raise RepoError(f"{paths.root} has nothing to take over", advice="`agent doctor` shows what is known of it")
        with self._locked():
            for git_dir, root in _folders(paths):
                own = _own_id(git_dir)
                found = self._by_id(own.id) if own is not None else None
                if found is not None and not leave:
                    self._relocate(found, git_dir, found.root if root is None else root)
                self._remember(git_dir, root, anew=leave)
        return left

    def former(self, paths: RepoPaths) -> list[Path]:
        """Return the folders of worktrees of repositories that were at this path before."""
        prefix = paths.common_dir + _REPLACED
        folders = (self._worktrees(each.git_dir) for each in self._all() if each.git_dir.startswith(prefix))
        return sorted(each for each in folders if each.is_dir())

    def _settle(self, git_dir: str, root: str | None) -> Standing:
        own, known = _own_id(git_dir), self._record(git_dir)
        if own is None and known is None:
            return Standing()
        if own is not None and known is not None and own.id == known.id and _same_root(known, root):
            return Standing()
        with self._locked():
            known = self._record(git_dir)
            if known is not None and (own is None or known.id != own.id):
                if own is None and self._has_worktree(git_dir):
                    return Standing()  # somebody removed the id file alone
                aside = f"{_REPLACED}{known.id[:8]}"
                self._relocate(known, known.git_dir + aside, known.root and known.root + aside)
                known = None
            found = known or (self._by_id(own.id) if own is not None else None)
            if own is None or found is None:
                return Standing()
            same_folder = found.git_dir == git_dir
            if same_folder and _is_checkout(found.root):
                return Standing()
            if not same_folder and (there := _own_id(found.git_dir)) is not None and there.id == found.id:
                return Standing(copy_of=found.root or found.git_dir)
            if own.stamp != found.stamp or not (root is None or _belongs(git_dir, root)):
                return Standing(left=found.root or found.git_dir) if self._holds_work(found) else Standing()
            self._relocate(found, git_dir, found.root if root is None else root)
        return Standing()

    def _remember(self, git_dir: str, root: str | None, *, anew: bool = False) -> None:
        own, known = _own_id(git_dir), self._record(git_dir)
        if own is None or known is None or own.id != known.id or anew:
            own, known = _write_id(git_dir), None
        seen = known.root if known is not None else ""
        if root is not None and not _is_checkout(seen):
            seen = root
        record = CheckoutRecord(own.id, seen, git_dir, own.stamp)
        if record != known:
            self._write(record)

    def _relocate(self, record: CheckoutRecord, git_dir: str, root: str) -> None:
        """Move the state of a checkout to other paths; what a crash leaves is finished the next time."""
        self._check_idle(record)
        old, new = self._worktrees(record.git_dir), self._worktrees(git_dir)
        try:
            _move(old, new)
            _repoint(new, Path(git_dir, "worktrees"))
            if record.root and root != record.root:
                for kind in _BY_ROOT:
                    _move(self._state / kind / repo_key(record.root), self._state / kind / repo_key(root))
                for entry, below in self._sessions_below(record.root):
                    write_atomically(entry, os.fsencode(f"{root}/{below}"))
            self._write(replace(record, git_dir=git_dir, root=root))
            if repo_key(git_dir) != repo_key(record.git_dir):
                self._path(record.git_dir).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"the state of {record.root} cannot be moved to {root}", error) from error

    def _check_idle(self, record: CheckoutRecord) -> None:
        locks = [*self._worktrees(record.git_dir).glob("locks/*.lock")]
        if record.root:
            locks += (self._state / "queue" / repo_key(record.root)).glob("*/workers/*.lock")
        if holder := next(filter(None, map(lock_holder, locks)), ""):
            raise LockedError(
                f"the repository that was at {record.root or record.git_dir} is still in use: {holder}",
                holder=holder,
                advice="end that process, which knows the old path only; then try again",
            )

    def _has_worktree(self, git_dir: str) -> bool:
        """Return True if git knows a worktree of the workbench at its present path."""
        folder = self._worktrees(git_dir)
        return any(pointer.parent.parent == folder for _, pointer in _worktree_pointers(Path(git_dir, "worktrees")))

    def _holds_work(self, record: CheckoutRecord) -> bool:
        worktrees = self._worktrees(record.git_dir) / "private"
        return any(worktrees.glob("agent-*")) or any(self._sessions_below(record.root))

    def _sessions_below(self, root: str) -> Iterator[tuple[Path, str]]:
        """Yield the registry's entries for sessions below a checkout, each with its path there."""
        for entry in sorted(self._sessions.iterdir()) if root and self._sessions.is_dir() else ():
            with suppress(OSError):
                place = os.fsdecode(read_regular(entry, _MOST_BYTES))
                if place.startswith(f"{root}/"):
                    yield entry, place.removeprefix(f"{root}/")

    def _worktrees(self, git_dir: str) -> Path:
        return self._state.resolve() / "worktrees" / repo_key(git_dir)

    def _path(self, git_dir: str) -> Path:
        return self._records / f"{repo_key(git_dir)}.json"

    def _record(self, git_dir: str) -> CheckoutRecord | None:
        return _read(self._path(git_dir))

    def _by_id(self, name: str) -> CheckoutRecord | None:
        return next((each for each in self._all() if each.id == name), None)

    def _all(self) -> Iterator[CheckoutRecord]:
        paths = sorted(self._records.glob("*.json"))
        return (record for record in map(_read, paths) if record is not None)

    def _write(self, record: CheckoutRecord) -> None:
        make_directories(self._records)
        write_atomically(self._path(record.git_dir), json.encode(record), mode=0o600)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_directories(self._records)
        except OSError as error:
            raise storage_error(f"{self._records} cannot be created", error) from error
        lock = FileLock(self._records / "lock", describe_holder())
        lock.acquire(wait_seconds=_LOCK_SECONDS)
        try:
            yield
        finally:
            lock.release()


def _folders(paths: RepoPaths) -> list[tuple[str, str | None]]:
    """Return git's folders of a checkout with the checkout's root, None for the main one of a linked worktree."""
    if paths.git_dir == paths.common_dir:
        return [(paths.git_dir, paths.root)]
    return [(paths.common_dir, None), (paths.git_dir, paths.root)]


def _belongs(git_dir: str, root: str) -> bool:
    """Return True if git's folder itself says that this is its checkout: any folder can name it in a file `.git`."""
    pointer = Path(root, ".git")
    try:
        if pointer.is_dir() and not pointer.is_symlink():
            return pointer.samefile(git_dir)
        return Path(os.fsdecode(read_regular(Path(git_dir, "gitdir"), _MOST_BYTES).strip())) == pointer
    except OSError:
        return False


def _is_checkout(root: str) -> bool:
    return bool(root) and os.path.lexists(Path(root, ".git"))


def _same_root(known: CheckoutRecord, root: str | None) -> bool:
    return root is None or known.root in {"", root}


def _read(path: Path) -> CheckoutRecord | None:
    try:
        return json.decode(read_regular(path, _MOST_BYTES), type=CheckoutRecord)
    except (OSError, MsgspecError, ValueError, RecursionError):
        return None


def _own_id(git_dir: str) -> _OwnId | None:
    """Return the id in git's folder, where no link is followed; None if there is none, or something else."""
    try:
        folder = _open_folder(git_dir)
        try:
            with os.fdopen(open_regular("id", folder=folder), "rb") as file:
                name, status = file.read(_MOST_BYTES).decode("ascii").strip(), os.fstat(file.fileno())
        finally:
            os.close(folder)
    except (OSError, ValueError):
        return None
    return _OwnId(name, (status.st_dev, status.st_ino, status.st_ctime_ns)) if _ID.fullmatch(name) else None


def _open_folder(git_dir: str) -> int:
    return os.open(Path(git_dir, _FOLDER), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _write_id(git_dir: str) -> _OwnId:
    """Write a new id into git's folder, where no link is followed; raise `OSError`."""
    with suppress(FileExistsError):
        Path(git_dir, _FOLDER).mkdir()
    folder = _open_folder(git_dir)
    try:
        with suppress(FileNotFoundError):
            os.unlink("id", dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open("id", flags, 0o600, dir_fd=folder), "w") as file:
            file.write(f"{secrets.token_hex(16)}\n")
    finally:
        os.close(folder)
    own = _own_id(git_dir)
    if own is None:
        raise OSError(f"{git_dir}/{_FOLDER}/id was changed")
    return own


def _move(old: Path, new: Path) -> None:
    if old == new or not old.is_dir():
        return
    if os.path.lexists(new):  # of a checkout that was there before there were records
        new.rename(new.with_name(f"{new.name}-{secrets.token_hex(4)}"))
    old.rename(new)


def _worktree_pointers(git_folders: Path) -> Iterator[tuple[Path, Path]]:
    """Yield git's folder of each worktree and the path of the worktree's file `.git`."""
    for each in sorted(git_folders.iterdir()) if git_folders.is_dir() else ():
        with suppress(OSError):
            yield each, Path(os.fsdecode(read_regular(each / "gitdir", _MOST_BYTES).rstrip(b"\n")))


def _repoint(folder: Path, git_folders: Path) -> None:
    """Let git's records of the worktrees in a moved `folder`, and these, name each other by the new paths.

    A record whose worktree is where it says belongs to the checkout that this one was copied from.
    """
    for each, pointer in _worktree_pointers(git_folders):
        tree, stays = folder / pointer.parent.name, pointer.parent.parent == folder
        known = pointer.name == ".git" and pointer.parent.parent.parent == folder.parent and tree.is_dir()
        if not known or (not stays and os.path.lexists(pointer)):
            continue
        write_atomically(each / "gitdir", os.fsencode(tree / ".git") + b"\n")
        with suppress(OSError):  # opening the task repairs what a command put in its place
            (tree / ".git").unlink(missing_ok=True)
            with (tree / ".git").open("xb") as file:
                file.write(b"gitdir: %s\n" % os.fsencode(each))


def _undecided(root: str, left: str) -> RepoError:
    return RepoError(
        f"{root} looks like the repository that was at {left}, whose sessions and worktrees are kept",
        advice="if you copied it here: `agent sessions take-over` continues them, with --leave it starts without them",
    )
