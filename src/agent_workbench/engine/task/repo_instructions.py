"""Instructions for agents that the repository brings: `AGENTS.md` files from its root down to the task's folder.

They are untrusted text: information for the model that widens no permission. They are read from the task's base.
"""

from collections.abc import Sequence

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import RepoInstructions
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.settings import AGENTS_FILES
from agent_workbench.core.text.sanitizer import sanitize, without_chat_markers

MAX_BYTES = 32 * 1024
"""Limit of all files together; the nearest to the task's folder are cut last."""
MAX_FOLDERS = 16
_WILD = frozenset("*?[")


async def read_instructions(workspace: Workspace, task: Task) -> tuple[tuple[RepoInstructions, ...], tuple[str, ...]]:
    """Return the files for a task, the nearest last, and the problems of those that cannot be read."""
    found: list[RepoInstructions] = []
    problems: list[str] = []
    left = MAX_BYTES
    for folder in reversed(_folders(task.scope.allowed_write_globs)):
        for name in AGENTS_FILES:
            path = f"{folder}/{name}" if folder else name
            try:
                content = await workspace.read(path)
            except WorkspaceError as error:
                problems.append(f"{path} was left out: {error}")
                continue
            if content is not None:
                found.append(_bounded(path, content.data, left))
                left -= len(found[-1].text.encode())
                break
    return tuple(reversed(found)), tuple(problems)


def _folders(globs: Sequence[str]) -> list[str]:
    """Return the folders from the root down to the deepest one that all these globs are in."""
    fixed = [_fixed_folders(glob) for glob in globs] or [[]]
    common: list[str] = []
    for names in zip(*fixed, strict=False):
        if len(set(names)) > 1 or len(common) >= MAX_FOLDERS:
            break
        common.append(names[0])
    return ["/".join(common[:depth]) for depth in range(len(common) + 1)]


def _fixed_folders(glob: str) -> list[str]:
    *folders, _ = (f"{glob}**" if glob.endswith("/") else glob).removeprefix("./").lstrip("/").split("/")
    wild = next((at for at, name in enumerate(folders) if _WILD & set(name) or name in {"", ".", ".."}), len(folders))
    return folders[:wild]


def _bounded(path: str, data: bytes, most_bytes: int) -> RepoInstructions:
    """Return the first lines of a file in at most `most_bytes`, as text without control characters and markers."""
    most = max(0, most_bytes)
    kept = data if len(data) <= most else data[:most].rpartition(b"\n")[0] or data[:most]
    text = without_chat_markers(sanitize(kept.decode("utf-8", "replace").removeprefix("\ufeff")))
    while len(text.encode("utf-8", "replace")) > most:  # what replaces a control character is longer than it
        text = text[: len(text) * 3 // 4]
    return RepoInstructions(path, text.strip("\n"), len(data), len(data) - len(kept))
