"""Implementation of the port `Skills`: folders with a `SKILL.md` of the repo, the user and the package."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.skills.places import FoundSkill, SkillSource
from agent_workbench.adapters.skills.ranking import rank_skills
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.events import SkillText
from agent_workbench.core.settings import SkillSettings
from agent_workbench.core.skills.entries import SkillEntry, SkillHit, SkillOrigin, SkillPlace
from agent_workbench.core.skills.selection import check_named
from agent_workbench.system.package_files import packaged_folder

CHARS_PER_TOKEN = 4
MOST_FOLD = 2
"""A declared number of tokens counts if it differs from the estimate by no more than this factor."""
_Known = dict[str, tuple[SkillSource, FoundSkill]]


class SkillFolders:
    """Skills in `settings.folders` below `root` (none for an untrusted repo), of the user, and of the package.

    `user_dirs` are the user's own folders, `bundled` is by default the package's. Of several skills with one name the
    first counts.
    """

    def __init__(
        self, root: Path, settings: SkillSettings, user_dirs: Sequence[Path] = (), bundled: Path | None = None
    ) -> None:
        self._root = root
        self._settings = settings
        self._user_dirs = tuple(user_dirs)
        self._bundled = bundled
        self._entries: dict[str, tuple[tuple[int, ...], SkillEntry]] = {}

    async def list(self) -> tuple[SkillEntry, ...]:
        return await asyncio.to_thread(self._list)

    async def places(self) -> tuple[SkillPlace, ...]:
        return await asyncio.to_thread(lambda: tuple(source.find()[0] for source in self._sources()))

    async def rank(self, words: str) -> tuple[SkillHit, ...]:
        return await asyncio.to_thread(lambda: rank_skills(self._list(), words))

    async def body(self, name: str) -> str:
        return await asyncio.to_thread(self._body, name)

    async def read_file(self, name: str, path: str) -> str:
        return await asyncio.to_thread(self._read_file, name, path)

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        return await asyncio.to_thread(self._load, tuple(dict.fromkeys(names)))

    def _list(self) -> tuple[SkillEntry, ...]:
        known = sorted(self._known().items(), key=lambda each: each[0])
        return tuple(self._entry(source, skill) for _, (source, skill) in known)

    def _entry(self, source: SkillSource, skill: FoundSkill) -> SkillEntry:
        """Return the entry of a skill, read again if its file was written."""
        place, stamp = str(source.folder / skill.name), source.stamp(skill)
        before = self._entries.get(place)
        if before is None or before[0] != stamp or not stamp:
            before = self._entries[place] = (stamp, _read_entry(source, skill))
        return replace(before[1], has_files=source.has_files(skill))

    def _load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        known = self._known() if names else {}
        return tuple(SkillText(name, self._body(name, known)) for name in names)

    def _body(self, name: str, known: _Known | None = None) -> str:
        source, skill = self._named(name, known)
        return source.body(skill)

    def _read_file(self, name: str, path: str) -> str:
        source, skill = self._named(name)
        return source.read_file(skill, path)

    def _named(self, name: str, known: _Known | None = None) -> tuple[SkillSource, FoundSkill]:
        known = self._known() if known is None else known
        if name not in known:
            check_named(self._list(), (name,))
        return known[name]

    def _known(self) -> _Known:
        known: _Known = {}
        for source in self._sources():
            for skill in source.find()[1]:
                known.setdefault(skill.name, (source, skill))
        return known

    def _sources(self) -> Iterator[SkillSource]:
        yield from (SkillSource(self._root, SkillOrigin.REPO, folder) for folder in self._settings.folders)
        yield from (SkillSource(folder, SkillOrigin.USER) for folder in self._user_dirs)
        bundled = self._bundled or bundled_skills()
        if bundled is not None:
            yield SkillSource(bundled, SkillOrigin.PACKAGE)


def _read_entry(source: SkillSource, skill: FoundSkill) -> SkillEntry:
    folder = str(source.folder / skill.name)
    try:
        parsed = source.parse(skill)
    except ConfigError as error:
        return SkillEntry(skill.name, "", source.origin, folder, problems=(str(error),), usable=False)
    head, problems = parsed.head, parsed.problems
    estimate = len(parsed.body) // CHARS_PER_TOKEN + 1
    declared = head.tokens if estimate <= head.tokens * MOST_FOLD and head.tokens <= estimate * MOST_FOLD else 0
    if head.tokens and not declared:
        wrong = f"metadata.tokens is {head.tokens:,}, about {estimate:,} are there"
        problems = (*problems, f"{source.shown(skill)}:1: {wrong}")
    return SkillEntry(
        name=skill.name,
        description=head.description,
        origin=source.origin,
        folder=folder,
        domains=head.domains,
        languages=head.languages,
        patterns=head.patterns,
        role=head.role,
        tokens=declared or estimate,
        problems=problems,
    )


def bundled_skills() -> Path | None:
    """Return the folder of the bundled skills, None if there is none. Blocks."""
    return packaged_folder("skills")
