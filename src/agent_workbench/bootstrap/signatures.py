"""Wiring of signatures: this machine's key, and whose signatures count."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import KEYS

if TYPE_CHECKING:  # loaded where a database is set
    from agent_workbench.adapters.signatures.ssh_signatures import SshSignatures
    from agent_workbench.bootstrap.shared_resources import SharingRepo
    from agent_workbench.core.settings.worker import DatabaseSettings

ALLOWED = "allowed_signers"


def shared_signatures(repo: "SharingRepo", settings: "DatabaseSettings") -> "SshSignatures":
    """Return the signatures of this machine, one object for each process. No key is read or made yet."""
    return repo.shared.signatures(settings, lambda: _signatures(repo, settings))


def allowed_signers(settings: "DatabaseSettings") -> Path:
    """Return the file of those whose signatures count here; it need not exist."""
    from agent_workbench.system.user_dirs import config_dir

    return Path(settings.allowed_signers) if settings.allowed_signers else config_dir() / ALLOWED


def _signatures(repo: "SharingRepo", settings: "DatabaseSettings") -> "SshSignatures":
    from agent_workbench.adapters.signatures.signing_key import SigningKey
    from agent_workbench.adapters.signatures.ssh_keygen import SshKeygen
    from agent_workbench.adapters.signatures.ssh_signatures import SshSignatures, principal_of
    from agent_workbench.system.user_dirs import describe_user, state_dir

    keygen = SshKeygen(repo.invocation.environ, str(repo.root))
    configured = Path(settings.signing_key) if settings.signing_key else None
    key = SigningKey(keygen, configured, state_dir() / KEYS / "signing_key")
    return SshSignatures(keygen, key, allowed_signers(settings), principal_of(describe_user()))
