"""Model files of a hub: pull, list and remove. They need no repository. All functions block."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.adapters.model_files.model_folder import ModelFolder
    from agent_workbench.core.model_files import StoredModel

Progress = Callable[[str, int, int], None]
"""Told a file, how many bytes of it are there, and how many it has."""


class PulledModel(Struct, frozen=True):
    """A model that was pulled: the path for `model.path`, the commit it is from, its files and bytes."""

    path: Path
    commit: str
    files: int
    size: int


def model_folder() -> "ModelFolder":
    """Return the user's folder of models."""
    from agent_workbench.adapters.model_files.model_folder import ModelFolder
    from agent_workbench.system.user_dirs import data_dir

    return ModelFolder(data_dir() / "models")


def pull_model(named: str, progress: Progress) -> PulledModel:
    """Bring a model (`OWNER/NAME[:QUANT]`) into the folder of models, each file proved by its checksum.

    The commit is chosen once, and all files are of it. Raises `UsageError` for a name that there is none of,
    `StorageError` without the room, `ModelError` if the hub does not answer or what came is wrong.
    """
    from agent_workbench.adapters.model_files.hub import (
        check_room,
        download,
        find_revision,
        have,
        partial_of,
        target_of,
    )
    from agent_workbench.core.model_files import read_hub_name, wanted_files

    name = read_hub_name(named)
    revision = find_revision(name)
    files = wanted_files(revision)
    folder = model_folder()
    place = folder.of(name)
    missing = [each for each in files if not target_of(place, each).is_file()]
    check_room(place, sum(each.size - have(partial_of(place, each)) for each in missing))
    paths = []
    for file in files:
        there = 0

        def more(count: int, path: str = file.path, size: int = file.size) -> None:
            nonlocal there
            there += count
            progress(path, min(there, size), size)

        paths.append(download(revision, file, place, more))
    folder.keep(revision, files)
    return PulledModel(paths[0], revision.commit, len(files), sum(each.size for each in files))


def stored_models() -> "tuple[StoredModel, ...]":
    """Return the models in the folder of models."""
    return model_folder().stored()


def remove_model(named: str) -> int:
    """Remove a model and return the freed bytes; raise `UsageError` if it is not there."""
    from agent_workbench.core.model_files import read_hub_name

    return model_folder().remove(read_hub_name(named))
