"""Wiring of commands and language servers: what runs them, and the credentials that none of them may see."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded when a command is run
    from agent_workbench.adapters.language_servers import InstalledServers
    from agent_workbench.adapters.shell.environment import WorktreeEnvironments
    from agent_workbench.adapters.shell.shell import SandboxedShell
    from agent_workbench.core.settings import Settings

SECRETS = "secrets"
"""Folder for files of secrets in the user's configuration folder, which the sandbox hides from commands."""
SHARED_STATE = ("queue", "workers", "forge", "inbox")
"""Folders of the state folder with locks that workers wait for: who may only read a file can lock it all the same."""

KEYS = "keys"
"""Folder of the state folder with the key that was made to sign and the sign-ins at MCP servers, hidden from every
command."""


def command_shell(
    root: Path, settings: "Settings", invocation: Invocation, *, confined: bool = True
) -> "SandboxedShell":
    """Return the runner of commands of the repo at `root`; unless they are `confined`, without a sandbox.

    No command sees the user's folder of secrets, a key that signs or is named for playbooks, the state that workers
    share, nor the repo's `.env` if its key is in force. Blocks.
    """
    from agent_workbench.adapters.shell.shell import SandboxedShell
    from agent_workbench.config.env_file import API_KEY, ENV_FILE
    from agent_workbench.core.settings.extensions import expand_home
    from agent_workbench.system.user_dirs import config_dir, state_dir

    hidden = [str(config_dir() / SECRETS), *(str(state_dir() / each) for each in SHARED_STATE), *signing_keys(settings)]
    home = invocation.environ.get("HOME", "")
    hidden += [expand_home(each, home) for each in settings.infrastructure.ssh_keys]
    if API_KEY in invocation.environ and ENV_FILE not in settings.workspace.link:
        hidden.append(str(root / ENV_FILE))
    return SandboxedShell(settings.sandbox, str(root), invocation.environ, hidden=tuple(hidden), confined=confined)


def language_servers(
    root: Path,
    invocation: Invocation,
    shell: "SandboxedShell",
    environments: "WorktreeEnvironments",
    trusted: Callable[[], bool],
    say: Callable[[str], None],
) -> "InstalledServers":
    """Return the language servers that are installed; none is started yet."""
    from agent_workbench.adapters.language_servers import InstalledServers, ServerSurroundings

    return InstalledServers(ServerSurroundings(str(root), invocation.environ, shell, environments.of, trusted, say))


def signing_keys(settings: "Settings") -> tuple[str, ...]:
    """Return the paths that commands must not see: the folder of the key that is made here, and the user's key.

    The folder is made: it could not be hidden from a command that runs while the first key is made. Blocks.
    """
    from agent_workbench.system.user_dirs import state_dir

    folder = state_dir() / KEYS
    with suppress(OSError):  # then no key can be made either
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = settings.database.signing_key
    return (str(folder), *((key,) if key else ()))


def held_credentials(settings: "Settings", invocation: Invocation) -> tuple[str, ...]:
    """Return the names of what this process holds and commands must not read; blocks.

    These are variables with secrets, the key of a model's server that this process starts, and the key that signs what
    machines share.
    """
    from agent_workbench.adapters.journal.redaction import secret_names

    served = settings.model.path or any(endpoint.path for _, endpoint in settings.endpoints)
    own_key = ("the key of the model's server",) if served else ()
    signs = ("the signing key",) if settings.database.active else ()
    return (*secret_names(invocation.environ, settings.key_variables), *own_key, *signs)
