"""Commands that a project's files name for its tests and its linter, one line for the shell for all its folders."""

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.repo.path_kinds import is_test

_IN_FOLDER = re.compile(r"\(cd ([^()]+?) && [^()]+\)")
# What else such a line may have. In quotes or behind a `#` a part of it may be no command at all.
_OUTSIDE = re.compile(r"[\w ./:=&-]*")
_NEVER = frozenset("#\\`$\n")
# Commands to which paths of test files can be added.
_PYTEST = re.compile(r"(?:[\w./-]+ -m )?(?:[\w./-]*/)?pytest(?: -[\w=-]+)*")


class ProjectCommand(Struct, frozen=True):
    """A command in a `folder` of the repository (empty: its root), and the file that names it.

    `missing` is the first program it needs that was not found; with it the command would not start.
    """

    line: str
    source: str
    folder: str = ""
    missing: str = ""

    @property
    def from_root(self) -> str:
        """The line for a shell in the root."""
        return f"(cd {shlex.quote(self.folder)} && {self.line})" if self.folder else self.line


class DetectedProject(Struct, frozen=True):
    """Facts of a project for a first `.agent.yml`: interpreter, tests, linter, and folders to link into workspaces."""

    python: str = ""
    tests: tuple[ProjectCommand, ...] = ()
    lint: tuple[ProjectCommand, ...] = ()
    link: tuple[str, ...] = ()

    @property
    def test_command(self) -> str:
        """The line for all tests that start, empty if none does."""
        return joined(self.tests)

    @property
    def lint_command(self) -> str:
        """The line for all linters that start, empty if none does."""
        return joined(self.lint)


def joined(commands: Sequence[ProjectCommand]) -> str:
    """Return one line that runs the commands that start, each in its folder, until one fails."""
    return " && ".join(each.from_root for each in commands if not each.missing)


def command_of(line: str, paths: Collection[str]) -> str:
    """Return the part of a joined line for the folder that holds all of `paths`, else the whole line.

    Any other line is returned whole: what the user trusted as one text is not run as another.
    """
    parts = [*_IN_FOLDER.finditer(line)]
    if not paths or _NEVER & set(line) or not _OUTSIDE.fullmatch(_IN_FOLDER.sub("", line)):
        return line
    try:
        folders = [shlex.split(part[1]) for part in parts if shlex.split(part[0])]
    except ValueError:  # a quote that a part does not close
        return line
    for part, folder in zip(parts, folders, strict=True):
        if len(folder) == 1 and all(PurePosixPath(path).is_relative_to(folder[0]) for path in paths):
            return part[0]
    return line


def narrowed(command: str, tests: Sequence[str]) -> str:
    """Return a test command on these test files alone where it can take them, else the command."""
    files = [path for path in tests if path.endswith(".py") and path.isprintable()]
    return f"{command} {shlex.join(files)}" if files and _PYTEST.fullmatch(command) else command


def is_part_of(line: str, command: str) -> bool:
    """Return True if a line is a test command, or runs a part of it as `command_of` and `narrowed` make one."""
    parts = [part[0] for part in _IN_FOLDER.finditer(command)]
    if line == command or any(line == part == command_of(command, [_folder(part)]) for part in parts):
        return bool(line)
    head, _, rest = line.partition(f"{command} ")
    if head or not _PYTEST.fullmatch(command):
        return False
    try:
        files = shlex.split(rest)
    except ValueError:
        return False
    within = all(is_test(each) and not {"", ".."} & set(each.split("/")) and not each.startswith("-") for each in files)
    return within and line == narrowed(command, files) != command


def _folder(part: str) -> str:
    found = _IN_FOLDER.fullmatch(part)
    try:
        return next(iter(shlex.split(found[1] if found else "")), "")
    except ValueError:  # a quote that the part does not close
        return ""
