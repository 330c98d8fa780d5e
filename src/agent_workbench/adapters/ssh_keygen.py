"""Runner of `ssh-keygen`, bounded, without a shell or prompts; and this machine's key, configured or made."""

import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_workbench.core.errors import SigningError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.atomic_files import sync_directory, sync_file
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular, read_regular
from agent_workbench.system.programs import find_program

SECONDS = 10.0
"""Deadline of one run; it takes some ten milliseconds, and a security key may wait for a touch."""
MOST_BYTES = 16_000_000
"""Limit of a message."""
AGENT_SOCKET = "SSH_AUTH_SOCK"
_INSTALL = "install OpenSSH 8.9 or newer (Debian: openssh-client) and see that ssh-keygen is on the PATH"
_MOST_ERROR_CHARS = 300

_OTHERS = 0o077
_MOST_PUBLIC_BYTES = 20_000
_PUBLIC = ".pub"


class SshKeygen:
    """The program `ssh-keygen`. Each method blocks; each raises `SigningError` if it cannot be run.

    It is looked for on the PATH of `environ`, outside of the `forbidden` folders. The user's home and ssh settings
    have no influence. The agent's socket is passed on only where a caller says so.
    """

    def __init__(self, environ: Mapping[str, str], *forbidden: str, seconds: float = SECONDS) -> None:
        self._path = environ.get("PATH", "")
        self._socket = environ.get(AGENT_SOCKET, "")
        self._forbidden = forbidden
        self._seconds = seconds
        self._found = ""

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, agent: bool = False) -> tuple[bytes, str]:
        """Return what was printed, and what it said on standard error, empty if it succeeded."""
        if len(stdin) > MOST_BYTES:
            raise SigningError(f"{len(stdin):,} bytes cannot be signed", advice=f"up to {MOST_BYTES:,} are")
        environment = {"LC_ALL": "C", **({AGENT_SOCKET: self._socket} if agent and self._socket else {})}
        program = self._program()
        try:
            with subprocess.Popen(
                [program, *arguments],
                cwd="/",
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # without a terminal nothing can be asked
            ) as process:
                try:
                    out, err = self._communicate(process, stdin)
                except subprocess.TimeoutExpired:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    raise SigningError(
                        f"ssh-keygen did not end within {self._seconds:g} s",
                        advice="a key that waits for a touch or a passphrase cannot sign unattended",
                    ) from None
        except OSError as error:
            raise SigningError(f"{program} could not be started: {error.strerror}", advice=_INSTALL) from error
        return out, "" if process.returncode == 0 else _last_line(err) or f"exit code {process.returncode}"

    def _communicate(self, process: "subprocess.Popen[bytes]", stdin: bytes) -> tuple[bytes, bytes]:
        """Return what a process printed; where this one was frozen for the whole time, look once more."""
        try:
            return process.communicate(stdin, timeout=self._seconds)
        except subprocess.TimeoutExpired:
            return process.communicate(timeout=min(self._seconds, 1.0))

    def _program(self) -> str:
        if not self._found:
            self._found = find_program("ssh-keygen", self._path, *self._forbidden) or ""
        if not self._found:
            raise SigningError("ssh-keygen was not found", advice=_INSTALL)
        return self._found


def _last_line(err: bytes) -> str:
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    return quoted(lines[-1].strip(), _MOST_ERROR_CHARS) if lines else ""


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
