"""Environments of skills, and the packages that a skill declares for its own.

What a repository brings is not run unseen: an environment in the folder of its skill counts only with the content that
the user accepted, and bytecode beside its files is not read.

Only names, versions, markers and hashes are accepted: an option, an address or a path in a file of a stranger would
decide from where code is installed, or run it.
"""

import hashlib
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import SkillError, StorageError, ToolError
from agent_workbench.core.skills import ENVIRONMENT_MARK, ENVIRONMENTS, SkillEntry, SkillOrigin, is_compiled
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.repo_files import read_inside

MAX_DECLARATION_BYTES = 200_000
MAX_SCRIPTS, MAX_REQUIREMENTS = 200, 200
_BLOCK = re.compile(r"^# /// script[ \t]*\r?$\n(?P<lines>(?:^#(?: .*)?\r?$\n)*?)^# ///[ \t]*\r?$", re.MULTILINE)
_VERSION = r"(?:===?|~=|!=|[<>]=?)[ ]*[A-Za-z0-9.*+!_-]+"
_VERSIONS = rf"{_VERSION}(?:[ ]*,[ ]*{_VERSION})*"
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:[ ]*\[[ ]*[A-Za-z0-9._-]+(?:[ ]*,[ ]*[A-Za-z0-9._-]+)*[ ]*\])?"
    rf"(?:[ ]*(?:{_VERSIONS}|\([ ]*{_VERSIONS}[ ]*\)))?"
    r"(?:[ ]*;[ ]*(?:(?! --)[A-Za-z0-9_.'\"<>=!~ ()-])+)?",
    re.ASCII,
)
_HASHES = re.compile(r"(?:[ ]+--hash=sha(?:256|384|512):[0-9a-f]{64,128})+$", re.ASCII)
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_ADVICE = "name packages with versions only, such as `pyyaml>=6`; options, addresses and paths are not accepted"

COMPLETE = "complete"
"""File that is written last into an environment of the cache."""
MAX_FILES, MAX_BYTES = 100_000, 4_000_000_000
_READ_BYTES = 1 << 20


class Requirements(Struct, frozen=True):
    """Declared packages, a line for each, and the file or files that declare them (empty: none does)."""

    lines: tuple[str, ...] = ()
    declared_in: str = ""


def read_requirements(folder: Path) -> Requirements:
    """Return what the skill in `folder` declares. Blocks.

    Raises `SkillError` with file and line for what is not accepted.
    """
    found: dict[str, None] = {}
    files: list[str] = []
    for name in _scripts(folder):
        block = _BLOCK.search(_text(folder, name))
        if block is not None:
            files.append(name)
            found |= dict.fromkeys(_of_script(name, block["lines"]))
    if files:
        return _bounded(found, ", ".join(files))
    if (folder / "requirements.txt").is_file():
        return _bounded(_of_list("requirements.txt", _text(folder, "requirements.txt")), "requirements.txt")
    if (folder / "pyproject.toml").is_file():
        return _bounded(_of_project(_text(folder, "pyproject.toml")), "pyproject.toml")
    return Requirements()


def _bounded(lines: Iterable[str], declared_in: str) -> Requirements:
    found = tuple(dict.fromkeys(lines))
    if len(found) > MAX_REQUIREMENTS:
        raise SkillError(f"{declared_in}: declares more than {MAX_REQUIREMENTS} packages", advice="declare fewer")
    return Requirements(found, declared_in if found else "")


def _scripts(folder: Path) -> list[str]:
    """Return the Python files of the skill, those of `scripts/` and those at its top."""
    found = [*folder.glob("*.py"), *folder.glob("scripts/*.py")]
    return sorted(str(each.relative_to(folder)) for each in found)[:MAX_SCRIPTS]


def _text(folder: Path, name: str) -> str:
    try:
        data = read_inside(folder.resolve(), name, MAX_DECLARATION_BYTES)
    except StorageError as error:
        raise SkillError(str(error), advice=error.advice) from error
    return (data or b"").decode("utf-8", "replace")


def _of_script(name: str, lines: str) -> Iterator[str]:
    text = "\n".join(line.rstrip("\r").removeprefix("#").removeprefix(" ") for line in lines.split("\n"))
    yield from _checked(name, _table(name, text).get("dependencies", []))


def _of_project(text: str) -> Iterator[str]:
    project = _table("pyproject.toml", text).get("project", {})
    if not isinstance(project, dict):
        raise SkillError("pyproject.toml: project is no table", advice=_ADVICE)
    dynamic = project.get("dynamic", [])
    if isinstance(dynamic, list) and "dependencies" in dynamic:
        raise SkillError(
            "pyproject.toml: its dependencies are dynamic, so only a build would tell them",
            advice="list them under [project] dependencies; nothing of a skill is built",
        )
    yield from _checked("pyproject.toml", project.get("dependencies", []))


def _table(name: str, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SkillError(f"{name}: not TOML: {str(error)[:200]}", advice=_ADVICE) from error


def _checked(name: str, listed: object) -> Iterator[str]:
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise SkillError(f"{name}: dependencies is no list of texts", advice=_ADVICE)
    for each in listed:
        yield _requirement(name, each)


def _of_list(name: str, text: str) -> Iterator[str]:
    joined, began = "", 0
    for number, line in enumerate(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), 1):
        began = began or number
        # As pip does it: a comment ends a line, and a backslash joins it with the next one.
        joined += _COMMENT.sub("", line)
        if joined.endswith("\\") and joined == joined.rstrip():
            joined = joined[:-1]
            continue
        if joined.strip():
            yield _requirement(f"{name}:{began}", joined)
        joined, began = "", 0
    if joined.strip():
        yield _requirement(f"{name}:{began}", joined)


def _requirement(place: str, said: str) -> str:
    """Return a requirement on one line, its white space joined; raise `SkillError` for anything else."""
    line = " ".join(said.split()) if said.isprintable() or "\t" in said else said
    hashes = _HASHES.search(line)
    if not _REQUIREMENT.fullmatch(line[: hashes.start()] if hashes else line):
        raise SkillError(f"{place}: {quoted(said.strip()[:200])} is not accepted", advice=_ADVICE)
    return line


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
