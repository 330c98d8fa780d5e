"""A faulty server that answers while processes of their own ask it."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.e2e.machine import WAIT_SECONDS
from tests.fakes.faulty_server import END, Answer, FaultyServer, delta, stream


@contextmanager
def listening(server: FaultyServer) -> Iterator[str]:
    """Have the server answer in a thread of its own; give its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="faulty-server", daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(WAIT_SECONDS)
    try:
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(WAIT_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_SECONDS)
        loop.close()


def saying(answers: Sequence[str]) -> FaultyServer:
    """Return a server that gives these answers in order, and remembers what it was asked."""
    counted = Answer(200, [json.dumps({"tokens": [1, 2, 3]}).encode()])
    return FaultyServer().chat(*(stream(delta(answer), END) for answer in answers)).on("/tokenize", counted)
