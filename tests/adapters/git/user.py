"""What a user does in their repository, with the git they have."""

import atexit
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from msgspec import Struct

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.workspace import MergeOutcome, WorkspaceRequest

TWO_FILES = {"src/app.py": "print('hello')\n", "README.md": "# Hello\n"}
# The index tells files that did not change by when and where they were written.
REFRESH = ("update-index", "-q", "--refresh")
# Found once: tests put other things on the PATH.
GIT = shutil.which("git") or "git"
# Each `git commit` would start one git more, to see whether it is time to tidy up.
GIT_CONFIG = """\
[user]
	name = Ada Lovelace
	email = ada@example.org
[init]
	defaultBranch = main
[maintenance]
	auto = false
"""
SESSION = SessionId("20261120T101500-ab2cde")
OTHER_SESSION = SessionId("20261120T111500-xy3zab")
TASK = TaskId("T-1")


class User(Struct, frozen=True):
    """Somebody at work in the folder `root`."""

    root: Path

    def git(self, *arguments: str) -> str:
        """Run git as the user would and return what it prints."""
        self.root.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([GIT, *arguments], cwd=self.root, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode(errors="surrogateescape").removesuffix("\n")

    def write(self, path: str, text: str | bytes, *, executable: bool = False) -> Path:
        """Write a file, with its folders."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        if executable:
            target.chmod(0o755)
        return target

    def commit(self, message: str) -> CommitId:
        """Commit everything and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.head()

    def head(self) -> CommitId:
        return CommitId(self.git("rev-parse", "HEAD"))

    def request(
        self,
        *,
        task: TaskId = TASK,
        branch: str = "",
        session: SessionId = SESSION,
        base: str = "",
        links: tuple[str, ...] = (),
    ) -> WorkspaceRequest:
        """Return a request for a workspace, by default on HEAD and the task's first branch."""
        return WorkspaceRequest(
            session, task, branch or f"agent/{task}", CommitId(base) if base else self.head(), links
        )


def make_home(folder: Path) -> Path:
    """Make a home whose owner has told git a name."""
    folder.mkdir()
    (folder / ".gitconfig").write_text(GIT_CONFIG)
    return folder


def make_repo(folder: Path, files: Mapping[str, str] = TWO_FILES) -> User:
    """Make a repository with one commit of these files."""
    copy_repo(folder, files)
    user = User(folder)
    user.git(*REFRESH)
    return user


def copy_repo(folder: Path, files: Mapping[str, str]) -> None:
    """Copy a repository with one commit of these files that was made before; git has to `REFRESH` it."""
    shutil.copytree(_made(tuple(files.items())), folder, symlinks=True, dirs_exist_ok=True)


@cache
def _made(files: tuple[tuple[str, str], ...]) -> Path:
    """Return a repository with one commit of these files, for as long as the tests run."""
    place = Path(mkdtemp())
    atexit.register(shutil.rmtree, place)
    user = User(place / "repo")
    environ = {"PATH": os.environ["PATH"], "HOME": str(make_home(place / "home")), "GIT_CONFIG_NOSYSTEM": "1"}
    for path, text in files:
        user.write(path, text)
    user.root.mkdir(exist_ok=True)
    for words in (("init",), ("add", "--all"), ("commit", "--allow-empty", "--message", "Start")):
        subprocess.run([GIT, *words], cwd=user.root, env=environ, capture_output=True, check=True)
    for sample in user.root.glob(".git/hooks/*"):
        sample.unlink()
    return user.root


async def commit_task(repository: Repository, request: WorkspaceRequest, files: Mapping[str, str | None]) -> CommitId:
    """Do a whole task that makes these files what is given (None: removes them), and let its workspace go."""
    workspace = await repository.open(request)
    changes = [
        FileChange(path, await workspace.read(path), None if text is None else FileContent(text.encode()))
        for path, text in files.items()
    ]
    tree = await workspace.write(changes, workspace.facts.tree)
    commit = await workspace.commit(tree, f"[Agent] Complete {request.task}")
    await workspace.release(keep=False)
    return commit


async def merge_as_shown(repository: Repository, commit: str, message: str = "Merge") -> MergeOutcome:
    """Merge a commit as it was shown a moment ago."""
    shown = await repository.merge_preview(CommitId(commit))
    return await repository.merge(CommitId(commit), message, shown.target)
