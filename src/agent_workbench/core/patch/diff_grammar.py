"""Grammar of a whole diff: the files that it may name, each at most once, new ones, and the operations on them.

A rename has a section of its own form: `rename from` and `rename to`, with or without hunks. Git's form contains the
new name twice, and a grammar cannot make two free names equal. If another name after `+++` were enough, a typing error
would be a rename.
"""

import string
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from math import comb

from msgspec import Struct, field

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch import grammar_rules as spelling
from agent_workbench.core.patch import hunk_rules as hunks
from agent_workbench.core.patch.grammar_rules import (
    LETTERS,
    GrammarRules,
    Pattern,
    Trie,
    TrieRules,
    literal,
    spelled_anew,
    with_text,
)
from agent_workbench.core.patch.hunk_rules import EditableFile, HunkRules
from agent_workbench.core.patch.paths import check_path, fold_path
from agent_workbench.core.patch.values import NO_NEWLINE, PatchBounds

_MAX_SHORT = 23
"""Files whose rules have a name that begins with a capital alone; `X`, `Y` and `Z` are for others."""
_MAX_STATES = 64
"""Files may be in any order up to this number of states; further files are in the given order."""

MAX_FOLDERS = 60
MAX_NAME_CHARS = 2_000
"""Limits of the folders for new files: number, and letters of all their existing names. The nearest come first."""
_MAX_GROUPS = 4
_WILD = frozenset("*?[")


class EditScope(Struct, frozen=True):
    """The files that a diff may change, the most important first, and the bounds of new files.

    `existing` are all paths of the repository. `max_files` is the largest number of files in the diff (None: no limit).
    """

    files: tuple[EditableFile, ...]
    existing: tuple[str, ...]
    bounds: PatchBounds
    max_files: int | None = None


class _Item(Struct, frozen=True):
    """One section of a diff: its beginning (after `--- `) and the rule of the rest.

    An existing file has a `path`, and `hunks`, the rule of its hunks, if some fit. A new file has the rule of its
    `name`.
    """

    begins: str
    rule: str
    path: str = ""
    hunks: str = ""
    name: str = ""


def diff_rules(scope: EditScope) -> tuple[str, ...]:
    """Return the rules of `diff`, whose sentences apply to the files as they are; none if nothing can be changed.

    The names of the rules are `diff`, single letters, and names that begin with `x` or a capital. Rules of a file, and
    those of new names, depend on nothing else, so the next call finds those of unchanged files.
    """
    rules = GrammarRules()
    prefixes = {file.path: _prefix(number) for number, file in enumerate(sorted(scope.files, key=_path))}
    written = [_file_rules(file, prefixes[file.path]) for file in scope.files]
    near = tuple(sorted({file.path.rpartition("/")[0] for file in scope.files}))
    new, lines = new_file_rules(scope.existing, scope.bounds, near)
    lines = (*(line for each in written for line in each[1]), *lines)
    items = [each[0] for each in written if each[0] is not None]
    items += [_Item("/dev/null\n+++ b/", rules.add(rf'{name} "\n" n?'), name=name) for name in new]
    if not items:
        return ()
    limit = len(items) if scope.max_files is None else min(len(items), scope.max_files)
    if limit < 1:
        return ()
    first = _Order(rules, items, limit).write()
    return (f"diff ::= {first}", *lines, *rules.lines, *hunks.COMMON, *spelling.COMMON)


def _prefix(number: int) -> str:
    return string.ascii_uppercase[number] if number < _MAX_SHORT else f"Y{number}-"


def _path(file: EditableFile) -> str:
    return file.path


@lru_cache(maxsize=24)
def _file_rules(file: EditableFile, prefix: str) -> tuple[_Item | None, tuple[str, ...]]:
    """Return the section of a file, None if nothing in it can be changed, and its rules."""
    rules = GrammarRules(prefix)
    item = _file_item(rules, file)
    return item, tuple(rules.lines)


@lru_cache(maxsize=4)
def new_file_rules(
    existing: tuple[str, ...], bounds: PatchBounds, near: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rules' names for the paths of new files, and their rules."""
    rules = GrammarRules("X")
    names = new_name_rules(rules, existing, bounds, near)
    return names, tuple(rules.lines)


def _file_item(rules: GrammarRules, file: EditableFile) -> _Item | None:
    kept = _kept(rules, file)
    removed = _removed(rules, file)
    ways = [f"{rules.literal(f'b/{file.path}' + chr(10))} {kept}"] if kept else []
    ways += [removed] if removed else []
    return _Item(f"a/{file.path}\n+++ ", rules.add(" | ".join(ways)), file.path, kept) if ways else None


def _kept(rules: GrammarRules, file: EditableFile) -> str:
    return HunkRules(rules, file).write() if file.lines else "n"


def _removed(rules: GrammarRules, file: EditableFile) -> str:
    if not file.lines or not file.whole:
        return ""
    lines = " ".join(f'"-" {rules.literal(line + chr(10))}' for line in file.lines)
    marker = f" {rules.literal(NO_NEWLINE + chr(10))}" if file.open_end is not None else ""
    return rf'"/dev/null\n@@" ( " -1" ( "," [1-9] [0-9]{{0,5}} )? " +0,0 @@" )? "\n" {lines}{marker}'


class _Order:
    """Writes the possible orders of sections: one rule for each set of previous sections."""

    def __init__(self, rules: GrammarRules, items: Sequence[_Item], limit: int) -> None:
        self._rules = rules
        self._items = items
        self._limit = limit
        self._free = self._any_order(len(items), limit)
        self._names: dict[tuple[frozenset[int], int], str] = {}

    @staticmethod
    def _any_order(count: int, limit: int) -> int:
        """Return the number of sections that may be in any order."""
        free, states = 0, 1
        for size in range(1, limit + 1):
            states += comb(count, size)
            if states > _MAX_STATES:
                break
            free = size
        return max(free, 1)

    def write(self) -> str:
        """Write the rules; return the expression for one section or more."""
        return self._section(frozenset(), 0)

    def _rest(self, used: frozenset[int], count: int) -> str:
        """Return the expression for the sections after `used`; a fixed order goes on after the last of them."""
        if count > self._free:
            used = frozenset(range(max(used) + 1))
            count = self._free + 1 if self._limit >= len(self._items) else count
        key = used, count
        if key not in self._names:
            self._names[key] = ""
            body = self._section(used, count)
            self._names[key] = self._rules.add(f'"" | {body}') if body else ""
        return self._names[key]

    def _section(self, used: Collection[int], count: int) -> str:
        if count >= self._limit:
            return ""
        left = [(at, item) for at, item in enumerate(self._items) if at not in used]
        ways = list(self._ways(left, frozenset(used), count))
        if not ways:
            return ""
        renames = self._renames(left, frozenset(used), count)
        return " | ".join([f'"--- " ( {" | ".join(ways)} )', *([f'"rename from " ( {renames} )'] if renames else [])])

    def _renames(self, left: Sequence[tuple[int, _Item]], used: frozenset[int], count: int) -> str:
        """Return the alternatives for a rename, which uses an existing file and a new name."""
        new = [(at, item.name) for at, item in left if item.name]
        if not new or count + 2 > self._limit:
            return ""
        trie: Trie[tuple[int, _Item]] | None = None
        for at, item in left:
            if item.path:
                trie = with_text(trie, f"{item.path}\nrename to ", (at, item))
        if trie is None:
            return ""

        def named(each: tuple[int, _Item]) -> str:
            at, item = each
            hunks_too = f"( {item.hunks} )?" if item.hunks else ""
            ways = [rf'{name} "\n" {hunks_too} {self._rest(used | {at, place}, count + 2)}' for place, name in new]
            return self._rules.shared("|".join(ways))

        return TrieRules[tuple[int, _Item]](self._rules, named).body(trie)

    def _ways(self, left: Iterable[tuple[int, _Item]], used: frozenset[int], count: int) -> Iterable[str]:
        trie: Trie[tuple[int, _Item]] | None = None
        new: dict[str, list[str]] = {}
        follow = {}
        for at, item in left:
            follow[at] = f"{item.rule} {self._rest(used | {at}, count + 1)}"
            if item.begins.startswith("/"):
                new.setdefault(item.begins, []).append(follow[at])
            else:
                trie = with_text(trie, item.begins, (at, item))
        if trie is not None:
            yield TrieRules[tuple[int, _Item]](self._rules, lambda each: follow[each[0]]).body(trie)
        for begins, ways in new.items():
            yield f"{self._rules.literal(begins)} ( {' | '.join(ways)} )"


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
