"""A server as the settings name it: the way to it, and a person's sign-in at it."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import ToolError, UsageError
from agent_workbench.core.extras import Extra, require_extra
from agent_workbench.core.ports.tools import ServerCommand, ServerProcesses
from agent_workbench.core.settings.extensions import ToolServerSettings, resolved
from agent_workbench.subjects.mcp_client.adapters.connection import Connection, Target
from agent_workbench.subjects.mcp_client.adapters.messages import Noticed
from agent_workbench.system.command_bounds import check_record


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
