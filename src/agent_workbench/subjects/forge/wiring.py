"""Wiring of the forge: the adapter that the settings name, its git repository, and the lock of whoever talks to it."""

from typing import TYPE_CHECKING

from agent_workbench.core.errors import ConfigError

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ports.forge import Forge, ForgeRemote
    from agent_workbench.core.settings.worker import ForgeSettings
    from agent_workbench.system.locks import FileLock


def repo_forge(repo: "RepoContext", settings: "ForgeSettings") -> "tuple[Forge, ForgeRemote]":
    """Return the forge and its git repository; raise `ConfigError` if the token is missing. No request is sent."""
    from agent_workbench.adapters.git.remote_transport import ForgePush
    from agent_workbench.core.settings.worker import ForgeKind
    from agent_workbench.subjects.forge.gitea_adapter import GiteaForge
    from agent_workbench.subjects.forge.github_adapter import GithubForge

    name = settings.token_variable
    token = repo.invocation.environ.get(name, "").strip()
    if not token:
        raise ConfigError(
            f"the forge's token is missing: the variable {name} is empty",
            advice="put the token into it, or name another variable in forge.token_env",
        )
    address = f"{settings.url.rstrip('/')}/{settings.repo}.git"
    forge = GithubForge if settings.software is ForgeKind.GITHUB else GiteaForge
    return forge.at(settings, token), ForgePush(repo.root, address, token)


def forge_lock(repo: "RepoContext") -> "FileLock":
    """Return the lock of whoever talks to the forge for this repository: one at a time. Blocks."""
    from agent_workbench.system.atomic_files import make_directories
    from agent_workbench.system.locks import FileLock, describe_holder
    from agent_workbench.system.user_dirs import repo_key, state_dir

    folder = state_dir() / "forge"
    make_directories(folder)
    return FileLock(folder / f"{repo_key(str(repo.root))}.lock", describe_holder())
