"""Author, signing, hooks, filters and missing objects of a repository, as git is configured; nothing is run."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_workbench.adapters.git.commands.discovery import RepoPaths
from agent_workbench.adapters.git.commands.objects import paths_in, user_identity
from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.core.repo.workspace import OwnGit

_HOOKS = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-merge")
_PROMISOR = re.compile(r"remote\..*\.promisor|extensions\.partialclone", re.DOTALL)
_FALSE = frozenset({"false", "no", "off", "0", ""})


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
