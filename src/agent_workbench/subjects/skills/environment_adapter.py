"""Environments of skills: the one in a skill's folder, else one in the cache for the packages that it declares.

What a repository brings is not run unseen: an environment in the folder of its skill counts only with the content that
the user accepted, and bytecode beside its files is not read.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import ToolError
from agent_workbench.core.skills import ENVIRONMENT_MARK, ENVIRONMENTS, SkillEntry, SkillOrigin, is_compiled
from agent_workbench.subjects.skills.requirements_adapter import Requirements, read_requirements
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import read_regular

COMPLETE = "complete"
"""File that is written last into an environment of the cache."""
MAX_FILES, MAX_BYTES = 100_000, 4_000_000_000
_READ_BYTES = 1 << 20


class SkillEnvironment(Struct, frozen=True):
    """The environment that a skill's scripts run in: its folder and interpreter.

    `bytecode` is the only folder from which compiled files are read, empty: they are read from beside their sources.
    """

    folder: Path
    python: Path
    bytecode: Path | None = None


class OwnEnvironment(Struct, frozen=True):
    """The environment in a skill's folder, with the digest of all that is in it."""

    folder: Path
    digest: str
    accepted: bool


class SkillEnvironments:
    """The environments of all skills; `cache` and `state` are folders of the user, `root` is the repo's."""

    def __init__(self, root: Path, cache: Path, state: Path) -> None:
        self._root = root
        self._cache = cache / "skills"
        self._accepted = state / "skill-environments"
        self.base = Path(getattr(sys, "_base_executable", "") or sys.executable)

    @property
    def bytecode(self) -> Path:
        """Folder of the compiled files of environments that were set up."""
        return self._cache / "bytecode"

    def of(self, skill: SkillEntry) -> SkillEnvironment:
        """Return the environment of a skill. Blocks.

        Raises `ToolError` where it has to be set up first, `ConfigError` for declarations that are not accepted.
        """
        own = own_environment(Path(skill.folder))
        if own is not None and skill.origin is not SkillOrigin.REPO:
            return SkillEnvironment(own, interpreter(own))
        if own is not None:
            if not self.examine(skill, own).accepted:
                raise ToolError(
                    f"the environment {own.name}/ of the skill {skill.name!r} is not accepted as it is now",
                    advice=f"`agent skills setup {skill.name}` shows it and asks",
                )
            return SkillEnvironment(own, interpreter(own), self.bytecode)
        declared = read_requirements(Path(skill.folder))
        folder = self.place(declared)
        if not (folder / COMPLETE).is_file():
            raise ToolError(f"no venv in skill {skill.name!r}", advice=f"`agent skills setup {skill.name}` makes one")
        return SkillEnvironment(folder, interpreter(folder), self.bytecode)

    def is_plain(self, folder: Path) -> bool:
        """Return True if the skill in `folder` needs no packages and brings no environment. Blocks."""
        return own_environment(folder) is None and not read_requirements(folder).lines

    def place(self, declared: Requirements) -> Path:
        """Return the folder in the cache of the environment with these packages; skills that need the same share it."""
        told = "\n".join((str(self.base), sys.version, *sorted(declared.lines)))
        return self._cache / hashlib.sha256(told.encode()).hexdigest()[:24]

    def examine(self, skill: SkillEntry, own: Path) -> OwnEnvironment:
        """Return the environment in the folder of a repo's skill; raise `ToolError` if it leads elsewhere. Blocks."""
        digest = self._digest(skill, own)
        try:
            accepted = read_regular(self._note(own), 200).decode("ascii", "replace") == digest
        except OSError:
            accepted = False
        return OwnEnvironment(own, digest, accepted)

    def accept(self, own: OwnEnvironment) -> None:
        """Record that the user accepts the environment with exactly this content; raise `StorageError`. Blocks."""
        note = self._note(own.folder)
        try:
            make_directories(note.parent)
        except OSError as error:
            raise storage_error(f"{note.parent} could not be created", error) from error
        write_atomically(note, own.digest.encode())

    def _note(self, own: Path) -> Path:
        return self._accepted / hashlib.sha256(os.fsencode(own.resolve())).hexdigest()

    def _digest(self, skill: SkillEntry, own: Path) -> str:
        digest, size = hashlib.sha256(), 0
        root, inside = self._root.resolve(), own.resolve()
        try:
            for count, path in enumerate(_files(inside)):
                name = str(path.relative_to(inside))
                facts = path.lstat()
                size += facts.st_size
                if count >= MAX_FILES or size > MAX_BYTES:
                    raise ToolError(f"the environment of the skill {skill.name!r} has too many or too large files")
                if stat.S_ISLNK(facts.st_mode):
                    target = path.resolve()
                    if target.is_relative_to(root) and not target.is_relative_to(inside):
                        raise ToolError(
                            f"{own.name}/{name} of the skill {skill.name!r} leads to {target}, inside the repository",
                            advice="what it leads to can change unseen; make the environment again",
                        )
                    content = f"link {os.readlink(path)} to {target}"  # noqa: PTH115 - the text of the link
                elif stat.S_ISREG(facts.st_mode):
                    content = f"{facts.st_mode & 0o111:o} {_sha(path)}"
                else:
                    raise ToolError(f"{own.name}/{name} of the skill {skill.name!r} is neither a file nor a link")
                digest.update(f"{len(name)} {name} {content}\n".encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise storage_error(f"the environment of the skill {skill.name!r} cannot be read", error) from error
        self._check_home(skill, inside)
        return digest.hexdigest()

    def _check_home(self, skill: SkillEntry, own: Path) -> None:
        """Raise `ToolError` if the standard library of the environment would be one of the repository."""
        for line in read_regular(own / ENVIRONMENT_MARK, 100_000).decode("utf-8", "replace").splitlines():
            key, _, value = line.partition("=")
            home = Path(value.strip())
            if key.strip() == "home" and (
                not home.is_absolute() or home.resolve().is_relative_to(self._root.resolve())
            ):
                raise ToolError(
                    f"pyvenv.cfg of the skill {skill.name!r} takes Python from {home}, inside the repository",
                    advice="make the environment again with a Python of the system",
                )


def own_environment(folder: Path) -> Path | None:
    """Return the environment in a skill's folder, None if there is none."""
    return next((folder / name for name in ENVIRONMENTS if (folder / name / ENVIRONMENT_MARK).is_file()), None)


def interpreter(environment: Path) -> Path:
    """Return the path of an environment's interpreter, links not followed; raise `ToolError` without one."""
    python = environment / "bin" / "python"
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise ToolError(f"{python} is no interpreter that can be executed", advice="make the environment again")
    return python


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files and links below a folder, sorted; links to folders are not followed.

    Compiled files are left out: they are not read.
    """
    for above, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        links = [name for name in folders if Path(above, name).is_symlink()]
        kept = [name for name in names if not is_compiled(Path(above).name, name)]
        yield from (Path(above, name) for name in sorted((*kept, *links)))


def _raise(error: OSError) -> None:
    raise error


def _sha(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
