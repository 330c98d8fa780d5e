"""Address of the git remote that machines share, and the environment in which git may speak with it."""

import os
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from agent_workbench.adapters.git.commands.detached_git import network_variables
from agent_workbench.adapters.git.commands.discovery import RepoPaths
from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.loopback import is_loopback
from agent_workbench.system.programs import find_program

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SCP = re.compile(r"(?:[A-Za-z0-9._-]+@)?\[?[A-Za-z0-9.:_-]+\]?:[^:].*")
_PROTOCOLS = ("file", "ssh", "https", "http")
# No question, no forwarding, no command of the host's configuration beyond the connection itself.
_SSH_OPTIONS = "-oBatchMode=yes -oConnectTimeout=20 -oForwardAgent=no -oClearAllForwardings=yes -oPermitLocalCommand=no"
# A repository on this machine is served with the rights of this process: nothing that it configures may run.
_LOCAL = (
    *("core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "core.fsmonitor=false"),
    *("receive.autogc=false", "receive.denyCurrentBranch=refuse"),
)


class RemoteAddress(Struct, frozen=True):
    """Address of a repository, and the one protocol by which it is reached.

    `safe` are folders of other users that the user's own git settings trust.
    """

    url: str
    protocol: str
    safe: tuple[str, ...] = ()

    @property
    def push_words(self) -> tuple[str, ...]:
        """Words of `git push` for this address."""
        return self._served("receive-pack")

    @property
    def fetch_words(self) -> tuple[str, ...]:
        """Words of `git fetch` and `git ls-remote` for this address."""
        return self._served("upload-pack")

    def _served(self, command: str) -> tuple[str, ...]:
        if self.protocol != "file":
            return ()
        settings = (*_LOCAL, *(f"safe.directory={each}" for each in self.safe))
        return (f"--{command}={shlex.join(('git', *(word for each in settings for word in ('-c', each)), command))}",)


def remote_address(text: str, plumbing: Plumbing, paths: RepoPaths) -> RemoteAddress:
    """Return the address that a setting names: a remote of the repository, a URL, or a path.

    Raises `ConfigError` for one that cannot be used, and for a password in it, which every process could read.
    """
    url = _configured(text, plumbing) if _NAME.fullmatch(text) and "/" not in text else text
    protocol = _protocol(url)
    if protocol == "file" and "://" not in url:
        url = str(Path(paths.root, url).resolve())
    address = urlsplit(url) if protocol != "file" and "://" in url else None
    if address is not None and (address.password or (protocol == "https" and address.username)):
        raise ConfigError(
            f"the address of the git remote {shown(address.hostname or '')} has credentials in it",
            advice="remove them; git's credential helpers in your own git settings, and SSH keys, are used",
        )
    if protocol == "http" and not is_loopback((address.hostname if address else "") or ""):
        raise ConfigError(f"{shown(url)} would send code unencrypted", advice="use https or ssh for the remote")
    return RemoteAddress(url, protocol, _safe(plumbing) if protocol == "file" else ())


def _safe(plumbing: Plumbing) -> tuple[str, ...]:
    """Return the trusted folders of other users, as git does: of all settings but the repository's own."""
    told = plumbing.attempt("config", "--show-scope", "--get-all", "-z", "safe.directory").out
    words = os.fsdecode(told).split("\0")[:-1]
    # An empty one, which takes back those before it, is kept.
    return tuple(
        value for scope, value in zip(words[::2], words[1::2], strict=True) if scope not in {"local", "worktree"}
    )


def _configured(name: str, plumbing: Plumbing) -> str:
    for key in (f"remote.{name}.pushurl", f"remote.{name}.url"):
        found = plumbing.attempt("config", "--get", key)
        if not found.status and (url := os.fsdecode(found.out).strip()):
            return url
    raise ConfigError(
        f"the repository has no remote {shown(name)}, through which machines share checkpoints",
        advice="add it with `git remote add`, or name another one in database.remote",
    )


def _protocol(url: str) -> str:
    scheme, found, _ = url.partition("://")
    if not found:
        scheme = "ssh" if _SCP.fullmatch(url) and not url.startswith(("/", ".")) else "file"
    helper = re.match(r"[A-Za-z0-9]+::", url) is not None
    if scheme not in _PROTOCOLS or helper or not url or url.startswith("-") or any(ord(each) < 32 for each in url):
        raise ConfigError(
            f"{shown(url)} is no address that checkpoints are pushed to",
            advice=f"set the remote of database.remote to a path, or an address with {', '.join(_PROTOCOLS)}",
        )
    return scheme


def remote_variables(address: RemoteAddress, paths: RepoPaths) -> dict[str, str]:
    """Return the variables that git needs to reach the remote: nothing of it is the repository's."""
    if address.protocol == "ssh":
        ssh = find_program("ssh", os.environ.get("PATH", ""), paths.root)
        passed = {name: os.environ[name] for name in ("HOME", "SSH_AUTH_SOCK", "USER") if name in os.environ}
        return {**passed, "GIT_SSH_COMMAND": f"{ssh or 'ssh'} {_SSH_OPTIONS}"}
    if address.protocol == "https":
        passed = {
            name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR") if name in os.environ
        }
        return {**passed, **network_variables()}
    return {}


def remote_settings(address: RemoteAddress, plumbing: Plumbing) -> tuple[tuple[str, str], ...]:
    """Return settings for git: checks of what is received, and the user's own credential helpers for https."""
    if address.protocol != "https":
        return _RECEIVED
    found = plumbing.attempt("config", "--global", "--get-regexp", "-z", r"^credential\.")
    helpers = [each.partition("\n")[::2] for each in os.fsdecode(found.out).split("\0") if each]
    return (*_RECEIVED, *helpers)


# What old histories have and cannot do harm is no reason to refuse them.
_HARMLESS = (
    *("zeroPaddedFilemode", "badTimezone", "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "badEmail"),
    *("badDate", "zeroPaddedDate", "missingNameBeforeEmail", "badName", "badDateOverflow", "badFilemode"),
)
_RECEIVED = (
    ("fetch.fsckObjects", "true"),
    ("fetch.unpackLimit", "1"),
    ("fetch.recurseSubmodules", "false"),
    ("transfer.credentialsInUrl", "die"),
    ("protocol.version", "2"),
    *((f"fetch.fsck.{each}", "ignore") for each in _HARMLESS),
)
