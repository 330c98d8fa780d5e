"""Request loop of a worker process: answers frames until its standard input is closed."""

import os
import select
import signal
import threading
from collections.abc import Callable, Sequence

from agent_workbench.adapters.retrieval.worker_processes.frames import Part, frame, read_frame
from agent_workbench.system.atomic_files import write_all

Answer = Callable[[object, memoryview], tuple[object, Sequence[Part]]]
_AT_ONCE = 1024 * 1024


def serve(answer: Answer, seconds: int) -> None:
    """Answer frames from standard input until it is closed, then end the process, even in the middle of a request.

    A request that takes longer than `seconds` ends the process too: code that hangs in a library notices nothing.
    """
    # Output of libraries must not get into the answers.
    output = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=_exit_with_input, daemon=True).start()
    while True:
        head, body = read_frame(_read)
        signal.alarm(seconds)
        answered = answer(head, body)
        signal.alarm(0)
        for part in frame(*answered):
            write_all(output, part)


def _read(count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = os.read(0, min(count - len(data), _AT_ONCE))
        if not part:
            _exit()
        data += part
    return bytes(data)


def _exit_with_input() -> None:
    """End the process when the other side of the input is closed, also in the middle of work."""
    poll = select.poll()
    poll.register(0, 0)  # a closed pipe is reported without a mask
    poll.poll()
    _exit()


def _exit() -> None:
    os._exit(0)
