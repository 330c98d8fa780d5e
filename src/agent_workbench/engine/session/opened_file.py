"""A file of the workspace that the user wants to see, as it is now."""

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.session.code_lookup import parse_code_place

MOST_LINES = 20_000
MOST_CHARS = 2_000_000


async def open_file(session: SessionContext, path: str, line: int) -> None:
    """Publish the file's text with the line to begin at, cut where it is very long; raise `WorkspaceError`.

    `path` may be the end of the only path that ends so.
    """
    if not session.state.unfinished:
        raise WorkspaceError(f"{path} cannot be shown", advice="its workspace is open while its task is worked on")
    workspace = await session.workspace()
    place = parse_code_place(f"{path}:{line}", await workspace.list_files())
    path = place.path if place is not None else path
    content = await workspace.read(path)
    if content is None:
        raise WorkspaceError(f"there is no file {path!r} in the workspace")
    if b"\0" in content.data:
        raise WorkspaceError(f"{path!r} is binary ({len(content.data):,} bytes)")
    lines = content.data.decode("utf-8", "replace")[:MOST_CHARS].removesuffix("\n").split("\n")
    lines = lines[:MOST_LINES]
    session.publisher.show_file(path, max(1, min(line, len(lines))), "\n".join(lines))
