"""Grammar of a whole diff: the files that it may name, each at most once, and the operations on them.

A rename has a section of its own form: `rename from` and `rename to`, with or without hunks. Git's form contains the
new name twice, and a grammar cannot make two free names equal. If another name after `+++` were enough, a typing error
would be a rename.
"""

import string
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import comb

from msgspec import Struct

from agent_workbench.core.patch.grammar import hunk_rules as hunks
from agent_workbench.core.patch.grammar import name_spelling as spelling
from agent_workbench.core.patch.grammar.grammar_rules import GrammarRules, Trie, TrieRules, with_text
from agent_workbench.core.patch.grammar.hunk_rules import EditableFile, HunkRules
from agent_workbench.core.patch.grammar.new_names import new_name_rules
from agent_workbench.core.patch.values import NO_NEWLINE, PatchBounds

_MAX_SHORT = 23
"""Files whose rules have a name that begins with a capital alone; `X`, `Y` and `Z` are for others."""
_MAX_STATES = 64
"""Files may be in any order up to this number of states; further files are in the given order."""


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
