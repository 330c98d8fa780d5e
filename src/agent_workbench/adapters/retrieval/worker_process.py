"""Worker process and its requests: bounded messages, each answered in bounded time or with a reason."""

import asyncio
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from agent_workbench.adapters.retrieval.worker_frames import (
    MAX_BYTES,
    Frame,
    InvalidFrame,
    Part,
    frame,
    read_frame,
    serve,
)
from agent_workbench.system.atomic_files import system_message
from agent_workbench.system.programs import child_environment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


_AT_ONCE = 1024 * 1024
# Time for an ordinary end: the process has nothing to clean up.
_END_SECONDS = 2.0
# More threads would mostly wait for each other, and would take the whole machine.
_THREADS = "2"

_Result = TypeVar("_Result")

_KINDS = {"float32", "int32", "int64", "uint8"}
_MAX_AXES = 2

_NICENESS = 10

Fact = str | int


class WorkerLost(Exception):
    """The process died or gave no valid answer; the message says why. It was ended."""


class WorkerProcess:
    """Python process with these arguments that runs a `request_loop`; it takes one request at a time.

    It ends when its input is closed, so it does not outlive the session. All methods block; `kill` and `end` may be
    called from another thread.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start the process with our module path and without secrets; raise `WorkerLost` if that fails."""
        paths = os.pathsep.join(path for path in sys.path if Path(path).is_absolute())
        environment = child_environment(environ) | {"PYTHONPATH": paths}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), _THREADS)
        self.lives = True
        self._asking = threading.Lock()
        try:
            # `-P`: modules in the current folder must not shadow ours. A new session: Ctrl-C must not reach the
            # process.
            self._process = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise WorkerLost(f"its process could not be started: {error}") from error
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout) if pipe is not None]
        self._input, self._output = (pipe.fileno() for pipe in self._pipes)
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, head: object, parts: Sequence[Part], seconds: float) -> Frame:
        """Return the answer within `seconds`; raise `WorkerLost` if there is none or an invalid one."""
        deadline = time.monotonic() + seconds
        with self._asking:
            try:
                for part in frame(head, parts):
                    self._write(part, deadline)
                return read_frame(lambda count: self._read(count, deadline))
            except InvalidFrame as error:
                self._kill()
                raise WorkerLost(f"its process answered nonsense: {error}") from error
            except TimeoutError as error:
                self._kill()
                raise WorkerLost(f"its process gave no answer within {seconds:.0f} s") from error
            except (EOFError, OSError, ValueError) as error:  # ValueError: ended by another thread meanwhile
                self._kill()
                raise WorkerLost(f"its process {_exit_reason(self._process.returncode)}") from error

    def kill(self) -> None:
        """Kill the process without waiting for its end."""
        self.lives = False
        with suppress(ProcessLookupError):
            self._process.kill()

    def end(self) -> None:
        """End the process, in the middle of a request if need be, and wait until it is gone."""
        self.lives = False
        if self._process.poll() is None:
            if self._asking.acquire(blocking=False):
                try:
                    self._pipes[0].close()
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(_END_SECONDS)
                finally:
                    self._asking.release()
            self._kill()
        with self._asking:  # a running request ends first, with an error
            for pipe in self._pipes:
                pipe.close()

    def _kill(self) -> None:
        self.kill()
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


def _exit_reason(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended (status {status})"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


async def in_thread(work: Callable[[], _Result], stop: threading.Event | None = None) -> _Result:
    """Run `work` in a thread; when cancelled, set `stop` and wait for the end of the thread."""
    running = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()
        raise


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all coroutines at once; when one fails, cancel the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


class WorkerMessage(Struct, frozen=True):
    """Request or answer: its name (`word`), small `facts`, and `arrays` of numbers."""

    word: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    arrays: Mapping[str, "Array"] = field(default_factory=dict)

    def array(self, name: str, kind: str, axes: int) -> "NDArray[np.generic]":
        """Return an array of this type and dimension; raise `InvalidFrame` if there is none."""
        found = self.arrays.get(name)
        if found is None or found.dtype.name != kind or found.ndim != axes:
            raise InvalidFrame(f"{self.word}: {name} is not {kind} with {axes} axes")
        return found

    def fact(self, name: str) -> str:
        """Return a fact as text, empty if there is none."""
        return str(self.facts.get(name, ""))

    def number(self, name: str) -> int:
        """Return an integer fact; raise `InvalidFrame` if there is none."""
        value = self.facts.get(name)
        if not isinstance(value, int):
            raise InvalidFrame(f"{self.word}: {name} is no number")
        return value


def encode(message: WorkerMessage) -> tuple[object, list[memoryview]]:
    """Return the message as head and parts of a frame, without copying arrays."""
    import numpy as np

    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    shapes = [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()]
    head = {"word": message.word, "facts": dict(message.facts), "arrays": shapes}
    return head, [array.data.cast("B") for array in arrays.values() if array.nbytes]


def decode(head: object, body: memoryview) -> WorkerMessage:
    """Return the message in a frame; raise `InvalidFrame` if there is none."""
    match head:
        case {"word": str(word), "facts": dict(facts), "arrays": list(shapes)}:
            if all(isinstance(value, str | int) for value in facts.values()):
                return WorkerMessage(word, facts, _arrays(shapes, body))
    raise InvalidFrame("the head lacks something")


def ask(child: WorkerProcess, message: WorkerMessage, seconds: float) -> WorkerMessage:
    """Return the answer of the process within `seconds`; raise `WorkerLost` if it gives none. Blocks."""
    try:
        answer = decode(*child.ask(*encode(message), seconds))
    except InvalidFrame as error:
        child.end()
        raise WorkerLost(f"its process answered nonsense: {error}") from error
    if answer.word == "failed":
        raise WorkerLost(answer.fact("why"))
    return answer


def serve_messages(answers: "Mapping[str, Callable[[WorkerMessage], WorkerMessage]]", seconds: int) -> None:
    """Answer messages from standard input by their word; an exception is answered with its reason."""

    def answered(head: object, body: memoryview) -> tuple[object, list[memoryview]]:
        message = decode(head, body)
        try:
            answer = answers[message.word](message)
        except Exception as error:  # the session decides
            why = system_message(error) or f"{type(error).__name__}: {error}"
            answer = WorkerMessage("failed", {"why": why[:500]})
        return encode(answer)

    with suppress(OSError):
        os.nice(_NICENESS)
    serve(answered, seconds)


def pack_texts(texts: Sequence[str]) -> "Array":
    """Return texts as one byte array; a NUL in a text becomes a space."""
    import numpy as np

    joined = "\0".join(text.replace("\0", " ") for text in texts)
    return np.frombuffer(joined.encode("utf-8", "replace"), dtype=np.uint8)


def unpack_texts(array: "Array") -> list[str]:
    """Return the texts of `pack_texts`. An empty array means no texts, so one empty text is lost."""
    packed = array.tobytes().decode("utf-8", "replace")
    return packed.split("\0") if packed else []


def _arrays(shapes: list[object], data: memoryview) -> dict[str, "Array"]:
    import numpy as np

    found: dict[str, Array] = {}
    place = 0
    for shape in shapes:
        match shape:
            case [str(name), str(kind), list(axes)] if kind in _KINDS and len(axes) <= _MAX_AXES:
                if not all(isinstance(axis, int) and 0 <= axis <= MAX_BYTES for axis in axes):
                    raise InvalidFrame(f"{name} has no such axes")
                count = math.prod(axes)
                dtype = np.dtype(kind)
                if place + count * dtype.itemsize > len(data):
                    raise InvalidFrame(f"{name} is longer than the message")
                found[name] = np.frombuffer(data, dtype, count, place).reshape(axes)
                place += count * dtype.itemsize
            case _:
                raise InvalidFrame("an array is not described")
    if place != len(data):
        raise InvalidFrame("the message is longer than its arrays")
    return found
