"""Binary format of named arrays with a checksum, read without copying, and strings in two of them."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.core.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


# The last digits are the version. Raise it whenever the stored content changes, so that older files are refused.
_MAGIC = b"AWINDX01"
# Magic, checksum of all that follows it, length of the header.
_PREFIX = len(_MAGIC) + 4 + 4
_ALIGNMENT = 8
_TYPES = frozenset({"|b1", "|i1", "|u1", "<u2", "<i4", "<i8"})


class DamagedIndex(StorageError):
    """Stored part of an index that is truncated, altered, foreign or of another version."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the stored index cannot be used: {why}", advice="it is built anew")


def pack(arrays: Mapping[str, "Array"]) -> list["bytes | memoryview"]:
    """Return one-dimensional arrays as bytes in several parts; only the first part is a copy."""
    import numpy as np

    parts: list[bytes | memoryview] = []
    rows = []
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        rows.append([name, plain.dtype.str, len(plain)])
        parts += [plain.view(np.uint8).data, bytes(-plain.nbytes % _ALIGNMENT)]
    header = json.dumps(rows, separators=(",", ":")).encode()
    header += b" " * (-(_PREFIX + len(header)) % _ALIGNMENT)
    head = len(header).to_bytes(4, "little") + header
    checksum = zlib.crc32(head)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [_MAGIC + checksum.to_bytes(4, "little") + head, *parts]


def unpack(buffer: "bytes | memoryview") -> dict[str, "Array"]:
    """Return the arrays as read-only views of the buffer; raise `DamagedIndex` unless it is as it was packed.

    The checksum over the whole buffer is verified first: no size in it allocates memory before.
    """
    import numpy as np

    data = memoryview(buffer)
    if len(data) < _PREFIX or bytes(data[: len(_MAGIC)]) != _MAGIC:
        raise DamagedIndex("it is of another version, or of something else")
    if zlib.crc32(data[len(_MAGIC) + 4 :]) != int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 4], "little"):
        raise DamagedIndex("its checksum does not fit")
    end = _PREFIX + int.from_bytes(data[_PREFIX - 4 : _PREFIX], "little")
    arrays: dict[str, Array] = {}
    try:
        for name, kind, count in _rows(bytes(data[_PREFIX:end])):
            arrays[name] = np.frombuffer(data, np.dtype(kind), count, end) if count else np.zeros(0, kind)
            end += arrays[name].nbytes + -arrays[name].nbytes % _ALIGNMENT
    except (ValueError, RecursionError) as error:
        raise DamagedIndex(f"its parts are not what its header says ({error})") from error
    return arrays


def take_array(arrays: Mapping[str, "Array"], name: str, kinds: Sequence[str], count: int | None = None) -> "Array":
    """Return one array; raise `DamagedIndex` if it is missing or has another type or length."""
    array = arrays.get(name)
    if array is None or array.dtype.name not in kinds or (count is not None and len(array) != count):
        raise DamagedIndex(f"`{name}` is missing or not as it should be")
    return array


def _rows(header: bytes) -> list[tuple[str, str, int]]:
    rows = json.loads(header)
    if not isinstance(rows, list):
        raise ValueError("no list of parts")
    found: list[tuple[str, str, int]] = []
    for row in rows:
        match row:
            case [str(name), str(kind), int(count)] if kind in _TYPES and count >= 0:
                found.append((name, kind, count))
            case _:
                raise ValueError("a part without name, kind or length")
    return found


class PackedStrings(Struct, frozen=True):
    """String `n` is bytes `starts[n]` to `starts[n + 1]` of `letters` in UTF-8; lone surrogates are allowed."""

    letters: "NDArray[np.uint8]"
    starts: "NDArray[np.int32]"

    @classmethod
    def of(cls, texts: Iterable[str]) -> "PackedStrings":
        """Return an array of these strings."""
        import numpy as np

        some = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = np.fromiter(accumulate(map(len, some), initial=0), np.int32, len(some) + 1)
        return cls(np.frombuffer(b"".join(some), np.uint8), starts)

    @classmethod
    def joined(cls, parts: "Sequence[PackedStrings]", kept: "Sequence[NDArray[np.bool_]]") -> "PackedStrings":
        """Return the strings of all parts in order, filtered by the mask of each."""
        import numpy as np

        sizes = [np.diff(part.starts) for part in parts]
        letters = [
            part.letters if mask.all() else part.letters[np.repeat(mask, size)]
            for part, mask, size in zip(parts, kept, sizes, strict=True)
        ]
        kept_sizes = np.concatenate([size[mask] for size, mask in zip(sizes, kept, strict=True)])
        starts = np.zeros(len(kept_sizes) + 1, np.int32)
        np.cumsum(kept_sizes, out=starts[1:])
        return cls(np.concatenate(letters), starts)

    def __len__(self) -> int:
        """Return the number of strings."""
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        """Return string `number` (from 0)."""
        start, end = int(self.starts[number]), int(self.starts[number + 1])
        return self.letters[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        """Yield all strings in order."""
        letters, start = self.letters.tobytes(), 0
        for end in self.starts[1:].tolist():
            yield letters[start:end].decode("utf-8", "surrogatepass")
            start = end
