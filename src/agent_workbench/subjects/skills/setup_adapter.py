"""Set-up of a skill's environment: what would be installed and from where, and the installation itself."""

import asyncio
import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import ToolError
from agent_workbench.core.skills import SkillEntry, SkillOrigin
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.subjects.skills.environment_adapter import (
    COMPLETE,
    OwnEnvironment,
    Requirements,
    SkillEnvironments,
    interpreter,
    own_environment,
    read_requirements,
)
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.folder_trees import remove_tree
from agent_workbench.system.locks import FileLock, describe_holder
from agent_workbench.system.processes import ResourceLimits, spawn
from agent_workbench.system.programs import child_environment, find_program

INSTALL_SECONDS, SHORT_SECONDS = 900.0, 120.0
LOCK_SECONDS = 60.0
SHOWN_CHARS = 3_000
DEFAULT_INDEX = "https://pypi.org/simple"
_OPTIONS = ("index-url", "extra-index-url", "find-links")
_CONFIGURED = re.compile(rf"^(?P<section>:env:|install|global)\.(?P<option>{'|'.join(_OPTIONS)})='(?P<value>.*)'$")
_SECTIONS = ("global", "install", ":env:")
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")
# What the installer needs of the user's environment: its own settings, proxies and certificates.
_PASSED_ON = ("PIP_", "UV_", *(f"{each}_PROXY" for each in ("HTTP", "HTTPS", "ALL", "NO")), "SSL_CERT_", "REQUESTS_CA_")
_PROXIES = tuple(each.lower() for each in _PASSED_ON if each.endswith("_PROXY"))


class Setup(Struct, frozen=True):
    """A set-up before it is confirmed: what would happen, a line each. Nothing is to be done unless it `asks`."""

    skill: SkillEntry
    lines: tuple[str, ...]
    asks: bool = False
    own: OwnEnvironment | None = None
    declared: Requirements = Requirements()
    sources: tuple[tuple[str, str], ...] = ()


class EnvironmentSetup:
    """Maker of environments. `environ` is the user's environment; no program inside the repo at `root` is run.

    Making it blocks: it looks for programs.
    """

    def __init__(self, environments: SkillEnvironments, environ: Mapping[str, str], root: Path) -> None:
        self._environments = environments
        self._environ = environ
        self._uv = find_program("uv", environ.get("PATH", ""), str(root))
        self._pip = find_spec("pip") is not None

    async def plan(self, skill: SkillEntry) -> Setup:
        """Return what a set-up of the skill would do; raise `ConfigError` or `ToolError` where it cannot be done."""
        own = await asyncio.to_thread(own_environment, Path(skill.folder))
        if own is not None:
            return await asyncio.to_thread(self._plan_own, skill, own)
        declared = await asyncio.to_thread(read_requirements, Path(skill.folder))
        if not declared.lines:
            return Setup(skill, (f"the skill {skill.name} declares no packages; its scripts run without a set-up",))
        folder = self._environments.place(declared)
        if await asyncio.to_thread((folder / COMPLETE).is_file):
            return Setup(skill, (f"the environment of the skill {skill.name} is complete: {folder}",))
        sources = await self._sources()
        lines = (
            f"{counted_text(len(declared.lines), 'package')} for the skill {skill.name}, from {declared.declared_in}:",
            *(f"  {line}" for line in declared.lines),
            *(f"{option.replace('-', ' ')}: {_CREDENTIALS.sub('***@', value)}" for option, value in sources),
            f"installed by {self._uv or 'pip'} into {folder}",
            "Only wheels are installed, so none of their code runs now, but in the sandbox when a script imports it.",
        )
        return Setup(skill, lines, asks=True, declared=declared, sources=sources)

    def _plan_own(self, skill: SkillEntry, own: Path) -> Setup:
        python = interpreter(own)
        if skill.origin is not SkillOrigin.REPO:
            return Setup(skill, (f"the skill {skill.name} has an environment of its own: {own}",))
        found = self._environments.examine(skill, own)
        if found.accepted:
            return Setup(skill, (f"the environment of the skill {skill.name} is accepted: {own}",))
        installed = installed_packages(own)
        lines = (
            f"the skill {skill.name} brings an environment of its own: {own}",
            f"its Python: {python.resolve()}",
            f"{counted_text(len(installed), 'package')}: {', '.join(installed) or 'none'}",
            f"sha256 of all its files: {found.digest}",
            "Scripts run with exactly this content, in the sandbox; a change asks again.",
        )
        return Setup(skill, lines, asks=True, own=found)

    async def carry_out(self, setup: Setup) -> tuple[str, ...]:
        """Do what a plan says; return the installed packages. Raises `ToolError` with the end of the output."""
        if setup.own is not None:
            await asyncio.to_thread(self._environments.accept, setup.own)
            await self._compile(setup.own.folder)
            return await asyncio.to_thread(installed_packages, setup.own.folder)
        folder = self._environments.place(setup.declared)
        await self.make(setup.declared, setup.sources)
        return await asyncio.to_thread(installed_packages, folder)

    async def make(self, declared: Requirements, sources: Sequence[tuple[str, str]] = ()) -> None:
        """Make the environment with these packages in the cache, unless it is complete. Raises `ToolError`."""
        folder = self._environments.place(declared)
        lock = FileLock(folder.with_name(f"{folder.name}.lock"), describe_holder())
        await asyncio.to_thread(self._begin, folder, lock)
        try:
            if await asyncio.to_thread((folder / COMPLETE).is_file):
                return
            await asyncio.to_thread(remove_tree, str(folder))
            bare = bool(self._uv or self._pip or not declared.lines)
            words = ["-I", "-m", "venv", *(["--without-pip"] if bare else []), str(folder)]
            await self._run([str(self._environments.base), *words], SHORT_SECONDS)
            if declared.lines:
                words = await asyncio.to_thread(self._installation, folder, declared, sources)
                await self._run(words, INSTALL_SECONDS)
                await self._compile(folder)
            await asyncio.to_thread((folder / COMPLETE).touch)
        except OSError as error:
            raise storage_error(f"the environment {folder} cannot be made", error) from error
        finally:
            await asyncio.to_thread(lock.release)

    @staticmethod
    def _begin(folder: Path, lock: FileLock) -> None:
        try:
            make_directories(folder.parent)
        except OSError as error:
            raise storage_error(f"{folder.parent} could not be created", error) from error
        lock.acquire(wait_seconds=LOCK_SECONDS)

    def _installation(self, folder: Path, declared: Requirements, sources: Sequence[tuple[str, str]]) -> list[str]:
        """Return the command that installs the packages; it reads their list from the environment's folder."""
        listed, python = folder / "requirements.txt", interpreter(folder)
        listed.write_text("".join(f"{line}\n" for line in declared.lines), "utf-8")
        if self._uv:
            words = [self._uv, "pip", "install", "--python", str(python), "--no-python-downloads", "--no-progress"]
        else:
            words = [sys.executable if self._pip else str(python), "-I", "-m", "pip"]
            words += ["--python", str(python)] if self._pip else []
            words += ["install", "--no-compile", "--no-input", "--disable-pip-version-check"]
        options = [word for option, value in sources for word in (f"--{option}", value)]
        return [*words, "--only-binary", ":all:", "-r", str(listed), *options]

    async def _compile(self, folder: Path) -> None:
        """Compile the packages into the one folder that compiled files are read from. Nothing of them is run."""
        prefix = f"pycache_prefix={self._environments.bytecode}"
        words = ["-I", "-S", "-X", prefix, "-m", "compileall", "-q", str(folder / "lib")]
        with contextlib.suppress(ToolError):  # some packages bring files of other Pythons
            await self._run([str(self._environments.base), *words], SHORT_SECONDS)

    async def _sources(self) -> tuple[tuple[str, str], ...]:
        """Return the options that say from where packages come, as the user configured pip or uv."""
        said = (
            await self._run([sys.executable, "-I", "-m", "pip", "config", "list"], SHORT_SECONDS) if self._pip else ""
        )
        found: dict[str, str] = {}
        lines = [line for each in said.splitlines() if (line := _CONFIGURED.match(each))]
        for line in sorted(lines, key=lambda each: _SECTIONS.index(each["section"])):
            found[line["option"]] = line["value"].replace("\\n", " ")
        own = {"index-url": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), "extra-index-url": ("UV_INDEX", "UV_EXTRA_INDEX_URL")}
        for option, names in own.items() if self._uv else ():
            found[option] = next(filter(None, map(self._environ.get, names)), found.get(option, ""))
        found["index-url"] = found.get("index-url") or DEFAULT_INDEX
        return tuple((option, each) for option in _OPTIONS for each in found.get(option, "").split())

    async def _run(self, argv: list[str], seconds: float) -> str:
        """Run a program of ours or the user's and return its output; raise `ToolError` unless it succeeds."""
        environment = child_environment(self._environ, *_PASSED_ON, *_PROXIES)
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        output = bytearray()
        async with await spawn(argv, folder="/", environment=environment, limits=ResourceLimits()) as process:
            try:
                async with asyncio.timeout(seconds):
                    while piece := await process.read(1 << 16):
                        output += piece
                        del output[: -(1 << 20)]
                    code = await process.wait()
            except TimeoutError:
                raise ToolError(f"{Path(argv[0]).name} did not end within {seconds:g} s") from None
        said = output.decode("utf-8", "replace")
        if code:
            end = _CREDENTIALS.sub("***@", said[-SHOWN_CHARS:].strip())
            words = " ".join((Path(argv[0]).name, *argv[1:5]))
            raise ToolError(f"the environment was not made: {words} … failed (exit code {code}):\n{end}")
        return said


def installed_packages(environment: Path) -> tuple[str, ...]:
    """Return the packages of an environment with their versions, sorted. Blocks."""
    found = environment.glob("lib/python*/site-packages/*.dist-info")
    names = sorted(each.name.removesuffix(".dist-info") for each in found)
    return tuple(name.replace("-", " ", 1) for name in names)
