"""A process that works on vectors for us: whatever becomes of it, we get an answer or a reason, in bounded time."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.retrieval.vectors.wire import Message, NoMessage, decode, encode
from agent_workbench.host.handed_on import handed_on

_PACKAGE_FOLDER = Path(__file__).parents[4]
_AT_ONCE = 1024 * 1024
# How long one that was told to end may take: it has nothing to put in order.
_END_SECONDS = 2.0
# More only wait for each other, and a session should not take the whole machine.
_THREADS = "2"


class ChildLost(Exception):
    """The process is gone or gave no answer; the text says why. It was ended, and is not asked again."""


class Child:
    """`python -m MODULE ARGUMENTS`, asked one thing at a time over its standard input and output.

    It ends when its input does, so it does not outlive us. All methods block; `end` may be called from another thread.
    """

    def __init__(self, module: str, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it; raise `ChildLost` when that fails."""
        environment = handed_on(environ)
        environment |= {"PYTHONPATH": str(_PACKAGE_FOLDER), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), _THREADS)
        self._module = module
        self._asking = threading.Lock()
        try:
            # `-P`: the current folder may hold modules that pass for ours.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ChildLost(f"its process could not be started: {error}") from error
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout) if pipe is not None]
        self._input, self._output = (pipe.fileno() for pipe in self._pipes)
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, message: Message, seconds: float) -> Message:
        """Return its answer within `seconds`; raise `ChildLost` when there is none, or one that makes no sense."""
        deadline = time.monotonic() + seconds
        with self._asking:
            try:
                for part in encode(message):
                    self._write(part, deadline)
                return decode(lambda count: self._read(count, deadline))
            except NoMessage as error:
                self._kill()
                raise ChildLost(f"its process answered nonsense: {error}") from error
            except TimeoutError as error:
                self._kill()
                raise ChildLost(f"its process gave no answer within {seconds:.0f} s") from error
            except (EOFError, OSError, ValueError) as error:  # ValueError: ended by another thread meanwhile
                self._kill()
                raise ChildLost(f"its process {_ending(self._process.returncode)}") from error

    def end(self) -> None:
        """End it, in the middle of what it does if need be, and wait until it is gone."""
        if self._process.poll() is None:
            if self._asking.acquire(blocking=False):
                try:
                    self._pipes[0].close()
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(_END_SECONDS)
                finally:
                    self._asking.release()
            self._kill()
        with self._asking:  # whoever asked has heard by now that it is gone
            for pipe in self._pipes:
                pipe.close()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def _write(self, data: memoryview, deadline: float) -> None:
        while data:
            _wait(self._input, select.POLLOUT, deadline)
            with suppress(BlockingIOError):
                data = data[os.write(self._input, data[:_AT_ONCE]) :]

    def _read(self, count: int, deadline: float) -> bytearray:
        data = bytearray()
        while len(data) < count:
            _wait(self._output, select.POLLIN, deadline)
            with suppress(BlockingIOError):
                part = os.read(self._output, min(_AT_ONCE, count - len(data)))
                if not part:
                    raise EOFError
                data += part
        return data


def _wait(descriptor: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended (status {status})"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
