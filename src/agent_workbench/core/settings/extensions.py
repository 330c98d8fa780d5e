"""Settings of tool servers and of hooks, and of the keys and passwords that runs of playbooks may use."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct

from agent_workbench.core.errors import ConfigError
from agent_workbench.core.recorded_value import RecordedValue

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}", re.ASCII)
ENTRY_CHARS = 12
MAX_PROGRAM_CHARS = 80


class ToolServerSettings(Struct, frozen=True):
    """One MCP server: a program that speaks over its standard streams, or an address."""

    command: str = ""
    """A program that serves tools over MCP on its standard streams: a name on your `PATH`, or a path relative to the
    repo.
    """
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment of the program, all of it besides `PATH`, `HOME` and the locale; `${NAME}` is a variable of yours,
    `${NAME:-text}` one with a default.
    """
    url: str = ""
    """The address of a server (Streamable HTTP) in place of a program."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers for that address; secrets only as `${NAME}`."""
    read: tuple[str, ...] = ()
    """Files and folders that the program may read: `~` is your home, other paths are relative to the repo. Without them
    it sees neither your home nor the repo.
    """
    write: tuple[str, ...] = ()
    """Existing files and folders that it may write; never the repo."""
    network: bool = False
    """Let the program reach the network."""
    unconfined: bool = False
    """Run the program outside of the sandbox, with your rights."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables whose values the server gets, each once."""
        texts = (value for _, value in (*self.env, *self.headers))
        return tuple(dict.fromkeys(match[1] for text in texts for match in _REFERENCE.finditer(text)))

    @property
    def identity(self) -> str:
        """Program or address, with a digest of the whole entry; no argument and no value of a variable is in it."""
        # The checks of the settings admit no user, query or fragment in an address; this does not rely on them.
        shown = re.sub(r"[?#].*|(?<=//)[^/]*@", "", self.url) or self.command
        # Built from the fields one by one: an entry of a new version has the same digest as long as it means the same.
        texts = "\0".join(_texts(self))
        return (
            f"{shown[:MAX_PROGRAM_CHARS]} (entry {sha256(texts.encode('utf-8', 'replace')).hexdigest()[:ENTRY_CHARS]})"
        )


def _texts(entry: ToolServerSettings) -> Iterator[str]:
    for name in ("command", "url"):
        yield f"{name}={getattr(entry, name)}"
    for name in ("args", "env", "headers", "read", "write"):
        yield f"{name}={getattr(entry, name)!r}"
    yield f"network={entry.network} unconfined={entry.unconfined}"


def resolved(pairs: tuple[tuple[str, str], ...], environ: Mapping[str, str], server: str) -> dict[str, str]:
    """Return the pairs with the values of the variables that they name.

    Raises `ConfigError` for a variable that is not set and has no default.
    """

    def value(match: re.Match[str]) -> str:
        found = environ.get(match[1], "") or match[2]
        if found is None:
            raise ConfigError(
                f"the MCP server {server} needs the environment variable {match[1]}, which is not set",
                advice=f"set {match[1]}, or change mcp_servers.{server}",
            )
        return found

    return {name: _REFERENCE.sub(value, text) for name, text in pairs}


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


class HookPoint(StrEnum):
    """Event that a hook runs on. The spelling of those before a decision is `<permission>_proposed`."""

    DIFF_PROPOSED = "diff_proposed"
    CHECK_PROPOSED = "check_proposed"
    COMMAND_PROPOSED = "command_proposed"
    COMMIT_PROPOSED = "commit_proposed"
    MERGE_PROPOSED = "merge_proposed"
    PLAN_PROPOSED = "plan_proposed"
    KNOWLEDGE_PROPOSED = "knowledge_proposed"
    SCRIPT_PROPOSED = "script_proposed"
    EXTERNAL_PROPOSED = "external_proposed"
    INFRASTRUCTURE_PROPOSED = "infrastructure_proposed"
    WAITS_FOR_PERSON = "waits_for_person"
    TASK_STARTED = "task_started"
    DIFF_APPLIED = "diff_applied"
    CHECKS_FINISHED = "checks_finished"
    TASK_DONE = "task_done"
    TASK_FAILED = "task_failed"
    TASK_MERGED = "task_merged"

    @property
    def is_proposal(self) -> bool:
        """True for an event before a decision: its hooks may refuse the proposal, or ask for a person."""
        return self.value.endswith("_proposed")


class HookSettings(Struct, frozen=True):
    """One hook: a command line for the shell, and the events it runs on."""

    events: tuple[HookPoint, ...] = ()
    """The events on which a command runs. A hook on a proposal may refuse it or ask for a person."""
    command: str = ""
    """A line for the shell; the event is JSON on its standard input."""
    timeout_seconds: float = 30.0
    """Time limit of the command in seconds, 600 at most."""
    network: bool = False
    """Let the command reach the network."""
    unconfined: bool = False
    """Run the command outside of the sandbox, with your rights."""


class ConfiguredHook(RecordedValue, frozen=True):
    """A hook of a session: its name, its events, and the beginning of the digest of its entry."""

    name: str
    events: tuple[HookPoint, ...]
    entry: str = ""


def configured(name: str, hook: HookSettings) -> ConfiguredHook:
    """Return what a session records of a hook; no command line is in it."""
    said = f"{hook.command}\0{hook.timeout_seconds}\0{hook.network}\0{hook.unconfined}"
    return ConfiguredHook(name, hook.events, sha256(said.encode("utf-8", "replace")).hexdigest()[:ENTRY_CHARS])
