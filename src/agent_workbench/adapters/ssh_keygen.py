"""Runner of `ssh-keygen`: by absolute path, without a shell, a terminal or prompts, bounded in time and size."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from agent_workbench.core.errors import SigningError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.programs import find_program

SECONDS = 10.0
"""Deadline of one run; it takes some ten milliseconds, and a security key may wait for a touch."""
MOST_BYTES = 16_000_000
"""Limit of a message."""
AGENT_SOCKET = "SSH_AUTH_SOCK"
_INSTALL = "install OpenSSH 8.9 or newer (Debian: openssh-client) and see that ssh-keygen is on the PATH"
_MOST_ERROR_CHARS = 300


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
