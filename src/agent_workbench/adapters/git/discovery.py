"""Discovery of the repository that contains a folder, with a clear error where there is none to work in."""

import os
import shlex
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.plumbing import GitProgram, GitResult, find_git, git_environment
from agent_workbench.core.errors import RepoError
from agent_workbench.core.patch.paths import shown


class RepoPaths(Struct, frozen=True):
    """Paths of a repository: the user's checkout, its git directory, and the git directory shared by all worktrees.

    `algorithm` is the hash function of its object ids.
    """

    root: str
    git_dir: str
    common_dir: str
    algorithm: str


def discover(start: str) -> tuple[GitProgram, RepoPaths]:
    """Return the installed git and the repository that contains `start`; raise `RepoError` with advice.

    The checkout is the nearest parent folder with a `.git`; `core.worktree` is ignored.
    """
    folder = Path(start).resolve()
    root = next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)
    program = find_git(str(root or folder))
    if root is None:
        raise _no_repository(program, folder)
    questions = (("--absolute-git-dir",), ("--path-format=absolute", "--git-common-dir"), ("--show-object-format",))
    answers = _ask(program, root, *(word for question in questions for word in question)).split("\n")
    if len(answers) != len(questions):  # a folder name contains a line break
        answers = [_ask(program, root, *question) for question in questions]
    git_dir, common_dir, algorithm = answers
    paths = RepoPaths(str(root), git_dir, common_dir, algorithm)
    if git_dir == common_dir and is_bare(program, git_dir):
        raise _bare(root)
    return program, paths


def _ask(program: GitProgram, root: Path, *question: str) -> str:
    # Without --git-dir, so that git checks the owner of the repository.
    arguments = ("-C", str(root), f"--work-tree={root}", "rev-parse", *question)
    result = program.run(arguments, environment=git_environment())
    if result.status:
        raise _refusal(root, result)
    return os.fsdecode(result.out).removesuffix("\n")


def _refusal(root: Path, result: GitResult) -> RepoError:
    if "dubious ownership" in result.err:
        return RepoError(
            f"the repository {root} belongs to another user, and git refuses to use it",
            advice=f"if you trust it: git config --global --add safe.directory {shlex.quote(str(root))}",
        )
    if "not a git repository" in result.err:
        return RepoError(f"{root / '.git'} does not lead to a repository", advice="check its content, or remove it")
    said = shown(result.err.strip().removeprefix("fatal: "), 500)
    return RepoError(f"git cannot read the repository {root}: {said}", advice="run `git status` there")


def _no_repository(program: GitProgram, folder: Path) -> RepoError:
    question = ("-C", str(folder), "rev-parse", "--is-bare-repository")
    if program.run(question, environment=git_environment()).out.strip() == b"true":
        return _bare(folder)
    return RepoError(
        f"{folder} is not in a git repository",
        advice="change to your repository, or create one here with `git init` and a first commit",
    )


def is_bare(program: GitProgram, git_dir: str) -> bool:
    """Return True if a git directory has no files of its own; worktrees may be linked to it."""
    question = (f"--git-dir={git_dir}", "config", "--type=bool", "core.bare")
    return program.run(question, environment=git_environment()).out.strip() == b"true"


def _bare(folder: Path) -> RepoError:
    return RepoError(
        f"{folder} is a bare repository: it has no files to work on",
        advice="clone it, or add a worktree with `git worktree add`, and start there",
    )
