"""Keys and passwords of the user for one run: files, the SSH agent, and values of environment variables."""

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import ConfigError
from agent_workbench.core.playbooks.access import RunAccess
from agent_workbench.core.settings.infrastructure import InfrastructureSettings, expand_home

AGENT = "SSH_AUTH_SOCK"
KNOWN_EVERYWHERE = "/etc/ssh/ssh_known_hosts"


class UserKeys(Struct, frozen=True):
    """What a run gets: key files, the socket of the SSH agent, the file of known hosts, and passwords by their kind."""

    files: tuple[str, ...] = ()
    agent: str = ""
    known_hosts: str = ""
    passwords: Mapping[str, str] = {}

    @property
    def ssh_arguments(self) -> str:
        """Options of `ssh`: these keys and known hosts, no settings of the user and no shared connections."""
        options = [
            *("-F", "/dev/null", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "BatchMode=yes"),
            *(
                "-o",
                "StrictHostKeyChecking=yes",
                "-o",
                f"UserKnownHostsFile={_quoted(self.known_hosts or '/dev/null')}",
            ),
            *(
                "-o",
                f"GlobalKnownHostsFile={KNOWN_EVERYWHERE}",
                "-o",
                f"IdentityAgent={'SSH_AUTH_SOCK' if self.agent else 'none'}",
            ),
            *(word for file in self.files for word in ("-i", _quoted(file))),
            *(("-o", "IdentitiesOnly=yes") if self.files and not self.agent else ()),
        ]
        return " ".join(options)


def named_access(settings: InfrastructureSettings) -> RunAccess:
    """Return the names of what the settings let a run use, as a gate shows them."""
    named = (("the vault password", settings.vault_password_env), ("the become password", settings.become_password_env))
    passwords = tuple(f"{what} in {variable}" for what, variable in named if variable)
    return RunAccess(settings.ssh_keys, settings.ssh_agent, passwords)


def user_keys(settings: InfrastructureSettings, environ: Mapping[str, str]) -> UserKeys:
    """Return what the settings name; raise `ConfigError` for what is not there. Blocks."""
    home = environ.get("HOME", "")
    known = Path(expand_home(settings.known_hosts, home)) if settings.known_hosts else None
    return UserKeys(
        files=tuple(_key_file(each, home) for each in settings.ssh_keys),
        agent=_agent(environ) if settings.ssh_agent else "",
        known_hosts=str(known.resolve()) if known is not None and known.is_file() else "",
        passwords={
            name: _password(variable, environ)
            for name, variable in (("vault", settings.vault_password_env), ("become", settings.become_password_env))
            if variable
        },
    )


def _key_file(said: str, home: str) -> str:
    path = Path(expand_home(said, home))
    if not path.is_absolute() or not path.is_file():
        raise ConfigError(
            f"infrastructure.ssh_keys: {said} is no file", advice="name the private key with an absolute path or `~/`"
        )
    return str(path.resolve())


def _agent(environ: Mapping[str, str]) -> str:
    path = environ.get(AGENT, "")
    try:
        there = bool(path) and stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - the path may be of another user
    except OSError:
        there = False
    if not there:
        raise ConfigError(
            f"infrastructure.ssh_agent is set, and {AGENT} names no socket", advice="start ssh-agent, or unset it"
        )
    return str(Path(path).resolve())


def _password(variable: str, environ: Mapping[str, str]) -> str:
    value = environ.get(variable, "")
    if not value:
        raise ConfigError(
            f"the environment variable {variable} is empty", advice="set it, or remove its name from `infrastructure`"
        )
    return value


def _quoted(path: str) -> str:
    """Return a path for `ANSIBLE_SSH_ARGS`, which Ansible splits like a shell."""
    return shlex.quote(path)
