"""The port `ToolSource` for one MCP server, started when its tools are asked for, and again once after it ended.

`ServerEntry` is that server as the settings name it: the way to it, and a person's sign-in at it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, ExtraMissing, ToolError, UsageError
from agent_workbench.core.extras import Extra, require_extra
from agent_workbench.core.ports.tools import (
    QuestionAnswer,
    ServerCommand,
    ServerProcesses,
    SourceQuestion,
    SourceResult,
)
from agent_workbench.core.ports.workspace import OnOutput
from agent_workbench.core.settings import Permission
from agent_workbench.core.settings.extensions import ToolServerSettings, resolved
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.spec import MAX_SUMMARY_CHARS, ToolSpec, tool_prefix
from agent_workbench.subjects.mcp_client.connection_adapter import NO_ADVICE, Connection, SignInNeeded, Target
from agent_workbench.subjects.mcp_client.messages_adapter import Asked, Called, ListedTool, Noticed
from agent_workbench.system.command_bounds import check_record

START_SECONDS = 45.0
MAX_LOSSES = 2
"""Connections that may be lost without an answer in between, before the server is not started again for a call."""
MAX_NOTICES = 20


class McpServer:
    """The MCP server `name` of the settings. `environ` has the variables that its entry names.

    `sign_ins` is the folder with the tokens of the sign-ins at servers; without it nobody can sign in.
    """

    def __init__(
        self,
        name: str,
        settings: ToolServerSettings,
        servers: ServerProcesses,
        environ: Mapping[str, str],
        sign_ins: str = "",
    ) -> None:
        self.name = f"mcp:{name}"
        self.notices: list[str] = []
        """Messages and requests that the server sent unasked since it was first started, a line each."""
        self.entry = ServerEntry(name, settings, servers, environ, sign_ins)
        self._settings = settings
        self._asked: Asked | None = None
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._specs: dict[str, ToolSpec] = {}
        self._stale = False
        self._losses = 0
        self._on_output: OnOutput | None = None

    @property
    def about(self) -> str:
        """The server's own name and version and the protocol's, empty before it is connected."""
        connected = self._connection.connected if self._connection is not None else None
        return f"{connected.server}, protocol {connected.protocol}" if connected is not None else ""

    async def list_tools(self) -> Sequence[ToolSpec]:
        self._losses = 0
        try:
            await self._list(await self._connected())
        except ToolError as error:
            raise self._explained(error) from error
        return tuple(self._specs.values())

    async def obstacle(self, tool: str, arguments: str) -> str:
        """Return no reason: only the server knows."""
        return ""

    async def call(self, tool: str, arguments: str, on_output: OnOutput) -> SourceResult:
        spec = self._specs.get(tool)
        if spec is None:
            raise ToolError(f"{self.name} does not list the tool {tool}", advice="use another tool")
        self._on_output = on_output
        try:
            connection = await self._connected()
            if self._stale:
                await self._list(connection)
            if self._specs.get(tool) != spec:
                self._specs[tool] = spec  # so that the next call is refused too
                self._stale = True
                raise ToolError(
                    f"the definition of {tool} of {self.name} changed after the task started",
                    advice="use another tool; a new task starts with the new definition",
                )
            if self._asked is not None:
                connection.drop(self._asked)
                self._asked = None
            answer = await connection.call(tool.removeprefix(self._prefix), arguments)
        except ToolError as error:
            self._losses += self._connection is None or not self._connection.usable
            raise self._explained(error) from error
        finally:
            self._on_output = None
        return self._result(connection, answer)

    def _result(self, connection: Connection, answer: Called | Asked) -> SourceResult:
        self._losses = 0
        if isinstance(answer, Called):
            return SourceResult(answer.text, answer.failed, answer.cut_bytes)
        asked = self._asked = answer

        async def reply(action: QuestionAnswer, content: str, on_output: OnOutput) -> SourceResult:
            if self._asked is not asked or not connection.usable:
                raise ToolError(f"{self.name} no longer waits for an answer", advice=NO_ADVICE)
            self._on_output = on_output
            try:
                return self._result(connection, await connection.reply(asked, action, content))
            finally:
                self._on_output = None

        question = SourceQuestion(asked.message, asked.schema, asked.url, reply)
        return SourceResult(f"{self.name} asks the user before it answers", question=question)

    def _explained(self, error: ToolError) -> ToolError:
        if not isinstance(error, SignInNeeded):
            return error
        return ToolError(
            f"{self.name} wants you to sign in: run `agent mcp login {self.entry.name}`",
            advice="sign in, then start the task again",
        )

    async def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    @property
    def _prefix(self) -> str:
        return tool_prefix(self.name)

    async def _connected(self) -> Connection:
        """Return a usable connection; raise `ToolError`. A start continues when nobody waits for it any more."""
        connection = self._connection
        if connection is not None and await connection.is_settled() and connection.usable:
            return connection
        if self._losses >= MAX_LOSSES:
            raise ToolError(
                f"{self.name} failed {self._losses} times in a row; it is started again for the next task",
                advice=NO_ADVICE,
            )
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._end_opening)
        return await asyncio.shield(self._opening)

    def _end_opening(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # who waits for it gets it; nobody may

    async def _open(self) -> Connection:
        old, self._connection = self._connection, None
        if old is not None:
            await old.close()
        try:
            async with asyncio.timeout(START_SECONDS):
                opened = await self.entry.connect(self._notice)
        except TimeoutError:
            alone = self._settings.command and not (self._settings.network or self._settings.unconfined)
            advice = "if it needs the network, set `network: true` in its entry" if alone else NO_ADVICE
            what = f"{self.name} did not answer within {START_SECONDS:g} s after its start"
            raise ToolError(what, advice=advice) from None
        except (ConfigError, ExtraMissing) as error:
            raise ToolError(str(error), advice=error.advice) from error
        self._connection = opened
        self._stale = bool(self._specs)  # another process may have other tools
        return opened

    async def _list(self, connection: Connection) -> None:
        answer = await connection.list_tools()
        self._stale = False
        if answer.more:
            self._notice(Noticed("it lists more tools than are read; the others are left out"))
        self._specs = {spec.name: spec for spec in map(self._spec, answer.tools)}

    def _spec(self, tool: ListedTool) -> ToolSpec:
        long = len(tool.summary) > MAX_SUMMARY_CHARS
        return ToolSpec(
            name=f"{self._prefix}{tool.name}",
            summary=f"{tool.summary[: MAX_SUMMARY_CHARS - 1]}…" if long else tool.summary,
            permission=Permission.EXTERNAL,
            input_schema=tool.schema,
            source=self.name,
            hints=tool.hints,
            server=self._settings.identity,
        )

    def _notice(self, noticed: Noticed) -> None:
        if noticed.tools_changed:
            self._stale = True
            return
        if len(self.notices) < MAX_NOTICES and noticed.text not in self.notices:
            self.notices.append(noticed.text)
            if self._on_output is not None:
                self._on_output(f"{self.name}: {sanitize_line(noticed.text, 300)}\n")


class ServerEntry(Struct, frozen=True):
    """The entry `name` of the settings. `environ` has the variables that it names.

    `sign_ins` is the folder with the tokens of sign-ins; without it nobody can sign in.
    """

    name: str
    settings: ToolServerSettings
    servers: ServerProcesses
    environ: Mapping[str, str]
    sign_ins: str = ""

    async def connect(self, on_notice: Callable[[Noticed], None]) -> Connection:
        """Start the server and connect with it; raise `ConfigError`, `ExtraMissing`, `ToolError`."""
        require_extra(Extra.MCP)  # the process that speaks with the server needs it
        return await Connection.open(self._target(), self.servers, self.environ, on_notice)

    async def sign_in(self, visit: Callable[[str], None]) -> None:
        """Have a person sign in: `visit` gets the page for their browser.

        Raises `UsageError` where nobody can sign in, and what `connect` does.
        """
        if not self.settings.url:
            raise UsageError(
                f"the MCP server {self.name} is a program: nobody signs in at it",
                advice="a sign-in is for a server at a url",
            )
        if any(name.lower() == "authorization" for name, _ in self.settings.headers):
            raise UsageError(
                f"the entry of the MCP server {self.name} has an Authorization header of its own",
                advice=f"remove it from mcp_servers.{self.name}.headers to sign in",
            )
        require_extra(Extra.MCP)
        pages = list[str]()

        def noticed(notice: Noticed) -> None:
            if notice.visit:
                pages.append(notice.visit)
                visit(notice.visit)

        target = replace(self._target(), anew=True)
        connection = await Connection.open(target, self.servers, self.environ, noticed)
        try:
            await connection.list_tools()  # some servers let everybody connect
        finally:
            await connection.close()
        if not pages:
            raise ToolError(f"the MCP server {self.name} asked for no sign-in", advice="use it without one")

    def sign_out(self) -> bool:
        """Remove the tokens of a sign-in; return False if there are none. Blocks."""
        path = Path(self._sign_in)
        if not self.sign_ins or not path.exists():
            return False
        check_record(path)
        path.unlink()
        return True

    @property
    def _sign_in(self) -> str:
        """The file of the sign-in: another address or header is another one."""
        entry = sha256(f"{self.name} {self.settings.identity}".encode()).hexdigest()[:32]
        return str(Path(self.sign_ins, f"{entry}.json")) if self.sign_ins else ""

    def _target(self) -> Target:
        settings = self.settings
        if settings.url:
            headers = resolved(settings.headers, self.environ, self.name)
            return Target(url=settings.url, headers=headers, sign_in=self._sign_in)
        return Target(
            ServerCommand(
                argv=(settings.command, *settings.args),
                environment=resolved(settings.env, self.environ, self.name),
                readable=settings.read,
                writable=settings.write,
                network=settings.network,
                confined=not settings.unconfined,
            )
        )
