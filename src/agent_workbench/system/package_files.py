"""Folders of files that are installed with the package."""

from importlib import resources
from pathlib import Path


def packaged_folder(name: str) -> Path | None:
    """Return the folder of that name, None if there is none (in a zip file). Blocks.

    It is in the package, or beside the source in a checkout.
    """
    package = resources.files("agent_workbench")
    if not isinstance(package, Path):
        return None
    built_in = package / "_data" / name
    if built_in.is_dir():
        return built_in
    checkout = package.parent.parent
    beside = checkout / name
    return beside if (checkout / "pyproject.toml").is_file() and beside.is_dir() else None
