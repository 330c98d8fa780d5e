"""Folders of skills, and the files in them: found, read within bounds, and never outside of their folder."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agent_workbench.adapters.skills.front_matter import ParsedSkill, is_skill_name, parse_skill
from agent_workbench.core.errors import SkillError, StorageError
from agent_workbench.core.skills.entries import FILE, INSTALLED, SkillOrigin, SkillPlace
from agent_workbench.core.text.sanitizer import sanitize_whole, without_chat_markers
from agent_workbench.system.repo_files import read_inside, resolve_inside

MAX_BYTES = 2 * 1024 * 1024
MOST_FOLDERS = 1_000
"""Number of folders in one place that are looked into, in the order of their names."""
MISSING = "missing"


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
