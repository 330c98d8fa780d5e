"""Scratchpads: one markdown file for each task, which the model and the user edit in turn."""

import asyncio
from pathlib import Path, PurePosixPath

from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.text.line_merge import merge
from agent_workbench.system.repo_files import change_inside, create_inside, read_inside

MAX_BYTES = 1_000_000


class ScratchpadFolder:
    """Scratchpads in the folder `scratch` of the repo's memory folder (`memory`, relative to `root`)."""

    def __init__(self, root: Path, memory: str = "memory") -> None:
        self._root = root
        self._folder = PurePosixPath(memory) / "scratch"
        self._archive = PurePosixPath(memory) / "archive"

    def path(self, task: TaskId, fork: str = "") -> str:
        """Return the path of a task's scratchpad, relative to the repo; raise `UsageError` for an invalid task id."""
        # No task id contains an `@`, so the scratchpad of a fork never belongs to another task.
        return str(self._folder / f"{task_id(task)}{f'@{fork}' if fork else ''}.md")

    async def read_scratchpad(self, task: TaskId, fork: str = "") -> str:
        return await asyncio.to_thread(self._read, self.path(task, fork))

    async def write_scratchpad(self, task: TaskId, before: str, text: str, fork: str = "") -> str:
        return await asyncio.to_thread(self._write, self.path(task, fork), before, text)

    async def archive_scratchpad(self, task: TaskId, before: str, text: str, time: str, fork: str = "") -> str:
        return await asyncio.to_thread(self._replace, self.path(task, fork), before, text, time)

    def _replace(self, path: str, before: str, text: str, time: str) -> str:
        now = ""

        def change(found: bytes | None) -> bytes | None:
            nonlocal now
            now = _decoded(path, found)
            if found is None or now != before:
                return None
            data = _encoded(path, text)
            # Only once, even if a crash comes before the scratchpad is replaced.
            archived = str(self._archive / f"{PurePosixPath(path).stem}-{name_of(time)}")
            create_inside(self._root, found, MAX_BYTES, lambda suffix: f"{archived}{suffix}.md")
            now = text
            return data

        change_inside(self._root, path, MAX_BYTES, change)
        return now

    def _read(self, path: str) -> str:
        return _decoded(path, read_inside(self._root, path, MAX_BYTES))

    def _write(self, path: str, before: str, text: str) -> str:
        now = ""

        def change(found: bytes | None) -> bytes | None:
            nonlocal now
            now = merge(before, _decoded(path, found), text)
            data = _encoded(path, now)
            return None if found is None and not data else data

        change_inside(self._root, path, MAX_BYTES, change)
        return now


def name_of(time: str) -> str:
    """Return a time (ISO 8601, UTC) for use in a file name: to the second, without colons."""
    return f"{''.join(letter for letter in time[:19] if letter.isalnum())}Z"


def _decoded(path: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path} is not UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}",
            advice="save the file as UTF-8",
        ) from error


def _encoded(path: str, text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorageError(
            f"{path} cannot contain the character {text[error.start]!a}", advice="remove that character"
        ) from error
    if len(data) > MAX_BYTES:
        raise StorageError(f"{path} would have {len(data)} bytes; the limit is {MAX_BYTES}", advice="shorten it")
    return data
