"""Symbolic links from a worktree to what only the checkout has: ignored files such as `.venv`, and submodules."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress

from agent_workbench.adapters.git.commands.objects import GITLINK, TreeEntry
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


def linkable_names(names: Sequence[str], checkout: str, tracked: Mapping[str, TreeEntry]) -> tuple[str, ...]:
    """Return the names to link: those that the checkout has, and that are in no other one.

    Raises `WorkspaceError` for a name that cannot be linked: one outside the repository, one with a tracked file at or
    below it, and a submodule that was not initialised.
    """
    found: list[str] = []
    for name in sorted(dict.fromkeys(name.removesuffix("/") for name in names)):
        check_inside(name)
        if status_below(checkout, name) is None or any(name.startswith(f"{other}/") for other in found):
            continue
        _check_linkable(name, checkout, tracked)
        found.append(name)
    return tuple(found)


def _check_linkable(name: str, checkout: str, tracked: Mapping[str, TreeEntry]) -> None:
    inside = next((path for path in tracked if path == name or path.startswith(f"{name}/")), None)
    if inside is None:
        return
    if inside != name or tracked[name].mode != GITLINK:
        held = "git tracks it" if inside == name else f"git tracks {shown(inside)} in it"
        raise WorkspaceError(
            f"{shown(name)} cannot be linked: {held}, so the workspace has its own",
            advice="remove it from workspace.link, which is for ignored files and submodules",
        )
    if status_below(checkout, f"{name}/.git") is None:
        raise WorkspaceError(
            f"{shown(name)} cannot be linked: the submodule has no files in {checkout}",
            advice=f"`git submodule update --init {shlex.quote(name)}` brings them",
        )


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
                else:
                    # The empty folder of a submodule.
                    with suppress(OSError):
                        os.rmdir(at.name, dir_fd=at.folder)
                if status_at(at) is not None:
                    raise WorkspaceError(
                        f"{shown(name)} cannot be linked: the workspace has a file or folder of that name",
                        advice="remove it from workspace.link",
                    )
                os.symlink(target, at.name, dir_fd=at.folder)
        except OSError as error:
            raise storage_error(f"{shown(name)} cannot be linked to {target}", error) from error


def linked_names(root: str, checkout: str) -> tuple[str, ...]:
    """Return the names in a worktree that are links to the same name in the checkout, as `make_links` makes them."""
    found = []
    for where, folders, files in os.walk(root):
        for path in (f"{where}/{name}" for name in (*folders, *files)):
            name = path.removeprefix(f"{root}/")
            if os.path.islink(path) and os.readlink(path) == f"{checkout}/{name}":  # noqa: PTH114, PTH115 - as the walk
                found.append(name)
    return tuple(found)
