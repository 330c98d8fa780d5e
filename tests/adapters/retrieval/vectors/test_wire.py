import json
import struct
from collections.abc import Callable

import numpy as np
import pytest

from agent_workbench.adapters.retrieval.vectors.wire import Message, NoMessage, decode, encode, pack_texts, unpack_texts


def reader(data: bytes) -> Callable[[int], bytes]:
    rest = bytearray(data)

    def read(count: int) -> bytes:
        part = bytes(rest[:count])
        del rest[:count]
        return part

    return read


def sent(header: object, payload: bytes, magic: bytes = b"AWV1") -> bytes:
    head = json.dumps(header).encode()
    return struct.pack("<4sIQ", magic, len(head), len(payload)) + head + payload


def test_a_message_arrives_as_it_was_sent() -> None:
    arrays = {"vectors": np.arange(6, dtype=np.float32).reshape(3, 2).T, "words": pack_texts(["ä", "b c", ""])}
    message = decode(reader(b"".join(encode(Message("keep", {"why": "x", "count": 3}, arrays)))))
    assert (message.word, message.fact("why"), message.number("count")) == ("keep", "x", 3)
    assert np.array_equal(message.array("vectors", "float32", 2), [[0, 2, 4], [1, 3, 5]])
    assert unpack_texts(message.array("words", "uint8", 1)) == ["ä", "b c", ""]


@pytest.mark.parametrize(
    "data",
    [
        sent({"word": "a", "facts": {}, "arrays": []}, b"", magic=b"GET "),
        sent({"word": "a", "facts": {}, "arrays": []}, b"left over"),
        sent({"word": "a", "facts": {}, "arrays": [["x", "float32", [2]]]}, b"1234"),
        sent({"word": "a", "facts": {}, "arrays": [["x", "object", [1]]]}, b"12345678"),
        sent({"word": "a", "facts": {}, "arrays": [["x", "float32", [-1]]]}, b"1234"),
        sent({"word": "a", "facts": {"f": [1]}, "arrays": []}, b""),
        sent(["a"], b""),
        struct.pack("<4sIQ", b"AWV1", 1 << 30, 0),
        struct.pack("<4sIQ", b"AWV1", 2, 1 << 40),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(NoMessage):
        decode(reader(data))


def test_an_array_of_another_form_is_refused() -> None:
    message = Message("a", {}, {"x": np.zeros(3, dtype=np.float32)})
    for name, kind, axes in (("x", "float32", 2), ("x", "int64", 1), ("y", "float32", 1)):
        with pytest.raises(NoMessage):
            message.array(name, kind, axes)
