"""Frames on the pipe to a worker process, and the loop by which it answers them."""

import json
import os
import select
import signal
import struct
import threading
from collections.abc import Callable, Iterator, Sequence

from agent_workbench.system.atomic_files import write_all

_MAGIC = b"AWF1"
_SIZES = struct.Struct("<4sIQ")
# A larger head is not ours.
_MAX_HEAD_BYTES = 4 * 1024 * 1024
MAX_BYTES = 1 << 30

Part = bytes | memoryview
Frame = tuple[object, memoryview]

Answer = Callable[[object, memoryview], tuple[object, Sequence[Part]]]
_AT_ONCE = 1024 * 1024


class InvalidFrame(ValueError):
    """Data that is no frame, or not the expected one."""


def frame(head: object, parts: Sequence[Part] = ()) -> Iterator[memoryview]:
    """Yield the bytes of a frame, parts without a copy; raise `InvalidFrame` for one that is too long."""
    encoded = json.dumps(head, separators=(",", ":")).encode()
    size = sum(memoryview(part).nbytes for part in parts)
    if len(encoded) > _MAX_HEAD_BYTES or size > MAX_BYTES:
        raise InvalidFrame(f"{len(encoded)} and {size} bytes are too many")
    yield memoryview(_SIZES.pack(_MAGIC, len(encoded), size) + encoded)
    for part in parts:
        if whole := memoryview(part).cast("B"):
            yield whole


def read_frame(read: Callable[[int], bytes | bytearray]) -> Frame:
    """Return the next frame's head and bytes, given how to read so many; raise `InvalidFrame` for anything else."""
    magic, head_size, size = _SIZES.unpack(read(_SIZES.size))
    if magic != _MAGIC or head_size > _MAX_HEAD_BYTES or size > MAX_BYTES:
        raise InvalidFrame(f"a frame cannot begin with {magic!r}, {head_size}, {size}")
    try:
        head = json.loads(read(head_size))
    except (ValueError, RecursionError) as error:
        raise InvalidFrame("the head is no JSON") from error
    return head, memoryview(read(size)).toreadonly()


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
