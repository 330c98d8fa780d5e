"""Files of memory/ that a person writes too: the scratchpads of tasks, and prompts of the user's own."""

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agent_workbench.core.custom_prompts import SUFFIX, CustomPrompt, is_prompt_name
from agent_workbench.core.errors import ConfigError, StorageError, TrustError
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.text.line_merge import merge
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole, without_chat_markers
from agent_workbench.system.repo_files import change_inside, create_inside, read_inside

MAX_BYTES = 1_000_000

MAX_PROMPT_BYTES = 32_768
MOST_FILES = 500
"""Number of files in one folder that are looked at, in the order of their names."""
LONGEST_DESCRIPTION = 200
README = "README"
"""Name of the file that describes the folder; it is no prompt."""
CHANGED = "is not as you trusted it"
NAMES = "a name has small letters, digits, '-' and '_'"
_HEAD = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(?P<said>.*)$", re.MULTILINE)


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


class PromptFolder(Struct, frozen=True):
    """A folder `inside` of `root`. `shown` is its path in messages; its files must not lead out of `root`."""

    root: Path
    inside: str
    shown: str

    def prompts(self) -> Iterator[CustomPrompt]:
        """Yield the prompts; none if the folder cannot be listed."""
        yield from (prompt for name in self.names() if (prompt := self.read(name)) is not None)

    def names(self) -> tuple[str, ...]:
        """Return the names of the prompts, sorted."""
        try:
            files = sorted(each.name for each in (self.root / self.inside).iterdir())
        except OSError:
            return ()
        names = (
            name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX) and not name.startswith((".", README))
        )
        return tuple(islice(names, MOST_FILES))

    def read(self, name: str) -> CustomPrompt | None:
        """Return a prompt, None if there is no such file."""
        file = f"{self.shown}/{name}{SUFFIX}"
        if not is_prompt_name(name):
            return CustomPrompt(name, "", file, problem=NAMES)
        try:
            data = read_inside(self.root, f"{self.inside}/{name}{SUFFIX}", MAX_PROMPT_BYTES)
            text = None if data is None else data.decode()
        except StorageError as error:
            return CustomPrompt(name, "", file, problem=str(error))
        except UnicodeDecodeError as error:
            return CustomPrompt(name, "", file, problem=f"is not UTF-8 (byte {error.start})")
        return None if text is None else _prompt(name, file, text)


class PromptFiles:
    """The prompts in the folder `of_repo`, which count while it `is_trusted`, and in the folder `of_user`."""

    def __init__(self, of_repo: PromptFolder, of_user: PromptFolder, is_trusted: Callable[[], bool]) -> None:
        self._of_repo = of_repo
        self._of_user = of_user
        self._is_trusted = is_trusted

    async def list(self) -> tuple[CustomPrompt, ...]:
        return await asyncio.to_thread(self._list)

    async def load(self, name: str) -> CustomPrompt | None:
        return await asyncio.to_thread(self._load, name)

    def _list(self) -> tuple[CustomPrompt, ...]:
        found = {each.name: each for each in self._of_user.prompts()}
        if self._of_repo.names():
            if self._is_trusted():
                found |= {each.name: each for each in self._of_repo.prompts()}
            else:
                found[""] = CustomPrompt(
                    "", "", self._of_repo.shown, problem=f"{CHANGED}; look at it with `agent trust`"
                )
        return tuple(found[name] for name in sorted(found))

    def _load(self, name: str) -> CustomPrompt | None:
        if not is_prompt_name(name):
            return None
        found = self._of_repo.read(name)
        if found is not None and not self._is_trusted():
            raise TrustError(
                f"{found.file} {CHANGED}, so /{name} is not used",
                advice="look at it with `agent trust`",
            )
        found = found or self._of_user.read(name)
        if found is not None and found.problem:
            raise ConfigError(f"{found.file} cannot be used: {found.problem}", advice="correct that file")
        return found


def _prompt(name: str, file: str, text: str) -> CustomPrompt:
    """Return the prompt in a file; its description is that of the front matter, else its first line."""
    if "\0" in text:
        return CustomPrompt(name, "", file, problem="is binary")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    head = _HEAD.match(text)
    body = without_chat_markers(sanitize_whole(text[head.end() :] if head else text)).strip()
    if not body:
        return CustomPrompt(name, "", file, problem="is empty")
    said = _DESCRIPTION.search(head["head"]) if head else None
    description = _without_quotes(said["said"].strip()) if said else ""
    return CustomPrompt(name, body, file, sanitize_line(description or body.partition("\n")[0], LONGEST_DESCRIPTION))


def _without_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
