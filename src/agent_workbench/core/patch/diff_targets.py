"""Targets of a diff: the file that each section changes, and the operation on it."""

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_headers import NOTHING, FileHeader, file_name, read_header
from agent_workbench.core.patch.diff_sections import FileSection
from agent_workbench.core.patch.hunk_bodies import WrittenHunk
from agent_workbench.core.patch.paths import check_path, shown
from agent_workbench.core.patch.values import FileOperation

_TIME = re.compile(
    r"[ \t]+(?:\d{4}-\d\d-\d\d[ T].*|\((?:revision|working copy|nonexistent).*|[A-Z][a-z]{2} [A-Z].*\d{4})"
)
_PREFIX = re.compile(r"[abciow12]/")
_BACKUP = re.compile(r"\.(?:orig|old|bak)$|~$")


class Target(Struct, frozen=True):
    """One file: the operation on it, its hunks as written, and one sentence for each repair of its headers.

    `guessed`: its path was inferred from the files of the repository, so its lines must match exactly.
    """

    operation: FileOperation
    old_path: str
    path: str
    mode: int | None
    hunks: tuple[WrittenHunk, ...]
    repairs: tuple[str, ...] = ()
    guessed: bool = False


def target_of(header: FileHeader, hunks: tuple[WrittenHunk, ...]) -> Target:
    """Return the target of a section whose headers are complete."""
    return Target(header.operation, header.old_path, header.path, header.mode, hunks)


def find_targets(sections: Sequence[FileSection], existing: Collection[str]) -> tuple[Target, ...]:
    """Return the targets of all sections; the sections of one file are joined.

    `existing` are all paths of the repository. Raises `PatchError` if a section names no file for certain, or one that
    no diff may change.
    """
    known = frozenset(existing)
    found: dict[str, Target] = {}
    for section in sections:
        target = _target(section, known)
        before = found.get(target.path)
        found[target.path] = target if before is None else _joined(before, target)
    return tuple(found.values())


def _joined(one: Target, other: Target) -> Target:
    if {one.operation, other.operation} != {FileOperation.MODIFY} or not one.hunks or not other.hunks:
        raise PatchError(
            f"{shown(one.path)}: the diff names it twice", advice="Put all hunks of a file under one header."
        )
    repair = f"{shown(one.path)}: its hunks stood under two headers"
    repairs = dict.fromkeys((*one.repairs, *other.repairs, repair))
    mode = one.mode if other.mode is None else other.mode
    return replace(one, hunks=one.hunks + other.hunks, repairs=tuple(repairs), mode=mode)


def _target(written: FileSection, known: frozenset[str]) -> Target:
    section, repairs = _with_names(written, known)
    header = read_header(section)
    operation, old_path, path, mode = header.operation, header.old_path, header.path, header.mode
    if operation is FileOperation.MODIFY and section.hunks and path not in known:
        if _only_adds(section):
            _check_new(section, path, known)
            operation = FileOperation.CREATE
            repairs.append(f"{shown(path)}: there is no such file, so it is made new")
        elif other := _by_suffix(path, known):
            repairs.append(f"{shown(path)} was taken for {shown(other)}, the only file whose path ends like it")
            old_path = path = other
    guessed = old_path != header.old_path
    return Target(operation, old_path, path, mode, section.hunks, tuple(repairs), guessed)


def _with_names(section: FileSection, known: frozenset[str]) -> tuple[FileSection, list[str]]:
    """Return the section with names for both sides, which `read_header` needs, and the repairs."""
    repairs: list[str] = []
    old, new = (None if each is None else _bare(each) for each in (section.old, section.new))
    if section.hunks and (old is None or new is None):
        if old is None and new is None:
            given = read_header(replace(section, old=None, new=None))
            old, new = f"a/{given.old_path}", f"b/{given.path}"
            section = replace(section, git=None) if section.git == f"{given.path} {given.path}" else section
        else:
            old, new = _both(old, new)
        repairs.append(f"{section.name}: the lines --- and +++ were completed")
    if old is None or new is None:
        return section, repairs
    old, new = _with_nothing(section, old, new, known, repairs)
    section = replace(section, old=old, new=new)
    plain = not {"rename from", "rename to", "copy from", "copy to"}.intersection(section.extended)
    if plain and NOTHING not in {old, new}:
        section = _same_name(section, file_name(old), file_name(new), known, repairs)
    return section, repairs


def _bare(name: str) -> str:
    """Return the name without the time that may follow it."""
    return _TIME.split(name.rstrip("\r"), maxsplit=1)[0].rstrip(" ") if not name.startswith('"') else name


def _both(old: str | None, new: str | None) -> tuple[str, str]:
    given = old if old is not None else new or ""
    bare = given[2:] if given.startswith(("a/", "b/")) else given
    return (f"a/{bare}", f"b/{bare}") if given != bare else (bare, bare)


def _with_nothing(
    section: FileSection, old: str, new: str, known: frozenset[str], repairs: list[str]
) -> tuple[str, str]:
    """Return the names with /dev/null in place of a name that means it, by its prefix or by git's own headers."""
    if old in {"a/dev/null", "dev/null"} and "dev/null" not in known:
        old = NOTHING
    if new in {"b/dev/null", "dev/null"} and "dev/null" not in known:
        new = NOTHING
    if "new file mode" in section.extended and NOTHING not in {old, new} and _only_adds(section):
        repairs.append(f"{shown(new)}: it is new, so --- should be {NOTHING}")
        return NOTHING, new
    return old, new


def _same_name(section: FileSection, old: str, new: str, known: frozenset[str], repairs: list[str]) -> FileSection:
    """Return the section with the one file that both names mean."""
    if (old.startswith("a/") and new.startswith("b/") and old[2:] == new[2:]) or old == new:
        if old == new and old not in known and _PREFIX.match(old) and section.git is None and old[2:] in known:
            return replace(section, old=f"a/{old[2:]}", new=f"b/{old[2:]}")
        return section
    for name in (old, new):
        check_path(name)
    meant = set(_forms(old)) & set(_forms(new))
    fitting = sorted(meant & known)
    if len(fitting) != 1:
        return section
    repairs.append(f"{shown(old)} and {shown(new)} were taken for {shown(fitting[0])}")
    return replace(section, old=f"a/{fitting[0]}", new=f"b/{fitting[0]}")


def _forms(name: str) -> Iterator[str]:
    for each in (name, _BACKUP.sub("", name)):
        yield each
        head, slash, rest = each.partition("/")
        if slash and head:
            yield rest


def _only_adds(section: FileSection) -> bool:
    return len(section.hunks) == 1 and all(
        line.sign == "+" or (line.is_context and not line.text.strip()) for line in section.hunks[0].lines
    )


def _check_new(section: FileSection, path: str, known: frozenset[str]) -> None:
    numbers = section.hunks[0].numbers
    says_new = numbers is not None and numbers.old_count == 0 and numbers.old_start == 0
    if not says_new and (other := next(iter(_alike(path, known)), "")):
        raise PatchError(
            f"{shown(path)} does not exist, but {shown(other)} does",
            advice="Name a file of the repository; --- /dev/null makes a new one.",
        )


def _by_suffix(path: str, known: frozenset[str]) -> str:
    alike = sorted(_alike(path, known))
    return alike[0] if len(alike) == 1 else ""


def _alike(path: str, known: frozenset[str]) -> Iterator[str]:
    """Yield the files whose path ends with this one, or with whose path this one ends."""
    yield from (each for each in known if each.endswith(f"/{path}") or path.endswith(f"/{each}"))
