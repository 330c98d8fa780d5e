"""What goes wrong in a night: workers are killed, the model's server is restarted, the disk is full."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_workbench.adapters.llama_cpp.embedded_server import server_command
from agent_workbench.core.local_models import ServerOptions
from tests.e2e.machine import Done, Machine, Running
from tests.faults.night_scene import PROJECT, Scene

API_KEY = "the-key-of-this-night"
CONTEXT_TOKENS = 8192
DISK_MEGABYTES = 48
# Where no disk can be mounted: no file of this worker grows over 8 kB.
SMALL_FILES = ("bash", "-c", 'ulimit -f 8; export PYTHONDONTWRITEBYTECODE=1; exec "$@"', "bash")


class ModelServer:
    """llama.cpp's server behind one address that stays; `stop` and `start` are a restart."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._process: subprocess.Popen[bytes] | None = None
        self._listening: socket.socket | None = None
        self._links: list[socket.socket] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = free.getsockname()

    @property
    def environ(self) -> dict[str, str]:
        """Variables that name the server."""
        return {
            "AGENT_MODEL__URL": f"http://127.0.0.1:{self._address[1]}",
            "AGENT_MODEL__API_KEY_ENV": "NIGHT_API_KEY",
            "NIGHT_API_KEY": API_KEY,
        }

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = server_command(
            self._model,
            options=ServerOptions(CONTEXT_TOKENS, threads=1),
            server="",
            api_key=API_KEY,
            environ=os.environ,
        )
        self._process = subprocess.Popen(
            command.argv, env=command.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if b"listening on http" in line:
                port = int(line.rpartition(b":")[2].strip(b"/ \n"))
                break
        else:
            raise AssertionError("the model's server did not start")
        self._listening = socket.create_server(self._address)
        threading.Thread(target=self._serve, args=(self._listening, port), daemon=True).start()

    def stop(self) -> None:
        """Kill it: every connection breaks, and a new one is refused."""
        if self._listening is not None:
            # Else the thread would still take one connection.
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()
        self._links.clear()

    def _serve(self, listening: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", port))
                self._links += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Disk:
    """The disk of `folder`. Where one can be mounted, it is small, and `fill` and `clear` make it full and free."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._filler = folder / ".filler"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "none", str(folder)],
            capture_output=True,
            check=False,
        )
        self.mounted = done.returncode == 0

    def fill(self) -> None:
        """Take all that is free."""
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(b"x")

    def clear(self) -> None:
        """Give it back."""
        self._filler.unlink(missing_ok=True)

    def end(self) -> None:
        """Unmount it, if it was mounted; what is on it stays."""
        if self.mounted:
            kept = self._folder.with_name("kept")
            shutil.copytree(self._folder, kept, symlinks=True)
            subprocess.run(["umount", "-l", str(self._folder)], check=True)
            shutil.copytree(kept, self._folder, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(kept)


class Workers:
    """Workers on the queue of a scene, each started again when it is killed."""

    def __init__(self, machine: Machine, scene: Scene, number: int) -> None:
        self._machine = machine
        self._scene = scene
        self.running = [self._start() for _ in range(number)]
        self.killed: list[Running] = []

    def _start(self, prefix: Sequence[str] = ()) -> Running:
        command = ("worker", "--watch", "--project", PROJECT, "--policy", "policy.yml", "--log-format", "json")
        return self._machine.start(*command, cwd=self._scene.repo, scripts=self._scene.scripts, prefix=prefix)

    def kill(self, index: int, *, small_files: bool = False) -> None:
        """Kill a worker with SIGKILL, and start another one in its place; its files stay small if that is said."""
        victim = self.running[index]
        victim.send(signal.SIGKILL)
        self.killed.append(victim)
        self.running[index] = self._start(SMALL_FILES if small_files else ())

    def end(self) -> list[Done]:
        """End all of them with SIGTERM; return how each ended."""
        return [each.send(signal.SIGTERM) for each in self.running]

    def logs(self) -> str:
        """Return what all of them printed."""
        return "".join(each.out.read_text() + each.err.read_text() for each in (*self.killed, *self.running))


@contextlib.contextmanager
def model_server(model: Path) -> Iterator[ModelServer]:
    """Give a server that runs, and end it."""
    server = ModelServer(model)
    server.start()
    try:
        yield server
    finally:
        server.stop()
