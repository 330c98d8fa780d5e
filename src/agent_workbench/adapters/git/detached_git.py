"""Git in an empty repository that only borrows the objects of the user's, so nothing that this one configures counts.

An address that a repository rewrites (`url.*.insteadOf`), a proxy or helper that it names, and its hooks would send
code or credentials elsewhere. What a server sends is bounded in time and size.
"""

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from agent_workbench.adapters.git.discovery import RepoPaths
from agent_workbench.adapters.git.plumbing import GitProgram, GitResult, limit_memory
from agent_workbench.core.errors import RepoError, StorageError, WorkspaceError
from agent_workbench.system.atomic_files import storage_error, write_atomically
from agent_workbench.system.command_bounds import check_record

_NETWORK = (
    *("https_proxy", "HTTPS_PROXY", "http_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
)
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("credential.helper", ""),
    ("http.followRedirects", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
_MAX_ERROR_BYTES = 1_000_000
_GRACE_SECONDS = 2.0


def network_variables() -> dict[str, str]:
    """Return the variables of this process that lead to the network: proxies and certificates."""
    return {name: os.environ[name] for name in _NETWORK if name in os.environ}


class DetachedGit:
    """An empty bare repository in `folder`, made when it is first used, beside the user's. Its methods block.

    `protocol` is the only one that git may speak. `settings` and `variables` are added to the few that git gets.
    """

    def __init__(
        self,
        program: GitProgram,
        paths: RepoPaths,
        folder: Path,
        protocol: str,
        settings: Sequence[tuple[str, str]] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._program = program
        self._paths = paths
        self.git_dir = folder / "repo.git"
        self._running: set[subprocess.Popen[bytes]] = set()
        self._environment = _environment(folder, paths, protocol, (*_SETTINGS, *settings), variables or {})

    def prepare(self) -> None:
        """Make the empty repository, or use the one that another process made; raise `StorageError`, `TrustError`."""
        check_record(self._paths.common_dir)  # a command of the agent shares nothing of the user's repository
        try:
            if not (self.git_dir / "HEAD").is_file():
                self._init()
            shallow = Path(self._paths.common_dir, "shallow")
            _keep_equal(self.git_dir / "shallow", shallow.read_bytes() if shallow.is_file() else None)
            # The variable of the same purpose is for one process; other readers need the objects too.
            _keep_equal(self.git_dir / "objects" / "info" / "alternates", f"{_objects(self._paths)}\n".encode())
        except OSError as error:
            raise storage_error(f"{self.git_dir} cannot be made", error) from error

    def _init(self) -> None:
        """Make the repository beside its place and move it there whole: another process may do the same."""
        with tempfile.TemporaryDirectory(dir=self.git_dir.parent) as folder:
            made = Path(folder) / "repo.git"
            words = ("init", "--quiet", "--bare", "--template=", f"--object-format={self._paths.algorithm}", str(made))
            result = self._run([self._program.path, *words], "init", None, 30.0, _MAX_ERROR_BYTES)
            if result.status:
                raise StorageError(f"{made} cannot be made: {result.err.strip()[:300]}")
            try:
                made.rename(self.git_dir)
            except OSError:
                if not (self.git_dir / "HEAD").is_file():
                    raise

    def run(
        self,
        *arguments: str,
        seconds: float,
        stdin: bytes | None = None,
        max_output: int = 64_000_000,
        max_file: int = 0,
    ) -> GitResult:
        """Run git and return the result.

        Raises `StorageError` if it does not end in time, `WorkspaceError` if it prints more than `max_output` bytes.
        A file that it writes may have `max_file` bytes (0: any number).
        """
        words = [self._program.path, f"--git-dir={self.git_dir}", *arguments]
        if max_file:  # a limit of the shell also holds for all programs that git starts
            words = ["/bin/sh", "-c", f'ulimit -f {max_file // 512} && exec "$@"', "sh", *words]
        return self._run(words, arguments[0], stdin, seconds, max_output)

    def stop(self) -> None:
        """End what runs now; whoever waits for it gets a result with a negative status."""
        for process in tuple(self._running):
            _kill(process)

    def _run(self, words: list[str], command: str, stdin: bytes | None, seconds: float, max_output: int) -> GitResult:
        process = _start(words, self._environment, stdin)
        self._running.add(process)
        try:
            return _result(process, command, stdin, seconds, max_output)
        finally:
            self._running.discard(process)


def _environment(
    folder: Path,
    paths: RepoPaths,
    protocol: str,
    settings: Sequence[tuple[str, str]],
    variables: Mapping[str, str],
) -> dict[str, str]:
    """Return the whole environment of git: no settings but these, no home, no helper that asks."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_GRAFT_FILE": "/dev/null/grafts",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _objects(paths),
        "GIT_CONFIG_COUNT": str(len(settings)),
        **variables,
    }
    for number, (name, value) in enumerate(settings):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


def _start(words: list[str], environment: Mapping[str, str], stdin: bytes | None) -> "subprocess.Popen[bytes]":
    try:
        process = subprocess.Popen(
            words,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            restore_signals=False,
        )
    except OSError as error:
        raise RepoError(f"git could not be started ({words[0]}): {error}") from error
    limit_memory(process.pid)
    return process


def _result(
    process: "subprocess.Popen[bytes]", command: str, stdin: bytes | None, seconds: float, max_output: int
) -> GitResult:
    if process.stdout is None or process.stderr is None:
        raise RepoError("git was started without pipes")
    with process:
        out, err = _Capture(process, process.stdout, max_output), _Capture(process, process.stderr, _MAX_ERROR_BYTES)
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(stdin or b"")
        late = threading.Event()
        timer = threading.Timer(seconds, _end, (process, late))
        timer.daemon = True
        timer.start()
        try:
            out.join()
            err.join()
            status = process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                _kill(process)
    if out.exceeded or err.exceeded:
        raise WorkspaceError(f"git {command} was ended: the remote sent more than {max_output:,} bytes of text")
    if late.is_set() and status:
        raise StorageError(f"git {command} did not end within {seconds:g} s")
    return GitResult(status, bytes(out.data), err.data.decode("utf-8", "replace"))


class _Capture(threading.Thread):
    """Reader of a pipe; the process is ended when it writes more than `limit` bytes."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes], limit: int) -> None:
        super().__init__(daemon=True)
        self._process, self._pipe, self._limit = process, pipe, limit
        self.data = bytearray()
        self.exceeded = False
        self.start()

    def run(self) -> None:
        while chunk := self._pipe.read1(1 << 16):  # type: ignore[attr-defined] # a pipe is a BufferedReader
            if len(self.data) + len(chunk) > self._limit:
                self.exceeded = True
                _kill(self._process)
                return
            self.data += chunk


def _end(process: "subprocess.Popen[bytes]", late: threading.Event) -> None:
    """End git and its children, after a moment in which git can remove its lock files."""
    late.set()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _keep_equal(path: Path, content: bytes | None) -> None:
    """Give a file this content (None: no file), unless it has it; other processes read it meanwhile."""
    if content is None:
        path.unlink(missing_ok=True)
    elif not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content)


def _objects(paths: RepoPaths) -> str:
    """Return the folder of the borrowed objects, quoted for git."""
    path = f"{paths.common_dir}/objects"
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
