"""Symbolic links from a worktree to ignored files of the user's checkout that tests need, such as `.venv`."""

import os
from collections.abc import Collection, Sequence

from agent_workbench.adapters.git.file_access.folders import (
    check_inside,
    is_link,
    open_parent,
    remove_tree,
    status_at,
    status_below,
)
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.atomic_files import storage_error


def linkable_names(names: Sequence[str], checkout: str, tracked: Collection[str]) -> tuple[str, ...]:
    """Return the names to link: those in the checkout with no tracked file at or below them.

    Raises `WorkspaceError` for a name outside the repository.
    """
    found = []
    for name in dict.fromkeys(name.removesuffix("/") for name in names):
        check_inside(name)
        below = f"{name}/"
        if status_below(checkout, name) is None:
            continue
        if any(path == name or path.startswith(below) for path in tracked):
            continue
        found.append(name)
    return tuple(found)


def make_links(names: Sequence[str], checkout: str, root: str, *, by_force: bool = False) -> None:
    """Make each name in `root` a link to the same name in the checkout; raise `WorkspaceError` if the name is taken.

    `by_force` removes the obstacle, which a command put there.
    """
    for name in names:
        target = f"{checkout}/{name}"
        try:
            with open_parent(root, name, made=[]) as at:
                if is_link(at.folder, at.name):
                    if os.readlink(at.name, dir_fd=at.folder) == target:
                        continue
                    os.unlink(at.name, dir_fd=at.folder)
                elif by_force:
                    remove_tree(f"{root}/{name}")
                elif status_at(at) is not None:
                    raise WorkspaceError(
                        f"{shown(name)} cannot be linked: the workspace has a file or folder of that name",
                        advice="remove it from workspace.link",
                    )
                os.symlink(target, at.name, dir_fd=at.folder)
        except OSError as error:
            raise storage_error(f"{shown(name)} cannot be linked to {target}", error) from error
