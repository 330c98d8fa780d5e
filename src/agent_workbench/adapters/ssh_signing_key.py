"""This machine's key: the one of the settings, or one made in the state folder."""

import os
import secrets
import shlex
from pathlib import Path

from agent_workbench.adapters.ssh_keygen import SshKeygen
from agent_workbench.core.errors import SigningError
from agent_workbench.system.atomic_files import sync_directory, sync_file
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular, read_regular

_OTHERS = 0o077
_MOST_PUBLIC_BYTES = 20_000
_PUBLIC = ".pub"


class SigningKey:
    """A private key in a file that only this user can read. Each method blocks and raises `SigningError`.

    A path that ends in `.pub` is a public key whose private one is in the ssh-agent. A key in `generated` is made when
    it is first needed.
    """

    def __init__(self, keygen: SshKeygen, configured: Path | None, generated: Path) -> None:
        self._keygen = keygen
        self._path = configured or generated
        self._is_ours = configured is None
        self._public = ""

    def exists(self) -> bool:
        """Return False if the key is yet to be made."""
        return not self._is_ours or self._path.exists()

    def sign(self, namespace: str, message: bytes) -> str:
        """Return the armored signature of a message; raise `TrustError` in a command of the agent."""
        check_record(self._path)
        self._check()
        agent = self._path.suffix == _PUBLIC
        out, problem = self._keygen.run(
            ("-Y", "sign", "-q", "-n", namespace, "-f", str(self._path)), message, agent=agent
        )
        if problem:
            raise self._unusable(problem)
        return out.decode("ascii", "replace").strip()

    def public(self) -> str:
        """Return the public key as `TYPE BASE64`."""
        if not self._public:
            self._check()
            if self._path.suffix == _PUBLIC:
                out, problem = read_regular(self._path, _MOST_PUBLIC_BYTES, follow=True), ""
            else:
                out, problem = self._keygen.run(("-y", "-P", "", "-f", str(self._path)))
            words = out.decode("utf-8", "replace").split()
            if problem or len(words) < 2:
                raise self._unusable(problem or "it is not a public key")
            self._public = f"{words[0]} {words[1]}"
        return self._public

    def _check(self) -> None:
        """Make a key if there is none and it is ours to make; refuse one that others can read."""
        try:
            if self._is_ours and not self._path.exists():
                self._generate()
            descriptor = open_regular(self._path, follow=not self._is_ours)
            try:
                facts = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SigningError(
                f"the signing key {self._path} cannot be read: {error.strerror}",
                advice="`database.signing_key` names the file of a private key, or of a public one (.pub) in ssh-agent",
            ) from error
        if self._path.suffix == _PUBLIC:
            return
        if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS:
            raise SigningError(
                f"the signing key {self._path} can be read by others (mode {facts.st_mode & 0o777:o})",
                advice=f"`chmod 600 {shlex.quote(str(self._path))}`; if others could have read it, make a new one",
            )

    def _generate(self) -> None:
        """Make a key that is there whole or not at all; of two processes at once one makes it."""
        check_record(self._path)
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        fresh = folder / f".{secrets.token_hex(8)}"
        try:
            _, problem = self._keygen.run(("-q", "-t", "ed25519", "-N", "", "-C", "agent-workbench", "-f", str(fresh)))
            if problem:
                raise SigningError(f"no signing key could be made in {folder}: {problem}", advice="check the folder")
            descriptor = os.open(fresh, os.O_RDONLY | os.O_CLOEXEC)
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)
            try:
                os.link(fresh, self._path, follow_symlinks=False)
            except FileExistsError:
                return
            sync_directory(folder)
        finally:
            fresh.unlink(missing_ok=True)
            fresh.with_name(f"{fresh.name}{_PUBLIC}").unlink(missing_ok=True)

    def _unusable(self, problem: str) -> SigningError:
        return SigningError(
            f"the signing key {self._path} cannot be used: {problem}",
            advice="it needs no passphrase, or is named by its .pub file with the private key in ssh-agent",
        )
