"""Messages to and from worker processes: named facts and numpy arrays, bounded and validated."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agent_workbench.adapters.retrieval.worker_frames import MAX_BYTES, InvalidFrame, serve
from agent_workbench.adapters.retrieval.worker_process import WorkerLost, WorkerProcess
from agent_workbench.system.atomic_files import system_message

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

_KINDS = {"float32", "int32", "int64", "uint8"}
_MAX_AXES = 2

_NICENESS = 10

Fact = str | int


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
