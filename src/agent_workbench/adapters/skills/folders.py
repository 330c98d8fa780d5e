"""Implementation of the port `Skills`: folders with a `SKILL.md` of the repo, the user and the package."""

import asyncio
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.skills.front_matter import SkillHead, is_skill_name, read_skill
from agent_workbench.core.errors import ConfigError, StorageError
from agent_workbench.core.events import SkillText
from agent_workbench.core.settings import SkillSettings
from agent_workbench.core.text.messages import did_you_mean
from agent_workbench.system.repo_files import read_inside

FILE = "SKILL.md"
_PACKAGE = "agent_workbench"
_MAX_BYTES = 1024 * 1024
_CHARS_PER_TOKEN = 4


class SkillSummary(Struct, frozen=True):
    """Skill with the folder it is read from, and the reason why it cannot be read (empty: none)."""

    head: SkillHead
    folder: str
    problem: str = ""


class _Source(Struct, frozen=True):
    """Folder of skills below `root`. Links in a repo's folder must stay inside it; the user's may lead anywhere."""

    root: Path
    inside: str = "."
    of_repo: bool = False

    def read(self, name: str) -> tuple[SkillHead, str]:
        """Return metadata and body of a skill; raise `ConfigError`."""
        shown = self.root / self.inside / name / FILE
        root, file = (self.root, f"{self.inside}/{name}/{FILE}") if self.of_repo else (shown.parent.resolve(), FILE)
        try:
            data = read_inside(root, file, _MAX_BYTES)
        except StorageError as error:
            raise ConfigError(f"{shown}: {error}", advice=error.advice) from error
        if data is None:
            raise ConfigError(f"{shown} is gone")
        try:
            return read_skill(data.decode(), str(shown), name)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{shown}:{line}: not UTF-8 (byte {error.start})") from error


class SkillFolders:
    """Skills in `settings.dirs` below `root` (none for an untrusted repo), of the user, and of the package.

    Of several skills with one name the first counts. `bundled` is by default the package's folder. The texts of one
    call together have at most `settings.max_tokens` (of four characters each).
    """

    def __init__(
        self, root: Path, settings: SkillSettings, user_dir: Path | None = None, bundled: Path | None = None
    ) -> None:
        self._root = root
        self._settings = settings
        self._user_dir = user_dir
        self._bundled = bundled

    async def list(self) -> tuple[SkillSummary, ...]:
        """Return all skills sorted by name, those that cannot be read with their problem."""
        return await asyncio.to_thread(self._list)

    async def names(self) -> tuple[str, ...]:
        """Return the names of all skills, sorted, without reading them."""
        return await asyncio.to_thread(lambda: tuple(sorted(self._known())))

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        return await asyncio.to_thread(self._load, tuple(dict.fromkeys(names)))

    def _list(self) -> tuple[SkillSummary, ...]:
        return tuple(_summary(name, source) for name, source in sorted(self._known().items(), key=lambda each: each[0]))

    def _load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        known = self._known() if names else {}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ConfigError(
                f"there is no skill {', '.join(map(repr, unknown))}{did_you_mean(unknown[0], known)}",
                advice=f"there are: {', '.join(sorted(known)) or 'none'}",
            )
        return tuple(self._bounded([(name, known[name].read(name)[1]) for name in names]))

    def _bounded(self, bodies: Sequence[tuple[str, str]]) -> Iterator[SkillText]:
        left = self._settings.max_tokens * _CHARS_PER_TOKEN
        for name, body in bodies:
            yield SkillText(name, _clip(body, left, self._settings.max_tokens))
            left = max(0, left - len(body))

    def _known(self) -> dict[str, _Source]:
        known: dict[str, _Source] = {}
        for source in self._sources():
            for name in _names_in(source.root / source.inside):
                known.setdefault(name, source)
        return known

    def _sources(self) -> Iterator[_Source]:
        yield from (_Source(self._root, folder, of_repo=True) for folder in self._settings.dirs)
        yield from (_Source(each) for each in (self._user_dir, self._bundled or bundled_skills()) if each is not None)


def _names_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir() if is_skill_name(path.name) and (path / FILE).is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(f"skills in {folder} cannot be listed: {error.strerror}") from error


def _summary(name: str, source: _Source) -> SkillSummary:
    folder = str(source.root / source.inside / name)
    try:
        return SkillSummary(source.read(name)[0], folder)
    except ConfigError as error:
        return SkillSummary(SkillHead(name, ""), folder, str(error))


def _clip(body: str, limit: int, max_tokens: int) -> str:
    """Return the whole lines of `body` that fit into `limit` characters, and a line about the cut."""
    if len(body) <= limit:
        return body
    kept = body[: limit + 1].rpartition("\n")[0]
    cut = f"[cut: {len(body) - len(kept)} of {len(body)} characters; skills.max_tokens is {max_tokens} for all skills]"
    return f"{kept}\n{cut}" if kept else cut


def bundled_skills() -> Path | None:
    """Return the folder of the bundled skills, None if there is none (in a zip file). Blocks.

    It is in the package, or beside the source in a checkout.
    """
    package = resources.files(_PACKAGE)
    if not isinstance(package, Path):
        return None
    built_in = package / "_data" / "skills"
    if built_in.is_dir():
        return built_in
    checkout = package.parent.parent
    beside = checkout / "skills"
    return beside if (checkout / "pyproject.toml").is_file() and beside.is_dir() else None
