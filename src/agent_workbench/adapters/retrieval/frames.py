"""What goes through the pipe to a worker and back: a head in JSON, and bytes."""

import json
import struct
from collections.abc import Sequence
from typing import IO

_SIZES = struct.Struct("<IQ")
# Larger is no message of ours, whatever its first bytes say.
_MOST_BYTES = 1 << 30


def write_frame(stream: IO[bytes], head: object, parts: Sequence[bytes | memoryview] = ()) -> None:
    """Write one message; raises `OSError` when nobody reads any more."""
    encoded = json.dumps(head, separators=(",", ":")).encode()
    stream.write(_SIZES.pack(len(encoded), sum(map(len, parts))) + encoded)
    stream.writelines(parts)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[object, bytes] | None:
    """Return the next message's head and bytes, None when there is none or the writer died within it."""
    sizes = stream.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    head_size, body_size = _SIZES.unpack(sizes)
    if head_size + body_size > _MOST_BYTES:
        return None
    head, body = stream.read(head_size), stream.read(body_size)
    if len(head) < head_size or len(body) < body_size:
        return None
    try:
        return json.loads(head), body
    except ValueError:
        return None
