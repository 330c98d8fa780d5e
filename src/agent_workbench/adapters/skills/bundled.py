"""Where the skills that ship are: in the package, or beside its source in a checkout."""

from importlib import resources
from pathlib import Path

_PACKAGE = "agent_workbench"


def bundled_skills() -> Path | None:
    """Return the folder of bundled skills, None where there is none (a package in a zip file). Blocks shortly."""
    package = resources.files(_PACKAGE)
    if not isinstance(package, Path):
        return None
    built_in = package / "_data" / "skills"
    if built_in.is_dir():
        return built_in
    checkout = package.parent.parent
    beside = checkout / "skills"
    return beside if (checkout / "pyproject.toml").is_file() and beside.is_dir() else None
