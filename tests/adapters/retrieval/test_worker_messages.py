import numpy as np
import pytest

from agent_workbench.adapters.retrieval.worker_frames import InvalidFrame
from agent_workbench.adapters.retrieval.worker_process import (
    WorkerMessage,
    decode,
    encode,
    pack_texts,
    unpack_texts,
)


def test_a_message_arrives_as_it_was_sent() -> None:
    arrays = {"vectors": np.arange(6, dtype=np.float32).reshape(3, 2).T, "words": pack_texts(["ä", "b c", ""])}
    head, parts = encode(WorkerMessage("keep", {"why": "x", "count": 3}, arrays))
    message = decode(head, memoryview(b"".join(parts)))
    assert (message.word, message.fact("why"), message.number("count")) == ("keep", "x", 3)
    assert np.array_equal(message.array("vectors", "float32", 2), [[0, 2, 4], [1, 3, 5]])
    assert unpack_texts(message.array("words", "uint8", 1)) == ["ä", "b c", ""]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ({"word": "a", "facts": {}, "arrays": []}, b"left over"),
        ({"word": "a", "facts": {}, "arrays": [["x", "float32", [2]]]}, b"1234"),
        ({"word": "a", "facts": {}, "arrays": [["x", "object", [1]]]}, b"12345678"),
        ({"word": "a", "facts": {}, "arrays": [["x", "float32", [-1]]]}, b"1234"),
        ({"word": "a", "facts": {"f": [1]}, "arrays": []}, b""),
        (["a"], b""),
    ],
)
def test_what_is_no_message_is_refused(head: object, body: bytes) -> None:
    with pytest.raises(InvalidFrame):
        decode(head, memoryview(body))


def test_an_array_of_another_form_is_refused() -> None:
    message = WorkerMessage("a", {}, {"x": np.zeros(3, dtype=np.float32)})
    for name, kind, axes in (("x", "float32", 2), ("x", "int64", 1), ("y", "float32", 1)):
        with pytest.raises(InvalidFrame):
            message.array(name, kind, axes)
