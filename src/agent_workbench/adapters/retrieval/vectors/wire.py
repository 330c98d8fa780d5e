"""Messages to and from the processes that work on vectors: bounded, and checked before they are believed."""

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

_MAGIC = b"AWV1"
_HEAD = struct.Struct("<4sIQ")
_MOST_HEADER_BYTES = 64 * 1024
MOST_BYTES = 512 * 1024 * 1024
_KINDS = {"float32", "int32", "int64", "uint8"}
_MOST_AXES = 2

Fact = str | int


class NoMessage(ValueError):
    """What came is no message of this form."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is wanted or what came of it, in a `word`; small `facts`, and `arrays` of numbers."""

    word: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    arrays: Mapping[str, "Array"] = field(default_factory=dict)

    def array(self, name: str, kind: str, axes: int) -> "NDArray[np.generic]":
        """Return an array that has to be there in this form; raise `NoMessage`."""
        found = self.arrays.get(name)
        if found is None or found.dtype.name != kind or found.ndim != axes:
            raise NoMessage(f"{self.word}: {name} is not {kind} with {axes} axes")
        return found

    def fact(self, name: str) -> str:
        """Return a fact as text, empty when there is none."""
        return str(self.facts.get(name, ""))

    def number(self, name: str) -> int:
        """Return a fact that has to be a whole number; raise `NoMessage`."""
        value = self.facts.get(name)
        if not isinstance(value, int):
            raise NoMessage(f"{self.word}: {name} is no number")
        return value


def encode(message: Message) -> Iterator[memoryview]:
    """Yield the bytes of a message, arrays without a copy; raise `NoMessage` for one that is too long."""
    import numpy as np

    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    shapes = [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"word": message.word, "facts": dict(message.facts), "arrays": shapes}).encode()
    size = sum(array.nbytes for array in arrays.values())
    if len(header) > _MOST_HEADER_BYTES or size > MOST_BYTES:
        raise NoMessage(f"{message.word}: {len(header)} and {size} bytes are too many")
    yield memoryview(_HEAD.pack(_MAGIC, len(header), size) + header)
    for array in arrays.values():
        if array.nbytes:
            yield array.data.cast("B")


def decode(read: Callable[[int], bytes | bytearray]) -> Message:
    """Return the next message, given how to read exactly so many bytes; raise `NoMessage` for anything else."""
    magic, header_size, size = _HEAD.unpack(read(_HEAD.size))
    if magic != _MAGIC or header_size > _MOST_HEADER_BYTES or size > MOST_BYTES:
        raise NoMessage(f"a message cannot begin with {magic!r}, {header_size}, {size}")
    try:
        header = json.loads(read(header_size))
    except (ValueError, RecursionError) as error:
        raise NoMessage("the header is no JSON") from error
    match header:
        case {"word": str(word), "facts": dict(facts), "arrays": list(shapes)}:
            if all(isinstance(value, str | int) for value in facts.values()):
                return Message(word, facts, _arrays(shapes, read(size)))
    raise NoMessage("the header lacks something")


def pack_texts(texts: Sequence[str]) -> "Array":
    """Return texts as one array; a NUL in one of them becomes a space."""
    import numpy as np

    joined = "\0".join(text.replace("\0", " ") for text in texts)
    return np.frombuffer(joined.encode("utf-8", "replace"), dtype=np.uint8)


def unpack_texts(array: "Array") -> list[str]:
    """Return the texts of `pack_texts`; none are told from one that is empty by their number elsewhere."""
    packed = array.tobytes().decode("utf-8", "replace")
    return packed.split("\0") if packed else []


def _arrays(shapes: list[object], data: bytes | bytearray) -> dict[str, "Array"]:
    import numpy as np

    found: dict[str, Array] = {}
    place = 0
    for shape in shapes:
        match shape:
            case [str(name), str(kind), list(axes)] if kind in _KINDS and len(axes) <= _MOST_AXES:
                if not all(isinstance(axis, int) and 0 <= axis <= MOST_BYTES for axis in axes):
                    raise NoMessage(f"{name} has no such axes")
                count = math.prod(axes)
                dtype = np.dtype(kind)
                if place + count * dtype.itemsize > len(data):
                    raise NoMessage(f"{name} is longer than the message")
                found[name] = np.frombuffer(data, dtype, count, place).reshape(axes)
                place += count * dtype.itemsize
            case _:
                raise NoMessage("an array is not described")
    if place != len(data):
        raise NoMessage("the message is longer than its arrays")
    return found
