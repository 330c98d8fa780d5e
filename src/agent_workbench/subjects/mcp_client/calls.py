"""MCP servers of the settings: list, test, add, and sign in at them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import repo_or_folder
from agent_workbench.bootstrap.repo_context import Say
from agent_workbench.core.errors import UsageError, WorkbenchError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import did_you_mean, quoted

if TYPE_CHECKING:  # loaded by the calls that need it
    from agent_workbench.core.diagnostics import ListedServer, ServerTest
    from agent_workbench.core.ports.tools import SchemaValidator
    from agent_workbench.core.settings.extensions import ToolServerSettings
    from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer

TEST_SECONDS = 60.0
THIS_TEST = "`agent mcp test`"


async def list_servers(invocation: Invocation) -> "tuple[tuple[ListedServer, ...], tuple[str, ...]]":
    """Return the servers of all settings, trusted or not, and why others of `.mcp.json` are left out."""
    from agent_workbench.core.diagnostics import ListedServer

    repo, settings = await repo_or_folder(invocation)
    loaded = await asyncio.to_thread(repo.load)
    said, used = dict(loaded.settings.mcp_servers), dict(settings.mcp_servers)
    listed = []
    for name, entry in said.items():
        key = f"mcp_servers.{name}.{'url' if entry.url else 'command'}"
        listed.append(ListedServer(name, entry, loaded.origins.get(key, ""), used.get(name) == entry))
    # Where an untrusted repo names a server as the user does, the user's own one is used.
    own = (ListedServer(name, entry, "your own settings", True) for name, entry in used.items() if said[name] != entry)
    listed += own
    return tuple(listed), loaded.left_out


async def run_server_tests(invocation: Invocation, names: Sequence[str], say: Say) -> "tuple[ServerTest, ...]":
    """Start the trusted servers with these names (none: all of them), list their tools, and stop them.

    Raises `UsageError` for an unknown name, or one without trust.
    """
    from agent_workbench.adapters.schema_checker import SchemaChecker

    servers = await _trusted_servers(invocation, names, say)
    checker = SchemaChecker(invocation.environ)
    return tuple(await asyncio.gather(*(_test(server, checker) for server in servers)))


async def sign_in(invocation: Invocation, name: str, visit: Callable[[str], None]) -> None:
    """Have a person sign in at a trusted server: `visit` gets the page for their browser, which leads back here.

    Raises `UsageError` for a server without an address, an unknown one, or one without trust, and `ToolError`.
    """
    (server,) = await _trusted_servers(invocation, [name])
    await server.entry.sign_in(visit)


async def sign_out(invocation: Invocation, name: str) -> bool:
    """Remove the tokens of a sign-in; return False if there are none. Raises `UsageError` as `sign_in` does."""
    (server,) = await _trusted_servers(invocation, [name])
    return await asyncio.to_thread(server.entry.sign_out)


async def _trusted_servers(
    invocation: Invocation, names: Sequence[str], say: Say | None = None
) -> "tuple[McpServer, ...]":
    """Return the sources of the trusted servers with these names, without names of all; raise `UsageError`."""
    from agent_workbench.bootstrap.user_extensions import tool_servers

    repo, settings = await repo_or_folder(invocation, say)
    known = [name for name, _ in settings.mcp_servers]
    if unknown := next((name for name in names if name not in known), ""):
        if unknown in dict((await asyncio.to_thread(repo.load)).settings.mcp_servers):
            raise UsageError(f"the MCP server {quoted(unknown)} is not trusted", advice="`agent trust` shows it")
        raise UsageError(
            f"there is no MCP server {quoted(unknown)}{did_you_mean(unknown, known)}",
            advice="`agent mcp list` shows them all",
        )
    servers = await asyncio.to_thread(tool_servers, settings, repo.root, invocation.environ)
    return tuple(server for server in servers if not names or server.name.partition(":")[2] in names)


async def _test(server: "McpServer", schemas: "SchemaValidator") -> "ServerTest":
    from agent_workbench.core.diagnostics import ServerTest, TestedTool
    from agent_workbench.core.tools.spec import select_specs

    name = server.name.partition(":")[2]
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(TEST_SECONDS):
            specs = await server.list_tools()
        selected = tuple(select_specs(specs, ()))
        sound = [spec.input_schema for spec, problem in selected if not problem]
        found = iter(await schemas.schema_problems(sound))
        tools = tuple(TestedTool(spec, problem or next(found)) for spec, problem in selected)
        seconds = asyncio.get_running_loop().time() - began
        return ServerTest(name, server.about, tools, tuple(server.notices), seconds=seconds)
    except TimeoutError:
        return ServerTest(name, notices=tuple(server.notices), error=f"it gave no answer within {TEST_SECONDS:g} s")
    except WorkbenchError as error:
        advice = "" if THIS_TEST in error.advice else error.advice
        return ServerTest(name, notices=tuple(server.notices), error=str(error), advice=advice)
    finally:
        await server.close()


async def add_server(invocation: Invocation, name: str, entry: "ToolServerSettings", *, for_repo: bool) -> str:
    """Write a server into the user's own settings, or into the repository's; return the path of the file.

    Nothing is started. Raises `RepoError` without a repository, `UsageError`, `ConfigError`, `StorageError`.
    """
    from agent_workbench.bootstrap.repo_context import find_repo
    from agent_workbench.config.own_settings import OWN_FILE
    from agent_workbench.config.settings_loader import FILE
    from agent_workbench.config.tool_servers import add_server as add
    from agent_workbench.system.user_dirs import config_dir

    folder, file = ((await find_repo(invocation)).root, FILE) if for_repo else (config_dir(), OWN_FILE)
    await asyncio.to_thread(add, folder, file, name, entry)
    return str(folder / file)
