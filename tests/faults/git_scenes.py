"""What the fault tests do to git in a process of its own: `python -m tests.faults.git_scenes <scene> <folder>`."""

import asyncio
import os
import resource
import signal
import stat
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent_workbench.adapters.git.plumbing import GitResult, Plumbing
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.user import SESSION, User, merge_as_shown

HELLO = FileContent(b"print('hello')\n")
CHANGES = (
    FileChange("src/app.py", HELLO, FileContent(b"print('bye')\n", executable=True)),
    FileChange("README.md", FileContent(b"# Hello\n"), None),
    FileChange("deep/er/new", None, FileContent(b"new")),
    FileChange("src/other", None, FileContent(b"other")),
)
LIMIT_BYTES = 60_000
LARGE = FileContent(os.urandom(2 * LIMIT_BYTES))

# What leaves a trace outside the process: before each of these it may be killed.
_EFFECTS = {
    *("os.rename", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.remove", "os.truncate", "subprocess.Popen"),
}


def die_at(number: int) -> None:
    """Have this process killed before its effect of that number, counted from 1."""
    seen = 0

    def count(event: str, _: tuple[object, ...]) -> None:
        nonlocal seen
        if event in _EFFECTS:
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def note_effects(folder: Path, notes: Path) -> None:
    """Write a line for each effect of this process: a digest of all that is in the folder just before it."""

    def note(event: str, _: tuple[object, ...]) -> None:
        if event in _EFFECTS:
            with notes.open("a") as lines:
                lines.write(f"{_digest(folder)}\n")

    sys.addaudithook(note)


def _digest(folder: Path) -> str:
    found = sha256()
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted((*folders, *names)):
            path = Path(place, name)
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
            link = os.readlink(path) if stat.S_ISLNK(mode) else ""  # noqa: PTH115 - exactly as it is
            found.update(f"{path} {mode} {link} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()


async def whole_task(folder: Path) -> None:
    """Do a task from beginning to end."""
    user = User(folder / "repo")
    workspace = await Repository(user.root, folder / "state").open(user.request(base=base_of(folder)))
    tree = await workspace.write(CHANGES, workspace.facts.tree)
    await workspace.checkpoint(SESSION, 1, "step 1")
    await workspace.commit(tree, "Done")
    await workspace.release(keep=True)


def base_of(folder: Path) -> str:
    """Return the commit the tasks start from, as the test noted it."""
    return (folder / "base").read_text()


async def _opened(folder: Path) -> GitWorkspace:
    user = User(folder / "repo")
    return await Repository(user.root, folder / "state").open(user.request(base=base_of(folder)))


async def _write(folder: Path) -> None:
    workspace = await _opened(folder)
    _limit_file_size()
    for position in range(len(CHANGES) + 1):
        changes = [*CHANGES[:position], FileChange("large", None, LARGE), *CHANGES[position:]]
        await _expect_storage_error(workspace.write(changes, workspace.facts.tree))
        assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    await workspace.write(CHANGES, workspace.facts.tree)


async def _checkpoint(folder: Path) -> None:
    workspace = await _opened(folder)
    (Path(workspace.facts.path) / "large").write_bytes(LARGE.data)
    _limit_file_size()
    await _expect_storage_error(workspace.checkpoint(SESSION, 1, "x"))
    (Path(workspace.facts.path) / "large").unlink()
    await workspace.checkpoint(SESSION, 2, "x")


async def _restore(folder: Path) -> None:
    workspace = await _opened(folder)
    (Path(workspace.facts.path) / "large").write_bytes(LARGE.data)
    point = await workspace.checkpoint(SESSION, 1, "x")
    await workspace.restore(workspace.facts.base)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    _limit_file_size()
    await _expect_storage_error(workspace.restore(point.commit))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    await workspace.restore(point.commit)
    assert await workspace.read("large") == LARGE


async def _merge(folder: Path) -> None:
    repository = Repository(folder / "repo", folder / "state")
    commit = CommitId((folder / "commit").read_text())
    _limit_file_size()
    await _expect_storage_error(merge_as_shown(repository, commit, "Merge"))


async def _merge_meanwhile(folder: Path) -> None:
    """Merge what does not fit, while the user writes files as soon as git has stopped in the middle."""
    attempt = Plumbing.attempt

    def before_the_user(self: Plumbing, *arguments: str, **options: Any) -> GitResult:
        result = attempt(self, *arguments, **options)
        if arguments[:3] == ("read-tree", "-m", "-u") and "index" not in options:
            write_meanwhile(User(folder / "repo"))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plumbing, "attempt", before_the_user)
        await _merge(folder)


def write_meanwhile(user: User) -> None:
    """Write files that the merge has removed or written, and one beside them."""
    for path in ("README.md", "src/other", "deep/er/mine"):
        user.write(path, "mine")


async def _merge_for_good(folder: Path) -> None:
    """Merge what does not fit, where what was there before does not fit any more either."""
    repository = Repository(folder / "repo", folder / "state")
    commit = CommitId((folder / "commit").read_text())
    shown = await repository.merge_preview(commit)
    _limit_file_size()
    with pytest.raises(StorageError, match="1 of your files could not be restored") as error:
        await repository.merge(commit, "Merge", shown.target)
    (folder / "advice").write_text(error.value.advice)


async def _read_only(folder: Path) -> None:
    workspace = await _opened(folder)
    (Path(workspace.facts.path) / "src").chmod(0o555)
    await _expect_storage_error(workspace.write(tuple(reversed(CHANGES)), workspace.facts.tree))
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    await _expect_storage_error(workspace.write(CHANGES, workspace.facts.tree))
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    (Path(workspace.facts.path) / "src").chmod(0o755)
    for name in ("src/app.py", "unreadable"):
        path = Path(workspace.facts.path) / name
        path.touch()
        path.chmod(0)
    tree = workspace.facts.tree
    assert {change.path: change.after for change in await workspace.unapproved_changes(tree)} == {
        "src/app.py": None,
        "unreadable": None,
    }
    await workspace.put_back(tree, ["src/app.py", "unreadable"])
    assert await workspace.unapproved_changes(tree) == ()
    await workspace.write(CHANGES, workspace.facts.tree)


async def _locked_up(folder: Path) -> None:
    workspace = await _opened(folder)
    root, tree = Path(workspace.facts.path), workspace.facts.tree
    before = {path: oct(path.lstat().st_mode) for path in sorted(root.rglob("*"))}
    (root / "left/in").mkdir(parents=True)
    (root / "left/in/x").touch()
    (root / "left/in/locked").touch()
    for name in ("left/in/locked", "left/in", "left", "src/app.py", "src", "README.md", ""):
        (root / name).chmod(0)
    point = await workspace.checkpoint(SESSION, 7, "x")
    assert point.tree != tree, "what was left is kept"
    for name in ("src/app.py", "src", ""):
        (root / name).chmod(0)
    await workspace.release(keep=True)
    workspace = await _opened(folder)
    assert (await workspace.reset(tree)).removed == ("left/",)
    assert {path: oct(path.lstat().st_mode) for path in sorted(root.rglob("*"))} == before
    await workspace.write(CHANGES, tree)


def _limit_file_size() -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))


async def _expect_storage_error(act: object) -> None:
    assert asyncio.iscoroutine(act)
    with pytest.raises(StorageError):
        await act


SCENES = {
    "write": _write,
    "checkpoint": _checkpoint,
    "restore": _restore,
    "merge": _merge,
    "merge_meanwhile": _merge_meanwhile,
    "merge_for_good": _merge_for_good,
    "read_only": _read_only,
    "locked_up": _locked_up,
    "task": whole_task,
}


if __name__ == "__main__":
    asyncio.run(SCENES[sys.argv[1]](Path(sys.argv[2])))
