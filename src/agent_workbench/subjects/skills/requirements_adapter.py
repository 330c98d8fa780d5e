"""Packages that a skill declares: in its scripts (PEP 723), else in `requirements.txt`, else in `pyproject.toml`.

Only names, versions, markers and hashes are accepted: an option, an address or a path in a file of a stranger would
decide from where code is installed, or run it.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import SkillError, StorageError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.repo_files import read_inside

MAX_BYTES = 200_000
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
        data = read_inside(folder.resolve(), name, MAX_BYTES)
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
