"""What a process of ours is told and answers, as bytes."""

import io
import struct

import pytest

from agent_workbench.adapters.retrieval.worker_frames import InvalidFrame, frame, read_frame


def test_a_frame_arrives_as_it_was_sent() -> None:
    head = ["index", [["odd \udcff\n.md", 3]]]
    sent = io.BytesIO(b"".join(frame(head, [b"abc", memoryview(b"de"), b""])) + b"".join(frame(None)))
    told, body = read_frame(sent.read)
    assert (told, bytes(body)) == (head, b"abcde")
    told, body = read_frame(sent.read)
    assert (told, bytes(body)) == (None, b"")


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("<4sIQ", b"GET ", 2, 0) + b"{}",
        struct.pack("<4sIQ", b"AWF1", 2, 0) + b"{x",
        struct.pack("<4sIQ", b"AWF1", 1 << 30, 0),
        struct.pack("<4sIQ", b"AWF1", 2, 1 << 40),
    ],
)
def test_what_is_no_frame_is_refused_before_it_is_read(sent: bytes) -> None:
    with pytest.raises(InvalidFrame):
        read_frame(io.BytesIO(sent).read)
