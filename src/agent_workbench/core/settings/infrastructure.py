"""Settings of playbook runs: the keys and passwords of the user that a run may use."""

from msgspec import Struct


def expand_home(path: str, home: str) -> str:
    """Return a path of the settings with the user's home folder in place of `~`."""
    return f"{home}/{path[2:]}" if path.startswith("~/") and home else path


class InfrastructureSettings(Struct, frozen=True):
    """Access of an approved playbook run besides the network. Set by the user alone."""

    ssh_keys: tuple[str, ...] = ()
    """Private keys that an approved run of a playbook may read, as absolute paths or with `~/`. All keys of
    `infrastructure` belong in your own settings; in a repository's `.agent.yml` they are refused.
    """
    ssh_agent: bool = False
    """An approved run may use your SSH agent (`SSH_AUTH_SOCK`)."""
    known_hosts: str = "~/.ssh/known_hosts"
    """File of host keys; a host that is not in it is not reached."""
    vault_password_env: str = ""
    """Environment variable with the password of Ansible Vault."""
    become_password_env: str = ""
    """Environment variable with the password for `become`."""
    run_seconds: float = 1800.0
    """Time limit of a run of a playbook."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that hold passwords."""
        return tuple(name for name in (self.vault_password_env, self.become_password_env) if name)
