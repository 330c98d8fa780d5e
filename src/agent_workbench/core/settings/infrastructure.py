"""Settings of playbook runs: the keys and passwords of the user that a run may use."""

from msgspec import Struct


def expand_home(path: str, home: str) -> str:
    """Return a path of the settings with the user's home folder in place of `~`."""
    return f"{home}/{path[2:]}" if path.startswith("~/") and home else path


class InfrastructureSettings(Struct, frozen=True):
    """Access of an approved playbook run besides the network. Set by the user alone.

    `ssh_keys` are files with private keys, `ssh_agent` passes on the user's SSH agent. Hosts are known by
    `known_hosts`, a file. The passwords of Ansible Vault and of `become` are in environment variables with these names.
    """

    ssh_keys: tuple[str, ...] = ()
    ssh_agent: bool = False
    known_hosts: str = "~/.ssh/known_hosts"
    vault_password_env: str = ""
    become_password_env: str = ""
    run_seconds: float = 1800.0

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that hold passwords."""
        return tuple(name for name in (self.vault_password_env, self.become_password_env) if name)
