"""Wiring of the hooks that the settings name."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import command_shell
from agent_workbench.bootstrap.user_extensions import hidden_files
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded with a session
    from agent_workbench.adapters.shell.shell import SandboxedShell
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.settings.extensions import HookSettings
    from agent_workbench.subjects.hooks_adapter import HookCommands


def hook_commands(
    root: Path,
    settings: "Settings",
    of_repo: frozenset[str],
    invocation: Invocation,
    trusted: Callable[[str], bool],
) -> "HookCommands":
    """Return the hooks; those named in `of_repo` are the repository's. They see neither its `.env` nor its journals.

    `trusted` tells at each run whether the hook of this name is as the user trusted it.
    """
    from msgspec.structs import replace

    from agent_workbench.core.settings import SandboxSettings
    from agent_workbench.subjects.hooks_adapter import HookCommand, HookCommands

    shells: dict[tuple[bool, bool], SandboxedShell] = {}  # hooks with the same grants share the test of the sandbox

    def shell_of(hook: "HookSettings") -> "SandboxedShell":
        grants = (hook.network, hook.unconfined)
        if grants not in shells:
            own = replace(settings, sandbox=SandboxSettings(network=hook.network, user=settings.sandbox.user))
            shells[grants] = command_shell(root, own, invocation, confined=not hook.unconfined)
        return shells[grants]

    commands = {name: HookCommand(hook, shell_of(hook), name in of_repo) for name, hook in settings.hooks}
    return HookCommands(commands, str(root), trusted, hidden_files(root, settings))
