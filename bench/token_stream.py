"""`python -m bench.token_stream`: a server with OpenAI's chat route whose model writes one diff, at an even pace.

It prints its address and ends with its standard input. The diff has `--lines`; without it, no end.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator

HEAD = "Thought: The totals are wrong in many places; I mend one after the other.\nAction: write_diff\n"
FILE = "--- /dev/null\n+++ b/shop/totals.py\n@@ -0,0 +1,{lines} @@\n"
ENDLESS = 100_000
MODELS = {"object": "list", "data": [{"id": "pacer", "object": "model", "meta": {"n_ctx": 131072}}]}


def tokens(lines: int = ENDLESS) -> Iterator[str]:
    """Yield a step with a diff of so many lines, in pieces of the size of tokens; by default it never ends."""
    text = HEAD + FILE.format(lines=lines)
    for number in range(1, lines + 2):
        yield from (text[at : at + 4] for at in range(0, len(text), 4))
        text = f"+    total_{number} += line.cents * line.quantity  # part {number}\n"


async def serve(tokens_per_second: float, lines: int) -> None:
    """Answer with a diff of so many lines, until standard input ends."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            sizes = [line.split(":")[1] for line in head if line.lower().startswith("content-length:")]
            await reader.readexactly(int(sizes[0]) if sizes else 0)
            if head[0].split()[1] == "/v1/chat/completions":
                await _stream(writer, tokens_per_second, lines)
            else:
                known = head[0].split()[1] == "/v1/models"
                await _whole(writer, "200 OK" if known else "404 Not Found", MODELS if known else {})
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


async def _whole(writer: asyncio.StreamWriter, status: str, value: object) -> None:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _stream(writer: asyncio.StreamWriter, tokens_per_second: float, lines: int) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, token in enumerate(tokens(lines), 1):
        event = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": token}}]}
        writer.write(f"data: {json.dumps(event)}\n\n".encode())
        await writer.drain()
        await asyncio.sleep(began + number / tokens_per_second - loop.time())
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    writer.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
    await writer.drain()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200, metavar="TOKENS_PER_SECOND")
    parser.add_argument("--lines", type=int, default=ENDLESS)
    options = parser.parse_args()
    asyncio.run(serve(options.rate, options.lines))
