"""Construction of the MCP servers that the settings name."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import signing_keys

if TYPE_CHECKING:  # loaded where servers are set
    from agent_workbench.adapters.mcp.tool_source import McpServer
    from agent_workbench.core.settings import Settings


def tool_servers(settings: "Settings", root: Path, environ: Mapping[str, str]) -> "tuple[McpServer, ...]":
    """Return a source of tools for each MCP server; none is started yet. Blocks while modules are loaded."""
    if not settings.mcp_servers:
        return ()
    from agent_workbench.adapters.mcp.tool_source import McpServer
    from agent_workbench.adapters.shell.server_processes import SandboxedServers
    from agent_workbench.system.user_dirs import cache_dir, config_dir, state_dir

    own = tuple(str(each) for each in (state_dir(), config_dir(), cache_dir()))
    servers = SandboxedServers(str(root), environ, own, signing_keys(settings))
    return tuple(McpServer(name, entry, servers, environ) for name, entry in settings.mcp_servers)
