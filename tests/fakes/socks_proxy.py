"""A SOCKS5 proxy on loopback that takes every host for one port of this machine, and keeps what it was asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

GRANTED = b"\x05\x00\x00\x01" + bytes(6)
BY_NAME = 3


@asynccontextmanager
async def socks_proxy(port: int) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve; yield the proxy's address, and the names of the hosts that it was asked for."""
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        *_, kind, length = await reader.readexactly(5)
        assert kind == BY_NAME
        asked.append((await reader.readexactly(length)).decode())
        await reader.readexactly(2)
        onwards, out = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GRANTED)
        await asyncio.gather(_pass_on(reader, out), _pass_on(onwards, writer))

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"socks5h://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
