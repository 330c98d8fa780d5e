"""Links from a worktree to ignored things of the user's checkout that tests need, such as `.venv`."""

import os
from collections.abc import Collection, Sequence

from agent_workbench.adapters.git.file_access.folders import check_inside, is_link, look, reach, remove_tree, status_of
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.atomic_files import storage_error


def wanted_links(names: Sequence[str], checkout: str, tracked: Collection[str]) -> tuple[str, ...]:
    """Return which of the names are linked: they stand in the checkout, and no tracked file stands at or below them.

    Raises `WorkspaceError` for a name that leads out of the repository.
    """
    found = []
    for name in dict.fromkeys(name.removesuffix("/") for name in names):
        check_inside(name)
        below = f"{name}/"
        if look(checkout, name) is None:
            continue
        if any(path == name or path.startswith(below) for path in tracked):
            continue
        found.append(name)
    return tuple(found)


def make_links(names: Sequence[str], checkout: str, root: str, *, by_force: bool = False) -> None:
    """Make each name in `root` a link to the same in the checkout; raise `WorkspaceError` when something is there.

    `by_force` removes what is there: a command put it in the link's place.
    """
    for name in names:
        target = f"{checkout}/{name}"
        try:
            with reach(root, name, made=[]) as at:
                if is_link(at.folder, at.name):
                    if os.readlink(at.name, dir_fd=at.folder) == target:
                        continue
                    os.unlink(at.name, dir_fd=at.folder)
                elif by_force:
                    remove_tree(f"{root}/{name}")
                elif status_of(at) is not None:
                    raise WorkspaceError(
                        f"{shown(name)} cannot be linked: the workspace has something of its own there",
                        advice="take it out of workspace.link",
                    )
                os.symlink(target, at.name, dir_fd=at.folder)
        except OSError as error:
            raise storage_error(f"{shown(name)} cannot be linked to {target}", error) from error
