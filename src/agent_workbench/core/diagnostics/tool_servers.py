"""MCP servers as they are listed and tested."""

from msgspec import Struct

from agent_workbench.core.settings.tool_servers import ToolServerSettings
from agent_workbench.core.tools.spec import ToolSpec


class ListedServer(Struct, frozen=True):
    """A server of the settings: the file or variable that names it, and False if it is not trusted and so not used."""

    name: str
    settings: ToolServerSettings
    origin: str
    trusted: bool

    @property
    def started_as(self) -> str:
        """The command line or the address."""
        return self.settings.url or " ".join((self.settings.command, *self.settings.args))

    @property
    def grants(self) -> str:
        """The access beyond the least, as text; empty for a server at an address."""
        entry = self.settings
        if entry.url:
            return ""
        if entry.unconfined:
            return "unconfined"
        parts = [
            f"{word} {', '.join(paths)}" for word, paths in (("reads", entry.read), ("writes", entry.write)) if paths
        ]
        return "; ".join([*parts, "network" if entry.network else "no network"])


class TestedTool(Struct, frozen=True):
    """A tool that a server lists; `problem` says why it is left out, empty if it is used."""

    spec: ToolSpec
    problem: str


class ServerTest(Struct, frozen=True):
    """A server as it was when it was started: its own name and protocol, its tools, and what it did unasked.

    `error` says why there is nothing of this.
    """

    name: str
    about: str = ""
    tools: tuple[TestedTool, ...] = ()
    notices: tuple[str, ...] = ()
    error: str = ""
    advice: str = ""
    seconds: float = 0.0

    @property
    def usable(self) -> bool:
        """True if the server answered and at least one of its tools can be used."""
        return not self.error and any(not tool.problem for tool in self.tools)
