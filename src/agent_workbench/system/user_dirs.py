"""Folders of the user for state, cache and configuration, folders of the package, and the user's name."""

import os
import re
from hashlib import sha256
from importlib import resources
from pathlib import Path

APPLICATION = "agent-workbench"


def state_dir() -> Path:
    """Return the folder for worktrees, locks and trust; `XDG_STATE_HOME` moves it. Nothing is created."""
    return _moved_by("XDG_STATE_HOME") or _platform_dirs()[0]


def cache_dir() -> Path:
    """Return the folder for data that can be rebuilt; `XDG_CACHE_HOME` moves it. Nothing is created."""
    return _moved_by("XDG_CACHE_HOME") or _platform_dirs()[1]


def config_dir() -> Path:
    """Return the folder for the user's configuration of all repos; `XDG_CONFIG_HOME` moves it. Nothing is created."""
    return _moved_by("XDG_CONFIG_HOME") or _platform_dirs()[2]


def data_dir() -> Path:
    """Return the folder for data that is costly to bring again, such as models; `XDG_DATA_HOME` moves it."""
    return _moved_by("XDG_DATA_HOME") or _platform_dirs()[3]


def describe_user() -> str:
    """Return the name of the user and of the machine, such as `ada@laptop`. Blocks."""
    import pwd
    import socket

    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"uid {user}"
    return f"{name}@{socket.gethostname()}"


def repo_key(common_git_dir: str) -> str:
    """Return a readable folder name for a repository, the same for all its worktrees and all spellings of its path."""
    real = Path(common_git_dir).resolve()
    name = real.parent.name if real.name == ".git" else real.name.removesuffix(".git")
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:40] or "repo"
    return f"{readable}-{sha256(os.fsencode(real)).hexdigest()[:12]}"


def _moved_by(variable: str) -> Path | None:
    """Return the workbench's folder below the one that an XDG variable names; relative paths are ignored."""
    folder = Path(os.environ.get(variable, ""))
    return folder / APPLICATION if folder.is_absolute() else None


def _platform_dirs() -> tuple[Path, Path, Path, Path]:
    from platformdirs import PlatformDirs

    places = PlatformDirs(APPLICATION, appauthor=False)
    return places.user_state_path, places.user_cache_path, places.user_config_path, places.user_data_path


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
