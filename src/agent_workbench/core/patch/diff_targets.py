"""Targets of a diff: the header of each section, the file that it changes, and the operation on it."""

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_sections import FileSection
from agent_workbench.core.patch.hunk_bodies import WrittenHunk
from agent_workbench.core.patch.paths import check_path, shown
from agent_workbench.core.patch.values import FileOperation

NOTHING = "/dev/null"
"""The name of the missing side of a file that is created or deleted."""
_MODES = {"100644": 0o100644, "100755": 0o100755}
_KINDS = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder"}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_INDEX = re.compile(r"[0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: (\d+))?", re.ASCII)

_TIME = re.compile(
    r"[ \t]+(?:\d{4}-\d\d-\d\d[ T].*|\((?:revision|working copy|nonexistent).*|[A-Z][a-z]{2} [A-Z].*\d{4})"
)
_PREFIX = re.compile(r"[abciow12]/")
_BACKUP = re.compile(r"\.(?:orig|old|bak)$|~$")


class FileHeader(Struct, frozen=True):
    """The operation on one file; `mode` is None if the headers do not give it."""

    operation: FileOperation
    old_path: str
    path: str
    mode: int | None


def read_header(section: FileSection) -> FileHeader:
    """Return the operation that the headers of a section describe.

    Raises `PatchError` for copies, for modes other than 100644 and 100755, for paths that no diff may name, and for
    headers that contradict each other.
    """
    if "copy from" in section.extended or "copy to" in section.extended:
        raise PatchError(
            f"{shown(section.extended.get('copy to', ''))}: a diff may not copy {_copied(section)}",
            advice="Create the file with its whole content instead.",
        )
    operation = _operation(section)
    old_path, path = _names(section, operation)
    for each in dict.fromkeys((old_path, path)):
        check_path(each)
    _check_same_name(section, operation, old_path, path)
    return FileHeader(operation, old_path, path, _mode(section, path))


def _copied(section: FileSection) -> str:
    return shown(section.extended.get("copy from", "a file"))


def _operation(section: FileSection) -> FileOperation:
    given = {
        FileOperation.CREATE: "new file mode" in section.extended or section.old == NOTHING,
        FileOperation.DELETE: "deleted file mode" in section.extended or section.new == NOTHING,
        FileOperation.RENAME: "rename from" in section.extended or "rename to" in section.extended,
    }
    operations = [operation for operation, is_given in given.items() if is_given]
    if len(operations) > 1:
        raise PatchError(f"{section.name}: the headers contradict each other ({' and '.join(operations)})")
    operation = operations[0] if operations else FileOperation.MODIFY
    nothing_expected = (operation is FileOperation.CREATE, operation is FileOperation.DELETE)
    if section.old is not None and (section.old == NOTHING, section.new == NOTHING) != nothing_expected:
        raise PatchError(
            f"{section.name}: the headers contradict each other about {NOTHING}",
            advice="A new file has --- /dev/null, a deleted one +++ /dev/null.",
        )
    return operation


def _names(section: FileSection, operation: FileOperation) -> tuple[str, str]:
    """Return the old and the new path, which are equal unless the file is renamed."""
    if operation is FileOperation.RENAME:
        given = (section.extended.get("rename from"), section.extended.get("rename to"))
        if given[0] is None or given[1] is None:
            raise PatchError(f"{section.name}: rename from and rename to must both be given")
        return _unquoted(given[0]), _unquoted(given[1])
    if section.old is None or section.new is None:
        path = _name_in_git_header(section)
        return path, path
    old, new = file_name(section.old), file_name(section.new)
    if operation is FileOperation.MODIFY:
        if old.startswith("a/") and new.startswith("b/"):
            return old[2:], new[2:]
        return old, new
    path, prefix = (new, "b/") if operation is FileOperation.CREATE else (old, "a/")
    if path.startswith(prefix) and not _git_header_says(section, path, path):
        path = path.removeprefix(prefix)
    return path, path


def _check_same_name(section: FileSection, operation: FileOperation, old_path: str, path: str) -> None:
    if operation is FileOperation.RENAME and old_path == path:
        raise PatchError(f"{shown(path)}: renamed to itself")
    if operation is not FileOperation.RENAME and old_path != path:
        raise PatchError(
            f"--- and +++ name two files: {shown(old_path)} and {shown(path)}",
            advice="Write a/<path> and b/<path> with the same path, or say rename from and rename to.",
        )
    prefixed, bare = (f"a/{old_path}", f"b/{path}"), (old_path, path)
    if section.git is not None and not any(_git_header_says(section, *names) for names in (prefixed, bare)):
        raise PatchError(f"{shown(path)}: `diff --git {shown(section.git)}` names another file")
    if operation is FileOperation.RENAME and section.old is not None and section.new is not None:
        names = (file_name(section.old), file_name(section.new))
        if names not in {prefixed, bare}:
            raise PatchError(f"{shown(path)}: --- and +++ name other files than rename from and rename to")


def _name_in_git_header(section: FileSection) -> str:
    """Return the path of a section that only `diff --git` names."""
    rest = section.git or ""
    # Names may contain spaces, and nothing separates them. Two equal names meet in the middle.
    middle = len(rest) // 2
    old, new = _quoted_pair(rest) or (rest[:middle], rest[middle + 1 :])
    if rest[middle : middle + 1] == " " or '"' in rest:
        if old.startswith("a/") and new.startswith("b/") and old[2:] == new[2:]:
            return old[2:]
        if old == new:
            return old
    raise PatchError(
        f"{section.name}: `diff --git` does not name one file",
        advice="Write diff --git a/<path> b/<path>.",
    )


def _git_header_says(section: FileSection, old: str, new: str) -> bool:
    return section.git == f"{old} {new}" or _quoted_pair(section.git or "") == (old, new)


def _quoted_pair(rest: str) -> tuple[str, str] | None:
    """Return the two names of `diff --git` if one of them is quoted."""
    if match := _QUOTED.match(rest):
        return _unquoted(match[0]), _unquoted(rest[match.end() + 1 :])
    old, space, new = rest.partition(' "')
    return (old, _unquoted(f'"{new}')) if space else None


def file_name(header: str) -> str:
    """Return the name after `---` or `+++`, without the time that may follow a tab."""
    return _unquoted(header.partition("\t")[0])


def _unquoted(name: str) -> str:
    """Return a name without the quotes and escapes that git gave it."""
    match = _QUOTED.fullmatch(name)
    if match is None:
        return name
    raw = _ESCAPE.sub(_unescaped, match[1].encode())
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise PatchError(f"{shown(name)}: the name is not UTF-8") from None


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPED.get(code, code)


def _mode(section: FileSection, path: str) -> int | None:
    for key in ("old mode", "new mode", "deleted file mode", "new file mode"):
        if key in section.extended:
            _check_mode(section.extended[key], path)
    index = section.extended.get("index")
    if index is not None:
        match = _INDEX.fullmatch(index)
        if match is None:
            raise PatchError(f"{shown(path)}: cannot read the header index {shown(index)}")
        if match[1]:
            _check_mode(match[1], path)
    chosen = next((key for key in ("new mode", "new file mode", "deleted file mode") if key in section.extended), None)
    return _MODES[section.extended[chosen]] if chosen else None


def _check_mode(mode: str, path: str) -> None:
    if mode not in _MODES:
        kind = f" ({_KINDS[mode]})" if mode in _KINDS else ""
        raise PatchError(
            f"{shown(path)}: mode {shown(mode)}{kind} is not taken",
            advice="Files are regular: mode 100644, or 100755 if executable.",
        )


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
