"""Frames on the pipe between session and worker process: a head in JSON, and bytes."""

import json
import struct
from collections.abc import Callable, Iterator, Sequence

_MAGIC = b"AWF1"
_SIZES = struct.Struct("<4sIQ")
# A larger head is not ours.
_MAX_HEAD_BYTES = 4 * 1024 * 1024
MAX_BYTES = 1 << 30

Part = bytes | memoryview
Frame = tuple[object, memoryview]


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
