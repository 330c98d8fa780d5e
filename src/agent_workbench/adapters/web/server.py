"""Web server on loopback: each page opened with the token gets a workbench process of its own.

textual-serve provides the page and the process; this module decides who may open it. Another user of the machine, a
page of another site and a rebound name lack the token, the origin, or the host.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Awaitable, Callable
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import urlencode

from aiohttp import web
from textual_serve.server import Server

from agent_workbench.core.errors import UsageError
from agent_workbench.system.processes import parent_gone

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 24
SHUTDOWN_SECONDS = 10.0
HERE = Path(__file__).parent
FORBIDDEN = "The address to open is the one that `agent tui --web` printed, with its token.\n"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WorkbenchServer(Server):
    """Server of the screen of `command` (for `/bin/sh`) to everybody who knows its token."""

    def __init__(self, command: str, *, title: str) -> None:
        super().__init__(command, LOOPBACK, 0, title)
        self._token = secrets.token_urlsafe(TOKEN_BYTES)

    async def serve_until_stopped(self, port: int, on_ready: Callable[[str], None]) -> None:
        """Serve at `port` (0: a free one) until SIGINT, SIGTERM or the end of the parent process.

        `on_ready` gets the address to open.

        All open workbenches are then left, and their sessions kept. Raises `UsageError` if the port is not available.
        """
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        runner = web.AppRunner(self._web_app(), shutdown_timeout=SHUTDOWN_SECONDS, access_log=None)
        await runner.setup()
        try:
            await self._listen(runner, port)
            on_ready(f"{self.public_url}/?{urlencode({'token': self._token})}")
            ends = {asyncio.ensure_future(each) for each in (stopped.wait(), parent_gone())}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for each in ends:
                each.cancel()
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner, port: int) -> None:
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
        except OSError as error:
            # asyncio's message repeats the address in Python syntax.
            why = os.strerror(error.errno) if error.errno else str(error)
            raise UsageError(f"cannot listen on {LOOPBACK}:{port}: {why}", advice="choose another --port") from error
        self.port = runner.addresses[0][1]
        self.public_url = f"http://{LOOPBACK}:{self.port}"

    def _web_app(self) -> web.Application:
        app = web.Application(middlewares=[self._check])
        app.add_routes(
            [
                web.get("/", self._page),
                # The page's script appends `?width=` to the address, so the token is in the path.
                web.get(f"/ws/{self._token}", self.handle_websocket),
                web.static("/static", self.statics_path),
                web.static("/own", HERE / "own"),
            ]
        )
        return app

    async def _page(self, request: web.Request) -> web.Response:
        """Return the page that opens a workbench."""
        values = {
            "title": self.title,
            "socket": f"{self.public_url.replace('http', 'ws', 1)}/ws/{self._token}",
            "font_size": request.query.get("fontsize", "16"),
        }
        page = Template(await asyncio.to_thread((HERE / "page.html").read_text, "utf-8"))
        text = page.substitute({name: escape(value) for name, value in values.items()})
        return web.Response(text=text, content_type="text/html")

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Accept requests for this host with the token and from our own page."""
        if not self._may(request):
            return web.Response(status=403, text=FORBIDDEN, headers=HEADERS)
        response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _may(self, request: web.Request) -> bool:
        if request.headers.getall("Host", []) != [f"{LOOPBACK}:{self.port}"]:
            return False
        if not set(request.headers.getall("Origin", [])) <= {self.public_url}:
            return False
        if request.path != "/":
            return True  # the socket has the token in its path; the rest are static files
        return secrets.compare_digest(request.query.get("token", "").encode(), self._token.encode())
