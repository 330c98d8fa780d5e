"""A repository that is moved keeps what the workbench has of it; a copy, and what takes its path, get nothing of it."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.lifecycle import lock_path
from agent_workbench.core.errors import LockedError, RepoError
from agent_workbench.core.repo.workspace import RepoFacts
from agent_workbench.system.locks import FileLock
from agent_workbench.system.user_dirs import repo_key
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import OTHER_SESSION, SESSION, TASK, User, make_repo

PARKED = "memory/sessions/20261120T101500-ab2cde"


async def key(folder: Path) -> str:
    """Return the name of a folder's state."""
    return await asyncio.to_thread(repo_key, str(folder))


class Machine:
    """A user's machine with the workbench's state, and a task that waits in the repository `user`."""

    def __init__(self, folder: Path, user: User) -> None:
        self.folder, self.user = folder, user
        self.state = folder / "state"
        self.entry = self.state / "sessions" / SESSION

    def open(self, user: User) -> Repository:
        return Repository(user.root, self.state / "worktrees")

    async def park(self) -> None:
        """Begin the task, leave an edit in its worktree, and register its session, as a session does."""
        workspace = await self.open(self.user).open(self.user.request())
        Path(workspace.facts.path, "src/app.py").write_text("parked\n")
        await workspace.release(keep=True)
        self.entry.parent.mkdir(parents=True)
        self.entry.write_text(f"{self.user.root}/{PARKED}")
        (self.state / "queue" / await key(self.user.root) / "tasks%queue%default").mkdir(parents=True)

    def move(self, name: str, user: User | None = None) -> User:
        """Rename the repository's folder."""
        return User((user or self.user).root.rename(self.folder / name))

    async def facts(self, user: User) -> RepoFacts:
        return await self.open(user).inspect()

    async def has_work(self, user: User) -> bool:
        """Return True if the parked work is found from this repository, in every part of the state."""
        await self.facts(user)
        mine = self.entry.read_text() == f"{user.root}/{PARKED}"
        queue = (self.state / "queue" / await key(user.root)).is_dir()
        (tree,) = self.state.glob("worktrees/*/agent-T-1")
        assert (tree / "src/app.py").read_text() == "parked\n"
        there = tree.parent.name == await key(user.root / ".git")
        assert mine == queue == there
        return there


@pytest.fixture
async def machine(tmp_path: Path, user: User) -> Machine:
    made = Machine(tmp_path, user)
    before = fingerprint(user.root)
    await made.park()
    assert fingerprint(user.root) == before
    return made


async def continue_task(machine: Machine, user: User) -> str:
    """Open the parked task's workspace as its session does, and return what it left in a file."""
    workspace = await machine.open(user).open(user.request())
    text = Path(workspace.facts.path, "src/app.py").read_text()
    await workspace.release(keep=True)
    return text


async def test_a_moved_repository_continues_where_it_was(machine: Machine) -> None:
    moved = machine.move("elsewhere")
    assert await machine.facts(moved) == await machine.facts(moved)
    assert await machine.has_work(moved)
    (tree,) = machine.state.glob("worktrees/*/agent-T-1")
    assert User(tree).git("status", "--porcelain") == " M src/app.py", "git's records lead there and back"
    assert str(tree) in moved.git("worktree", "list")
    assert await machine.open(moved).free_branch(TASK, OTHER_SESSION) == "agent/T-1-xy3zab"
    assert await continue_task(machine, moved) == "parked\n"
    back = machine.move("repo", moved)
    assert await machine.has_work(back)
    assert await continue_task(machine, back) == "parked\n"


async def test_a_removed_id_file_loses_nothing(machine: Machine) -> None:
    shutil.rmtree(machine.user.root / ".git/agent-workbench")
    assert await machine.has_work(machine.user)
    assert await continue_task(machine, machine.user) == "parked\n"
    assert await machine.has_work(machine.move("elsewhere")), "a new one was written"


async def test_a_move_that_was_interrupted_is_finished(machine: Machine) -> None:
    moved = machine.move("elsewhere")
    (folder,) = (machine.state / "worktrees").iterdir()
    folder.rename(folder.with_name(await key(moved.root / ".git")))
    assert await machine.has_work(moved)
    assert await continue_task(machine, moved) == "parked\n"


async def test_a_copy_shares_nothing_and_the_original_keeps_all(machine: Machine) -> None:
    copy = User(machine.folder / "copy")
    shutil.copytree(machine.user.root, copy.root, symlinks=True)
    assert (await machine.facts(copy)).copy_of == str(machine.user.root)
    assert not await machine.has_work(copy)
    workspace = await machine.open(copy).open(copy.request(session=OTHER_SESSION, branch="agent/T-1-xy3zab"))
    await workspace.release(keep=True)
    assert (await machine.facts(copy)).copy_of == "", "work began in it, so it is one of its own"
    shutil.rmtree(machine.user.root)
    facts = await machine.facts(copy)
    assert (facts.copy_of, facts.left) == ("", "")


async def test_a_copy_of_what_is_gone_takes_over_when_the_user_says_so(machine: Machine) -> None:
    """So it is across file systems, and also for a foreign repository that brings the id of another one."""
    copy = User(machine.folder / "copy")
    shutil.copytree(machine.user.root, copy.root, symlinks=True)
    shutil.rmtree(machine.user.root)
    assert (await machine.facts(copy)).left == str(machine.user.root)
    with pytest.raises(RepoError, match="looks like the repository that was at") as error:
        await machine.open(copy).open(copy.request(session=OTHER_SESSION))
    assert "`agent sessions take-over`" in error.value.advice
    assert not await machine.has_work(copy)
    assert await machine.open(copy).take_over() == str(machine.user.root)
    assert await machine.has_work(copy)
    assert await continue_task(machine, copy) == "parked\n"
    with pytest.raises(RepoError, match="nothing to take over"):
        await machine.open(copy).take_over()


async def test_what_is_left_stays_left(machine: Machine) -> None:
    copy = User(machine.folder / "copy")
    shutil.copytree(machine.user.root, copy.root, symlinks=True)
    shutil.rmtree(machine.user.root)
    await machine.open(copy).take_over(leave=True)
    assert (await machine.facts(copy)).left == ""
    assert not await machine.has_work(copy)


async def test_another_repository_at_the_old_path_gets_nothing(machine: Machine) -> None:
    moved = machine.move("elsewhere")
    other = make_repo(machine.user.root)
    assert await machine.open(other).free_branch(TASK, OTHER_SESSION) == "agent/T-1"
    assert not await machine.has_work(other)
    (orphan,) = await machine.open(other).orphans()
    assert (orphan.task, orphan.has_branch, orphan.holds) == (TASK, False, "files of a former repository")
    workspace = await machine.open(other).open(other.request(session=OTHER_SESSION))
    assert Path(workspace.facts.path, "src/app.py").read_text() != "parked\n"
    await workspace.commit(workspace.facts.tree, "Done")
    await workspace.release(keep=False)
    assert await machine.has_work(moved)
    assert await continue_task(machine, moved) == "parked\n"


async def test_nothing_moves_while_a_process_works_at_the_old_path(machine: Machine) -> None:
    lock = FileLock(lock_path(next((machine.state / "worktrees").iterdir()), TASK), "session x, pid 1")
    await asyncio.to_thread(lock.acquire)
    moved = machine.move("elsewhere")
    with pytest.raises(LockedError, match="still in use: session x, pid 1") as error:
        await machine.facts(moved)
    assert "end that process" in error.value.advice
    lock.release()
    assert await machine.has_work(moved)


def link_folder(hostile: Path, moved: Path) -> None:
    (hostile / ".git/agent-workbench").symlink_to(moved / ".git/agent-workbench")


def link_file(hostile: Path, moved: Path) -> None:
    (hostile / ".git/agent-workbench").mkdir()
    (hostile / ".git/agent-workbench/id").symlink_to(moved / ".git/agent-workbench/id")


def hard_link(hostile: Path, moved: Path) -> None:
    (hostile / ".git/agent-workbench").mkdir()
    os.link(moved / ".git/agent-workbench/id", hostile / ".git/agent-workbench/id")


def point_to_git(hostile: Path, moved: Path) -> None:
    shutil.rmtree(hostile / ".git")
    (hostile / ".git").write_text(f"gitdir: {moved}/.git\n")


@pytest.mark.parametrize("trick", [link_folder, link_file, hard_link, point_to_git])
async def test_an_id_that_is_not_its_own_gives_a_repository_nothing(
    trick: Callable[[Path, Path], None], machine: Machine
) -> None:
    moved, hostile = machine.move("elsewhere"), make_repo(machine.folder / "hostile")
    trick(hostile.root, moved.root)
    await machine.facts(hostile)
    assert machine.entry.read_text() == f"{machine.user.root}/{PARKED}"
    assert not await machine.has_work(User(hostile.root))


async def test_a_linked_worktree_of_the_user_is_followed_too(machine: Machine) -> None:
    linked = User(machine.folder / "linked")
    machine.user.git("worktree", "add", "--quiet", "-b", "side", str(linked.root))
    workspace = await machine.open(linked).open(linked.request(session=OTHER_SESSION, branch="agent/T-1-xy3zab"))
    await workspace.release(keep=True)
    entry = machine.state / "sessions" / OTHER_SESSION
    entry.write_text(f"{linked.root}/memory/sessions/{OTHER_SESSION}")
    machine.user.git("worktree", "move", str(linked.root), str(machine.folder / "other"))
    await machine.facts(User(machine.folder / "other"))
    assert entry.read_text() == f"{machine.folder}/other/memory/sessions/{OTHER_SESSION}"
    assert await machine.has_work(machine.user)
    moved = machine.move("elsewhere")
    moved.git("worktree", "repair", str(machine.folder / "other"))
    assert (await machine.facts(User(machine.folder / "other"))).left == ""
    assert await machine.has_work(moved)


async def test_a_git_folder_that_cannot_be_written_is_no_obstacle(machine: Machine) -> None:
    other = make_repo(machine.folder / "other")
    (other.root / ".git/agent-workbench").write_text("a file of somebody else\n")
    workspace = await machine.open(other).open(other.request(session=OTHER_SESSION))
    await workspace.release(keep=False)
    assert (other.root / ".git/agent-workbench").read_text() == "a file of somebody else\n"
