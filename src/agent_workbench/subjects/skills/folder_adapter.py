"""Port `Skills`: folders of the repo, the user and the package, read within bounds, and ranked for words."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, SkillError, StorageError
from agent_workbench.core.events import SkillText
from agent_workbench.core.settings import SkillSettings
from agent_workbench.core.skills import (
    ANY_LANGUAGE,
    FILE,
    INSTALLED,
    WILD,
    SkillEntry,
    SkillHit,
    SkillOrigin,
    SkillPlace,
    check_named,
)
from agent_workbench.core.text.sanitizer import sanitize_whole, without_chat_markers
from agent_workbench.ranking.small_collections import SmallCollection
from agent_workbench.ranking.tokens import count_stems
from agent_workbench.subjects.skills.front_matter_adapter import ParsedSkill, is_skill_name, parse_skill
from agent_workbench.system.repo_files import read_inside, resolve_inside
from agent_workbench.system.user_dirs import packaged_folder

MAX_BYTES = 2 * 1024 * 1024
MOST_FOLDERS = 1_000
"""Number of folders in one place that are looked into, in the order of their names."""
MISSING = "missing"

NAME_WEIGHT, PATTERN_WEIGHT = 3, 2
PERCENT = " percent "
"""The sign as a word, since a sign is none."""
LEAST_DESCRIBED = 2
"""Number of words that a skill without metadata must share with the query."""


class FoundSkill(Struct, frozen=True):
    """A folder with a file of the name `file`, or the problem that keeps it from use."""

    name: str
    file: str = FILE
    problem: str = ""


class SkillSource(Struct, frozen=True):
    """Folder of skills below `root`. Links in a repo's folder must stay inside the repo; the user's lead anywhere."""

    root: Path
    origin: SkillOrigin
    inside: str = "."

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.root / self.inside

    def find(self) -> tuple[SkillPlace, tuple[FoundSkill, ...]]:
        """Return the place and the skills in it, sorted by name. Blocks; never raises for what is in the folder."""
        shown = self.inside if self.origin is SkillOrigin.REPO else str(self.folder)
        try:
            names = sorted(each.name for each in self.folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return SkillPlace(shown, self.origin, problem=MISSING), ()
        except OSError as error:
            return SkillPlace(shown, self.origin, problem=f"cannot be listed: {error.strerror}"), ()
        more = f"only the first {MOST_FOLDERS:,} of {len(names):,} entries are read"
        found = tuple(skill for name in names[:MOST_FOLDERS] for skill in self._found(name))
        return SkillPlace(shown, self.origin, len(found), more if len(names) > MOST_FOLDERS else ""), found

    def parse(self, skill: FoundSkill) -> ParsedSkill:
        """Return a skill's front matter and raw body; raise `SkillError` with file and line."""
        shown = self.shown(skill)
        if skill.problem:
            raise SkillError(f"{shown}:1: {skill.problem}", advice="rename the folder, and `name:` in its SKILL.md")
        text = self._text(skill, skill.file, shown)
        parsed = parse_skill(text, shown, skill.name)
        wrong = f"{shown}:1: the file is called {skill.file}; its name is {FILE}"
        problems = (wrong, *parsed.problems) if skill.file != FILE else parsed.problems
        return ParsedSkill(parsed.head, parsed.body, problems)

    def body(self, skill: FoundSkill) -> str:
        """Return a skill's body as inert text; raise as `parse` does."""
        return _inert(self.parse(skill).body)

    def read_file(self, skill: FoundSkill, path: str) -> str:
        """Return the text of a file in a skill's folder; raise `SkillError` for one outside of it, or no text."""
        _check_path(path)
        folder = self.folder / skill.name
        try:
            # The folder itself may be a link; what is read must then be inside of what it leads to.
            resolve_inside(folder.resolve(), path)
        except StorageError as error:
            raise SkillError(f"{path!r} leads out of the skill {skill.name}", advice=error.advice) from error
        return _inert(self._text(skill, path, f"{self.shown_folder(skill)}/{path}"))

    def stamp(self, skill: FoundSkill) -> tuple[int, ...]:
        """Return what changes when the skill's file is written again, empty if it cannot be looked at."""
        try:
            facts = (self.folder / skill.name / skill.file).stat()
        except OSError:
            return ()
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns

    def has_files(self, skill: FoundSkill) -> bool:
        """Return True if a skill's folder holds more than its own file and what tools put there."""
        try:
            names = {each.name for each in (self.folder / skill.name).iterdir()}
        except OSError:
            return False
        return bool(names - INSTALLED - {skill.file})

    def shown(self, skill: FoundSkill) -> str:
        """Return the path of a skill's file for messages."""
        return f"{self.shown_folder(skill)}/{skill.file}"

    def shown_folder(self, skill: FoundSkill) -> str:
        """Return the path of a skill's folder for messages: from the repo's root, or absolute."""
        return str(PurePosixPath(self.inside if self.origin is SkillOrigin.REPO else self.folder, skill.name))

    def _text(self, skill: FoundSkill, path: str, shown: str) -> str:
        folder = self.folder / skill.name
        of_repo = self.origin is SkillOrigin.REPO
        root, file = (self.root, f"{self.inside}/{skill.name}/{path}") if of_repo else (folder.resolve(), path)
        try:
            data = read_inside(root, file, MAX_BYTES)
        except StorageError as error:
            raise SkillError(f"{shown}:1: {error}", advice=error.advice) from error
        if data is None:
            raise SkillError(f"{shown}:1: there is no such file", advice="check its name")
        if b"\0" in data:
            raise SkillError(f"{shown}:1: is binary ({len(data):,} bytes)", advice="name a text file")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise SkillError(f"{shown}:{line}: not UTF-8 (byte {error.start})", advice="save it as UTF-8") from error

    def _found(self, name: str) -> Iterator[FoundSkill]:
        """Yield the skill in a folder of this name, if there is one. A name that is no skill's is kept as a problem."""
        try:
            file = _skill_file(self.folder / name)
        except OSError as error:
            yield FoundSkill(name, problem=f"the folder cannot be read: {error.strerror}")
            return
        if file and is_skill_name(name):
            yield FoundSkill(name, file)
        elif file:
            yield FoundSkill(name, file, "the folder's name is no skill's: small letters and digits, joined by '-'")


def _skill_file(folder: Path) -> str:
    """Return the name of the skill's file: `SKILL.md`, else one that differs in case only; empty without one."""
    if not folder.is_dir():
        return ""
    if os.path.lexists(folder / FILE):
        return FILE
    return next((each.name for each in sorted(folder.iterdir()) if each.name.lower() == FILE.lower()), "")


def _check_path(path: str) -> None:
    """Raise `ConfigError` for a path that is not plainly one of a file below a folder."""
    parts = path.split("/")
    if not path or "\0" in path or not path.isprintable():
        raise SkillError(f"{path!r} is no path of a file", advice="name a file of the skill, such as reference.md")
    if "\\" in path or path.startswith(("/", "~")) or ".." in parts:
        raise SkillError(
            f"{path!r} leads out of the skill", advice="name the file from the skill's folder on, with '/' and no '..'"
        )


def _inert(text: str) -> str:
    """Return a text without control characters and markers of chat templates."""
    return without_chat_markers(sanitize_whole(text))


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


def rank_skills(entries: Sequence[SkillEntry], words: str) -> tuple[SkillHit, ...]:
    """Return the usable skills that fit the words, best first, then by name. Blocks.

    A description is prose and shares words with any task: it orders skills, but a skill is found by its name, or by one
    of its patterns, domains or languages, all words of which must occur. One that declares none of these is found by
    two words of its name and description too.
    """
    usable = [entry for entry in entries if entry.usable]
    words = words.replace("%", PERCENT)
    collection = SmallCollection([_text(entry) for entry in usable])
    wanted = count_stems(words).keys()
    hits: list[SkillHit] = []
    for ranked in collection.best(words, len(usable)):
        entry = usable[ranked.number]
        said = _said(entry, wanted)
        described = not (entry.patterns or entry.domains) and len(ranked.stems) >= LEAST_DESCRIBED
        if said or described:
            hits.append(SkillHit(entry.name, ranked.score, said or _as_written(words, ranked.stems)))
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.name)))


def _said(entry: SkillEntry, wanted: Set[str]) -> tuple[str, ...]:
    """Return the skill's own phrases of which all words are wanted; of several with the same words the first."""
    found: dict[frozenset[str], str] = {}
    for phrase in _phrases(entry):
        stems = frozenset(count_stems(phrase))
        if stems and stems <= wanted:
            found.setdefault(stems, phrase)
    return tuple(found.values())


def _text(entry: SkillEntry) -> str:
    name, patterns = " ".join([entry.name] * NAME_WEIGHT), " ".join(entry.patterns * PATTERN_WEIGHT)
    return " ".join((name, patterns, *entry.domains, *_languages(entry), entry.description))


def _phrases(entry: SkillEntry) -> tuple[str, ...]:
    plain = (pattern for pattern in entry.patterns if not WILD & set(pattern))
    return tuple(dict.fromkeys((entry.name, *plain, *entry.domains, *_languages(entry))))


def _languages(entry: SkillEntry) -> Iterable[str]:
    return (each for each in entry.languages if each.lower() != ANY_LANGUAGE)


def _as_written(words: str, stems: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a text that have these stems, as they are written there."""
    said = {stem: word.strip(".,:;!?()[]\"'`").lower() for word in words.split() for stem in count_stems(word)}
    return tuple(dict.fromkeys(said[stem] for stem in stems if stem in said))
