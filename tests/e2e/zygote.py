"""Commands as forks of a process that has imported the workbench: real processes, without half a second of imports.

`python zygote.py DESCRIPTOR` serves requests on a socket; `Zygote` starts it and `Forked` is one of its commands. What
a fork cannot show is asked of processes that are started anew: what is imported when, and what the kernel tells of the
environment that a process began with (`/proc/<pid>/environ`).
"""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

REQUEST_BYTES = 1 << 20
# Not imported ahead: it is large, and few commands need it.
_LEFT_OUT = ("agent_workbench.tui",)
# What is imported by our modules only when it is used.
_USED_LATER = (
    *("tests.e2e.launcher", "numpy", "tree_sitter", "tree_sitter_python"),
    *("anyio._backends._asyncio", "certifi", "h11", "httpcore", "httpx", "platformdirs", "sqlite3", "unidiff"),
)
_CHECKOUT = Path(__file__).parents[2]


class Forked:
    """A command that a zygote runs; it is used as `subprocess.Popen` is."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._told = link.makefile("r")
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended; raise `TimeoutExpired` if it has not after so many seconds."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._link, selectors.EVENT_READ)
                if selector.select(seconds):
                    self.returncode = int(self._told.readline())
                    self._told.close()
                    self._link.close()
        return self.returncode


class Zygote:
    """Starts commands as forks; itself started when it is first needed, it ends with the tests."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None

    def start(
        self,
        arguments: Sequence[str],
        *,
        plan: str = "",
        cwd: Path,
        environ: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
    ) -> Forked:
        """Start `agent` with these arguments; with a `plan`, as `launcher.py` does."""
        ours, theirs = socket.socketpair()
        request = {"arguments": list(arguments), "plan": plan, "cwd": str(cwd), "environ": dict(environ)}
        with theirs, Path(os.devnull).open("rb") as nothing:
            descriptors = [theirs.fileno(), nothing.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(self._running(), [json.dumps(request).encode()], descriptors)
        return Forked(ours)

    def _running(self) -> socket.socket:
        if self._control is None:
            # Packets, so that each request is read whole and with its own descriptors.
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            # The library below numpy would start threads, and a process that has some must not be forked.
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, _paths())), "OPENBLAS_NUM_THREADS": "1"}
            with theirs:
                command = [sys.executable, "-P", "-W", "default", __file__, str(theirs.fileno())]
                process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environ)
            atexit.register(self._end, process)
        return self._control

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if self._control is not None:
            self._control.close()
        process.wait()


def can_fork() -> bool:
    """Return whether this system has what a zygote needs."""
    return hasattr(os, "pidfd_open") and hasattr(socket, "send_fds")


def _paths() -> tuple[str, str | None]:
    return str(_CHECKOUT), os.environ.get("PYTHONPATH")


def serve(control: socket.socket) -> Callable[[], object]:
    """Start what is asked for; return in each fork, with what it has to do. The zygote itself ends with its tests."""
    links: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd != control.fileno():
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _tell_end(*links.pop(key.fd))
                    continue
                data, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 4)
                if not data:
                    sys.exit()
                link = socket.socket(fileno=descriptors[0])
                child = os.fork()
                if child == 0:
                    for handle in (control, link, *(each for _, each in links.values())):
                        handle.close()
                    return _prepare(json.loads(data), descriptors[1:])
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                link.sendall(b"%d\n" % child)
                watched = os.pidfd_open(child)
                links[watched] = (child, link)
                selector.register(watched, selectors.EVENT_READ)


def _tell_end(child: int, link: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with link:
        try:
            link.sendall(b"%d\n" % code)
        except BrokenPipeError:  # whoever started it has lost interest
            return


def _prepare(request: Mapping[str, object], descriptors: Sequence[int]) -> Callable[[], object]:
    """Make this fork what a new process would be, and return what it is to run."""
    # The tests may run under nohup or in the background of a shell: their commands do not.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), line_buffering=True, errors="backslashreplace"
    )
    environ, arguments, plan = request["environ"], request["arguments"], request["plan"]
    assert isinstance(environ, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(str(request["cwd"]))
    sys.argv = ["agent", *arguments]
    if plan:
        from tests.e2e import launcher

        return lambda: sys.exit(launcher.main(str(plan), *arguments))
    from agent_workbench.cli.main import main

    return main


def run_to_end(command: Callable[[], object]) -> NoReturn:
    """Run the command of a fork and end the process as the interpreter does, but leave its memory to the kernel.

    To free each object that was imported ahead would copy all of its memory: nine tenths of what a short command costs.
    What nobody refers to is still looked for, because it warns if it was not closed.
    """
    code: object = None
    try:
        command()
    except SystemExit as ended:
        code = ended.code
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads; the interpreter has no public name for it
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def import_ahead() -> None:
    """Import what commands import sooner or later."""
    import agent_workbench

    def leave_out(name: str) -> None:
        raise ImportError(name)

    for module in pkgutil.walk_packages(agent_workbench.__path__, "agent_workbench.", leave_out):
        if not module.name.startswith(_LEFT_OUT) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _USED_LATER:
        importlib.import_module(name)
    tasks = Path("/proc/self/task")
    assert not tasks.is_dir() or len(list(tasks.iterdir())) == 1, "a process with threads must not be forked"
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    import_ahead()
    run_to_end(serve(socket.socket(fileno=int(sys.argv[1]))))
