"""Implementation of the port `CustomPrompts`: Markdown files of the repository and of the user."""

import asyncio
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.custom_prompts import SUFFIX, CustomPrompt, is_prompt_name
from agent_workbench.core.errors import ConfigError, StorageError, TrustError
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole, without_chat_markers
from agent_workbench.system.repo_files import read_inside

MAX_BYTES = 32_768
MOST_FILES = 500
"""Number of files in one folder that are looked at, in the order of their names."""
LONGEST_DESCRIPTION = 200
README = "README"
"""Name of the file that describes the folder; it is no prompt."""
CHANGED = "is not as you trusted it"
NAMES = "a name has small letters, digits, '-' and '_'"
_HEAD = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(?P<said>.*)$", re.MULTILINE)


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
            data = read_inside(self.root, f"{self.inside}/{name}{SUFFIX}", MAX_BYTES)
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
