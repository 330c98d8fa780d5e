"""Snapshot of an index as one file: replaced atomically, and memory-mapped when it is loaded."""

import mmap
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex, pack, take_array, unpack
from agent_workbench.adapters.retrieval.index.segments import Segment
from agent_workbench.system.atomic_files import storage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]
    Mask = NDArray[np.bool_]

MAX_BYTES = 400 * 1024 * 1024
# A temporary file of this age was abandoned.
_ABANDONED_SECONDS = 600.0
_MAX_SEGMENTS = 64


class Snapshot(Struct, frozen=True):
    """Segments, masks of their live files, and `extra` bytes of the caller."""

    segments: "Sequence[Segment]"
    alive: "Sequence[Mask]"
    extra: bytes = b""


def save_snapshot(path: Path, snapshot: Snapshot, max_bytes: int = MAX_BYTES) -> int:
    """Replace the file at `path`; return its size, or 0 if it would exceed `max_bytes` and was not written.

    A process that mapped the former file keeps it. Of several writers the last one wins. Blocks. Raises `StorageError`.
    """
    import numpy as np

    arrays: dict[str, Array] = {"extra": np.frombuffer(snapshot.extra, np.uint8)}
    for number, (segment, alive) in enumerate(zip(snapshot.segments, snapshot.alive, strict=True)):
        arrays |= segment.arrays(f"{number}/") | {f"{number}/alive": alive}
    parts = pack(arrays)
    size = sum(map(len, parts))
    if size > max_bytes:
        return 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _forget_abandoned(path)
        _replace(path, parts)
    except OSError as error:
        raise storage_error(f"the search index could not be saved at {path}", error) from error
    return size


def load_snapshot(path: Path) -> Snapshot:
    """Return the mapped snapshot; raise `DamagedIndex` if there is no file that `save_snapshot` wrote."""
    try:
        # A pipe in place of the file must not block.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
                raise DamagedIndex("it is no regular file, or too large")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file, or a path that no file can have
        raise DamagedIndex(str(error)) from error
    arrays = unpack(memoryview(mapped))
    segments: list[Segment] = []
    alive: list[Mask] = []
    while f"{len(segments)}/alive" in arrays and len(segments) < _MAX_SEGMENTS:
        segment = Segment.from_arrays(arrays, f"{len(segments)}/")
        mask = take_array(arrays, f"{len(segments)}/alive", ("bool",), len(segment.files.kinds))
        alive.append(cast("Mask", mask))
        segments.append(segment)
    return Snapshot(segments, alive, take_array(arrays, "extra", ("uint8",)).tobytes())


def _replace(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    """Write a temporary file and rename it. There is no fsync: the checksum detects what a power cut spoils."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{time.monotonic_ns()}.tmp")
    try:
        with fresh.open("xb", buffering=0) as file:
            for part in parts:
                rest = memoryview(part)
                while rest:
                    rest = rest[file.write(rest) :]
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _forget_abandoned(path: Path) -> None:
    for other in path.parent.glob(f"{path.name}.*.tmp"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > _ABANDONED_SECONDS:
                other.unlink()
