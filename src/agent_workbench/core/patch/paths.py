"""Paths in diffs: allowed, special, colliding on some file systems, similar, or matching a glob."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from fnmatch import fnmatchcase
from itertools import islice

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.values import FileOperation, FilePatch, Patch

# HFS+ ignores these characters when it compares names (next_hfs_char in git's utf8.c).
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# Bidirectional controls make a name display as another one.
_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SHORT_GIT = re.compile(r"git~[0-9]+")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4096
# The comparison takes a second for this many paths; most repositories have fewer.
_MOST_COMPARED = 20_000
_LIKE_ENOUGH = 0.7

SPECIAL_GLOBS = (
    # configuration of git
    "**/.gitattributes",
    "**/.gitmodules",
    "**/.lfsconfig",
    # configuration of the workbench
    "**/.agent.yml",
    "**/.agent.yaml",
    "**/agent-workbench/settings.yml",
    "**/agent-workbench/rules.yaml",
    "skills/**",
    "tasks/**",
    # instructions for agents
    "**/agents.md",
    "**/agents.override.md",
    "**/claude.md",
    "**/claude.local.md",
    # environment of programs
    "**/.env.*",
    "**/.envrc",
    # run by a forge or a hook manager
    ".github/**",
    ".gitlab/**",
    "**/.gitlab-ci.yml",
    "**/.gitlab-ci.yaml",
    ".gitea/**",
    ".forgejo/**",
    ".woodpecker/**",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".circleci/**",
    ".buildkite/**",
    ".ci/**",
    ".drone.yml",
    ".travis.yml",
    ".cirrus.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    "bitbucket-pipelines.yml",
    "**/jenkinsfile",
    "**/jenkinsfile.*",
    ".pre-commit-config.yaml",
    ".husky/**",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".build.yml",
    ".builds/**",
    ".semaphore/**",
    # run by an editor that opens the folder
    ".vscode/**",
    ".devcontainer/**",
    ".devcontainer.json",
)
USUAL_GLOBS = ("**/.env.example", "**/.env.sample", "**/.env.template")
"""Exceptions from `SPECIAL_GLOBS`: templates without values."""


def shown(text: str, limit: int = 200) -> str:
    """Return `text` for a message: unprintable characters escaped, cut after `limit` characters."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut)


def fold_path(path: str) -> str:
    """Return a form in which names are equal if some file system treats them as the same (case, Unicode form)."""
    if path.isascii():
        return path.lower()
    bare = _IGNORED_BY_HFS.sub("", path)
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", bare).casefold())


def takes_place_of(path: str, other: str) -> bool:
    """Return True if `path` is `other` on some file system, lies below it, or is in a package of its module's name."""
    own, file = fold_path(path), fold_path(other)
    return own == file or own.startswith((f"{file}/", f"{file.removesuffix('.py')}/"))


def check_path(path: str) -> None:
    """Raise `PatchError` with the cause unless a diff may name `path`."""
    cause = _fault(path)
    if cause:
        raise PatchError(
            f"{shown(path) or 'a path'}: {cause}",
            advice="Name files by their path from the root of the repository, such as src/app.py.",
        )


def _fault(path: str) -> str:
    if not path:
        return "the diff names an empty path"
    if _has_control_characters(path):
        return "the name holds a control character"
    if "\\" in path:
        return "the name holds a backslash; folders are separated by /"
    if path.startswith(("/", "~/")) or _DRIVE.match(path):
        return "the path is absolute"
    if len(path.encode(errors="replace")) > _MAX_PATH_BYTES:
        return f"the path is longer than {_MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_name_fault, path.split("/"))), "")


def _name_fault(name: str) -> str:
    if not name:
        return "the path has an empty component"
    if name in {".", ".."}:
        return f"the path has a component {name}"
    if is_git_folder(name):
        return "the path leads into git's own folder"
    if len(name.encode(errors="replace")) > _MAX_NAME_BYTES:
        return f"a name in the path is longer than {_MAX_NAME_BYTES} bytes"
    return ""


def _has_control_characters(text: str) -> bool:
    return bool(_BIDIRECTIONAL.search(text)) or any(unicodedata.category(char) in _CONTROL_CATEGORIES for char in text)


def is_git_folder(name: str) -> bool:
    """Return True if some file system treats `name` (one component) as `.git`.

    HFS+ ignores some characters. NTFS ignores trailing dots and spaces and the text after a colon, and has the short
    name `GIT~1`.
    """
    bare = _IGNORED_BY_HFS.sub("", name).casefold().partition(":")[0].rstrip(" .")
    return bare == ".git" or bool(_SHORT_GIT.fullmatch(bare))


def find_clash(paths: Iterable[str], known: Iterable[str] = ()) -> tuple[str, str] | None:
    """Return the first of `paths` that collides with an earlier path or with one in `known`, and the other spelling.

    Two different names collide if they are equal after `fold_path`. Parent folders count too: `src/a` and `SRC/b` are
    in one folder on some file systems and in two on others. Return None if nothing collides.
    """
    spellings: dict[str, set[str]] = {}
    for prefix in {prefix for path in known for prefix in _prefixes(path)}:
        spellings.setdefault(fold_path(prefix), set()).add(prefix)
    for path in paths:
        for prefix in _prefixes(path):
            others = spellings.setdefault(fold_path(prefix), {prefix})
            if prefix not in others:
                return path, min(others)
    return None


def find_folder_clash(paths: Iterable[str], known: Iterable[str] = ()) -> tuple[str, str] | None:
    """Return a path that would be both a file and a folder, and a path below it; one of the two is in `paths`."""
    new = set(paths)
    everything = new | set(known)
    for path in sorted(everything):
        for folder in _prefixes(path):
            if folder != path and folder in everything and (path in new or folder in new):
                return folder, path
    return None


def similar_paths(path: str, paths: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """Return the `paths` for which `path` may be a mistake, the likeliest first. Only file names are compared."""
    by_name: dict[str, list[str]] = {}
    for each in islice(paths, _MOST_COMPARED):
        by_name.setdefault(_name(each), []).append(each)
    by_stem: dict[str, list[str]] = {}
    for name in by_name:
        by_stem.setdefault(_stem(name), []).append(name)
    name = _name(path)
    close = get_close_matches(_stem(name), by_stem, n=most, cutoff=_LIKE_ENOUGH)
    names = dict.fromkeys((*((name,) if name in by_name else ()), *(each for stem in close for each in by_stem[stem])))
    found = (each for name in names for each in sorted(by_name[name], key=lambda each: _unlike(path, each)))
    return tuple(islice(found, most))


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].casefold()


def _stem(name: str) -> str:
    return name.partition(".")[0] or name


def _unlike(one: str, other: str) -> float:
    return 1 - SequenceMatcher(None, one, other).ratio()


def _prefixes(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def matches_glob(path: str, pattern: str) -> bool:
    """Return True if the whole of `path` matches `pattern`; both are relative, with `/` between names.

    `**` alone matches everything. `src/**` and `src/` match everything in `src`, but not `src` itself. `**/x` matches
    `x` in any folder and at the root, `*.py` only at the root. Names that begin with a dot are not special, and case
    matters.
    """
    names = path.split("/")
    parts = _parts(pattern)
    # reached[i]: the parts so far match the first i names. Linear in names times parts, whatever the pattern.
    reached = [True] + [False] * len(names)
    for position, part in enumerate(parts):
        if part == "**":
            least = 1 if position and position == len(parts) - 1 else 0
            reached = _any_number(reached, least)
        else:
            reached = [False] + [
                before and fnmatchcase(name, part) for before, name in zip(reached[:-1], names, strict=True)
            ]
    return reached[-1]


def literal_glob(path: str) -> str:
    """Return the glob that matches this path and no other."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _parts(pattern: str) -> list[str]:
    if pattern.endswith("/"):
        pattern += "**"
    return pattern.removeprefix("./").lstrip("/").split("/")


def _any_number(reached: list[bool], least: int) -> list[bool]:
    first = reached.index(True) + least if True in reached else len(reached)
    return [index >= first for index in range(len(reached))]


def special_paths(patch: Patch, also: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths that need a second confirmation, in the order of the patch and without duplicates.

    These are settings of git and of the workbench, CI files, skills, tasks, instructions for agents and environment
    files. Every spelling that some file system treats as the same name counts. Deleted and renamed files are special
    too; a rename has two paths. So are those of `also`.
    """
    paths = ((file, path) for file in patch.files for path in (file.old_path, file.path))
    found = (path for file, path in paths if path in also or _is_special(file, path))
    return tuple(dict.fromkeys(found))


def _is_special(file: FilePatch, path: str) -> bool:
    if file.operation in {FileOperation.DELETE, FileOperation.RENAME}:
        return True
    folded = fold_path(path)
    return _matches(folded, SPECIAL_GLOBS) and not _matches(folded, USUAL_GLOBS)


def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return any(matches_glob(path, each) for each in globs)
