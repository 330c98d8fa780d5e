"""Grammar of the paths of new files, within the folders that a task may write."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct, field

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.grammar.grammar_rules import GrammarRules, Trie, TrieRules, with_text
from agent_workbench.core.patch.grammar.name_spelling import LETTERS, Pattern, spelled_anew
from agent_workbench.core.patch.paths import check_path, fold_path
from agent_workbench.core.patch.values import PatchBounds
from agent_workbench.core.text.gbnf import literal

MAX_FOLDERS = 60
MAX_NAME_CHARS = 2_000
"""Limits of the folders for new files: number, and letters of all their existing names. The nearest come first."""
_MAX_GROUPS = 4
_WILD = frozenset("*?[")


class _Folder(Struct):
    """A folder: its existing names (folded by `fold_path`), its subfolders, and the patterns of new names in it."""

    taken: set[str] = field(default_factory=set)
    folders: dict[str, "_Folder"] = field(default_factory=dict)
    patterns: list[Pattern] = field(default_factory=list)
    below: list[Pattern] = field(default_factory=list)
    paths: list[tuple[str, Pattern]] = field(default_factory=list)

    @property
    def names_chars(self) -> int:
        return sum(map(len, self.taken))

    @property
    def open(self) -> bool:
        return bool(self.patterns or self.below or self.paths)


def new_name_rules(
    rules: GrammarRules, existing: Iterable[str], bounds: PatchBounds, near: Sequence[str]
) -> tuple[str, ...]:
    """Write rules for the paths of new files; return their names, none if no new file is allowed.

    Two paths of different rules never collide. `near` are the most important folders.
    """
    root, places = _tree(existing)
    order = sorted(places, key=lambda path: (path not in near, path.count("/"), path))
    chars = 0
    chosen: list[str] = []
    for path in order:
        _open(path, places[path], bounds)
        if places[path].open:
            chars += places[path].names_chars
            if chosen and (chars > MAX_NAME_CHARS or len(chosen) >= MAX_FOLDERS):
                places[path].patterns, places[path].below, places[path].paths = [], [], []
            else:
                chosen.append(path)
    groups = [body] if (body := " | ".join(_made_here(rules, root))) else []
    tops = dict.fromkeys(path.split("/")[0] for path in chosen if path)
    named = [f"{literal(top + '/')} {_folder_rule(rules, root.folders[top])}" for top in tops]
    split = max(0, _MAX_GROUPS - len(groups) - 1)
    groups += named[:split]
    if named[split:]:
        groups.append(" | ".join(named[split:]))
    return tuple(rules.add(group) for group in groups)


def _tree(existing: Iterable[str]) -> tuple[_Folder, dict[str, _Folder]]:
    """Return the root and all folders by path, without those that no diff may name."""
    root = _Folder()
    places = {"": root}
    for path in existing:
        folder, so_far = root, ""
        *folders, name = path.split("/")
        for each in folders:
            folder.taken.add(fold_path(each))
            so_far = f"{so_far}/{each}" if so_far else each
            folder = folder.folders.setdefault(each, _Folder())
            places[so_far] = folder
        folder.taken.add(fold_path(name))
    return root, {path: folder for path, folder in places.items() if _can_be_named(path)}


def _can_be_named(folder: str) -> bool:
    try:
        check_path(f"{folder}/x".removeprefix("/"))
    except PatchError:
        return False
    return True


def _open(path: str, folder: _Folder, bounds: PatchBounds) -> None:
    """Note the new names that `bounds` allow in a folder."""
    names = tuple(path.split("/") if path else ())
    folder.taken.add(".git")
    above = tuple(fold_path(path).split("/") if path else ())
    for glob in bounds.protected_globs:
        for rest in _rests(fold_path(glob), above):
            if rest == ("**",):
                return
            folder.taken.add(rest[0])
    for glob in bounds.write_globs:
        for rest in _rests(glob, names):
            _allow(folder, rest)


@lru_cache(maxsize=4096)
def _rests(glob: str, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the rests of a glob whose beginning matches these folders."""
    if glob.endswith("/"):
        glob += "**"
    parts = glob.removeprefix("./").lstrip("/").split("/")
    reached = _spread(parts, {0})
    for name in names:
        after = {at for at in reached if parts[at] == "**"}
        after |= {at + 1 for at in reached if parts[at] != "**" and fnmatchcase(name, parts[at])}
        reached = _spread(parts, {at for at in after if at < len(parts)})
    return tuple(tuple(parts[at:]) for at in sorted(reached))


def _spread(parts: Sequence[str], reached: set[int]) -> set[int]:
    """Return the positions in a glob that are reached if `**` matches no folder, too."""
    spread = set(reached)
    for at in range(len(parts) - 1):
        if at in spread and parts[at] == "**":
            spread.add(at + 1)
    return spread


def _allow(folder: _Folder, rest: tuple[str, ...]) -> None:
    """Allow the names that match the rest of a glob in a folder, if a pattern can express them."""
    *first, last = rest
    pattern = _pattern(last)
    if pattern is None:
        return
    if not first:
        folder.patterns.append(pattern)
        if last == "**":
            folder.below.append(pattern)
    elif first == ["**"]:
        folder.below.append(pattern)
    elif fold_path(first[0]) not in folder.taken and all(map(_is_plain, first)):
        folder.paths.append(("/".join(first), pattern))


def _is_plain(part: str) -> bool:
    return not _WILD & set(part) and _can_be_named(part)


def _pattern(part: str) -> Pattern | None:
    """Return the beginning and the end of the names that match `part`, None if these do not define it."""
    if part == "**":
        return "", ""
    if "?" in part or "[" in part or part.count("*") > 1 or not set(part) - {"*"} <= {*LETTERS, "."}:
        return None
    before, star, after = part.partition("*")
    return (before, after) if star else (part, "\n")


def _folder_rule(rules: GrammarRules, folder: _Folder) -> str:
    """Write the rule for the rest of a path in a folder; return its name."""
    ways = _made_here(rules, folder)
    trie: Trie[_Folder] | None = None
    for name, each in folder.folders.items():
        if _has_open(each):
            trie = with_text(trie, f"{name}/", each)
    if trie is not None:
        ways.append(TrieRules[_Folder](rules, lambda each: _folder_rule(rules, each)).body(trie))
    return rules.add(" | ".join(ways))


def _has_open(folder: _Folder) -> bool:
    return folder.open or any(map(_has_open, folder.folders.values()))


def _made_here(rules: GrammarRules, folder: _Folder) -> list[str]:
    """Return the alternatives for a new file in a folder, and in a new subfolder."""
    ways = []
    patterns = _widest(folder.patterns)
    below = _widest(folder.below)
    if patterns == below == [("", "")]:
        return [f'{spelled_anew(rules, folder.taken, ("", ""))} ( "/" g )?']
    for pattern in patterns:
        ways += [way] if (way := spelled_anew(rules, folder.taken, pattern)) else []
    if below:
        names = " | ".join(_any_name(pattern) for pattern in below)
        ways.append(f'{spelled_anew(rules, folder.taken, ("", ""))} "/" ( {names} )')
    ways += [f"{literal(path + '/')} {_any_name(pattern)}" for path, pattern in folder.paths]
    return ways


def _widest(patterns: Sequence[Pattern]) -> list[Pattern]:
    return [("", "")] if ("", "") in patterns else list(dict.fromkeys(patterns))


def _any_name(pattern: Pattern) -> str:
    before, after = pattern
    if after == "\n":
        return literal(before)
    return f"{literal(before)} g {literal(after)}" if before or after else "g"
