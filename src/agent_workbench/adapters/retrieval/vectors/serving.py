"""The other end of `child.py`: answers one message after the other, and is gone as soon as nobody can ask any more."""

import os
import select
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from agent_workbench.adapters.retrieval.vectors.wire import Message, decode, encode
from agent_workbench.host.atomic import write_all

Answer = Callable[[Message], Message]
_NICENESS = 10


def serve(answers: Mapping[str, Answer]) -> None:
    """Answer messages from standard input by their word until it ends, then end the process.

    What fails is answered with `failed` and why.
    """
    # Whoever prints something (a library does) must not write into the answers.
    output = os.dup(1)
    os.dup2(2, 1)
    with suppress(OSError):
        os.nice(_NICENESS)
    threading.Thread(target=_end_with_input, daemon=True).start()
    while True:
        message = decode(_read)
        try:
            answer = answers[message.word](message)
        except Exception as error:  # whatever it is, the one who asked decides
            answer = Message("failed", {"why": f"{type(error).__name__}: {error}"[:500]})
        for part in encode(answer):
            write_all(output, part)


def _read(count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = os.read(0, min(count - len(data), 1024 * 1024))
        if not part:
            _leave()
        data += part
    return bytes(data)


def _end_with_input() -> None:
    """End the process when the other side of the input is closed, also in the middle of work."""
    poll = select.poll()
    poll.register(0, 0)  # closing is told without being asked for
    poll.poll()
    _leave()


def _leave() -> None:
    os._exit(0)
