"""Finds the repository around a folder, and says clearly what is in the way when there is none to work in."""

import os
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.commands.plumbing import GitProgram, Outcome, find_git, git_environment
from agent_workbench.core.errors import RepoError
from agent_workbench.core.patch.paths import shown


class Place(Struct, frozen=True):
    """Where a repository is: the user's checkout, its git directory, and the one all its worktrees share."""

    root: str
    git_dir: str
    common_dir: str
    algorithm: str


def discover(start: str) -> tuple[GitProgram, Place]:
    """Return the git to use and the repository that holds `start`; raise `RepoError` with what to do.

    The checkout is the nearest folder with a `.git`, whatever `core.worktree` says.
    """
    folder = Path(start).resolve()
    root = next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)
    program = find_git(str(root or folder))
    if root is None:
        raise _no_repository(program, folder)
    questions = (("--absolute-git-dir",), ("--path-format=absolute", "--git-common-dir"), ("--show-object-format",))
    answers = _ask(program, root, *(word for question in questions for word in question)).split("\n")
    if len(answers) != len(questions):  # a folder's name has an end of line in it
        answers = [_ask(program, root, *question) for question in questions]
    git_dir, common_dir, algorithm = answers
    place = Place(str(root), git_dir, common_dir, algorithm)
    if git_dir == common_dir and _is_bare(program, git_dir):
        raise _bare(root)
    return program, place


def _ask(program: GitProgram, root: Path, *question: str) -> str:
    # Without --git-dir, so that git judges whose repository this is.
    arguments = ("-C", str(root), f"--work-tree={root}", "rev-parse", *question)
    outcome = program.run(arguments, environment=git_environment())
    if outcome.status:
        raise _refusal(root, outcome)
    return os.fsdecode(outcome.out).removesuffix("\n")


def _refusal(root: Path, outcome: Outcome) -> RepoError:
    if "dubious ownership" in outcome.err:
        return RepoError(
            f"{root} belongs to another user, and git does not work in such a repository",
            advice=f"if you trust it: git config --global --add safe.directory {root}",
        )
    if "not a git repository" in outcome.err:
        return RepoError(f"{root} has a .git that leads to no repository", advice=f"look at {root / '.git'}")
    said = shown(outcome.err.strip().removeprefix("fatal: "), 500)
    return RepoError(f"git cannot read the repository {root}: {said}", advice="see what `git status` says there")


def _no_repository(program: GitProgram, folder: Path) -> RepoError:
    question = ("-C", str(folder), "rev-parse", "--is-bare-repository")
    if program.run(question, environment=git_environment()).out.strip() == b"true":
        return _bare(folder)
    return RepoError(
        f"{folder} is not in a git repository",
        advice="go to your repository, or make one here with `git init` and a first commit",
    )


def _is_bare(program: GitProgram, git_dir: str) -> bool:
    question = (f"--git-dir={git_dir}", "config", "--type=bool", "core.bare")
    return program.run(question, environment=git_environment()).out.strip() == b"true"


def _bare(folder: Path) -> RepoError:
    return RepoError(
        f"{folder} is a bare repository: it has no files to work on",
        advice="clone it, or add a worktree with `git worktree add`, and start there",
    )
