"""Wiring of commands: what runs them, and the credentials of this process that none of them may see."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:  # loaded when a command is run
    from agent_workbench.adapters.shell.shell import SandboxedShell
    from agent_workbench.core.settings import Settings

SECRETS = "secrets"
"""Folder for files of secrets in the user's configuration folder, which the sandbox hides from commands."""
SHARED_STATE = ("queue", "workers", "forge", "inbox")
"""Folders of the state folder with locks that workers wait for: who may only read a file can lock it all the same."""


def command_shell(
    root: Path, settings: "Settings", invocation: Invocation, *, confined: bool = True
) -> "SandboxedShell":
    """Return the runner of commands of the repo at `root`; unless they are `confined`, without a sandbox.

    No command sees the user's folder of secrets, the state that workers share, nor the repo's `.env` if its key is in
    force.
    """
    from agent_workbench.adapters.shell.shell import SandboxedShell
    from agent_workbench.config.env_file import API_KEY, ENV_FILE
    from agent_workbench.system.user_dirs import config_dir, state_dir

    hidden = [str(config_dir() / SECRETS), *(str(state_dir() / each) for each in SHARED_STATE)]
    if API_KEY in invocation.environ and ENV_FILE not in settings.workspace.link:
        hidden.append(str(root / ENV_FILE))
    return SandboxedShell(settings.sandbox, str(root), invocation.environ, hidden=tuple(hidden), confined=confined)


def held_credentials(settings: "Settings", invocation: Invocation) -> tuple[str, ...]:
    """Return the names of what this process holds and commands must not read; blocks.

    These are variables with secrets, and the key of a model's server that this process starts.
    """
    from agent_workbench.adapters.journal.redaction import secret_names

    served = settings.model.path or any(endpoint.path for _, endpoint in settings.endpoints)
    own_key = ("the key of the model's server",) if served else ()
    return (*secret_names(invocation.environ, settings.key_variables), *own_key)
