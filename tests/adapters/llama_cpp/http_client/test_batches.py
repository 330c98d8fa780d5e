"""Tokens that come in quick succession are read together."""

import asyncio
import json

import pytest

from agent_workbench.adapters.llama_cpp.http_client import client
from agent_workbench.adapters.llama_cpp.http_client.answer_stream import AnswerReader
from agent_workbench.adapters.llama_cpp.http_client.deadline import Deadline
from agent_workbench.core.model import AnswerEnd, TextDelta

DONE = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def piece(text: str) -> bytes:
    """Return the event of one token."""
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n".encode()


class PacedReply:
    """A stream of which more has come after each pause; implements what is used of `StreamedReply`."""

    is_json = False

    def __init__(self, *batches: bytes) -> None:
        self.reads = 0
        self._batches = list(batches)
        self._come = self._batches.pop(0)

    async def next(self) -> bytes:
        """Return what has come."""
        self.reads += 1
        if not self._come:
            await self.pause(0)
        come, self._come = self._come, b""
        return come

    async def pause(self, seconds: float) -> None:
        """Let the next batch come."""
        del seconds
        self._come += self._batches.pop(0) if self._batches else b""


async def test_tokens_that_come_in_a_moment_are_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"word{number} " for number in range(40)]
    batches = [b"".join(map(piece, words[at : at + 8])) for at in range(0, 40, 8)]
    reply = PacedReply(*batches, DONE)
    monkeypatch.setattr(asyncio, "sleep", reply.pause)
    reader = AnswerReader("http://server", 1000)
    items = [item async for item in client._read(reply, reader, Deadline(60))]  # type: ignore[arg-type]
    assert [item.text for item in items if isinstance(item, TextDelta)] == words
    assert isinstance(items[-1], AnswerEnd)
    assert reply.reads == len(batches) + 1


async def test_much_at_once_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(seconds: float) -> None:
        raise AssertionError(seconds)

    monkeypatch.setattr(asyncio, "sleep", never)
    reply = PacedReply(b"".join(piece("x" * 100) for _ in range(60)) + DONE)
    items = [item async for item in client._read(reply, AnswerReader("http://server", 1000), Deadline(60))]  # type: ignore[arg-type]
    assert len(items) == 61
