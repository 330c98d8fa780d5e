"""The grammar of a whole diff: which files it may name, each at most once, and what it may do to them.

A renamed file has a section of its own form, `rename from` and `rename to` with hunks or without: in git's form the new
name stands twice, and a grammar cannot make two free names equal. Were it enough to name another file behind `+++`, a
slip of the pen would be a rename.
"""

from collections.abc import Collection, Iterable, Sequence
from math import comb

from msgspec import Struct

from agent_workbench.core.patch import PatchBounds
from agent_workbench.core.patch.grammar import hunk_rules as hunks
from agent_workbench.core.patch.grammar import name_spelling as spelling
from agent_workbench.core.patch.grammar.editable_file import EditableFile
from agent_workbench.core.patch.grammar.hunk_rules import HunkRules
from agent_workbench.core.patch.grammar.new_names import new_name_rules
from agent_workbench.core.patch.grammar.rule_list import NO_NEWLINE, Rules
from agent_workbench.core.patch.grammar.tries import Trie, TrieRules, with_text

_MAX_STATES = 64
"""Files may come in any order while there are no more states than these; further ones come in the order given."""


class Editing(Struct, frozen=True):
    """What a diff may change now: `files` in the order they matter, and where new ones may be made.

    `existing` are all paths of the repository. `max_files` bounds how many files the diff may name (None: no bound).
    """

    files: tuple[EditableFile, ...]
    existing: tuple[str, ...]
    bounds: PatchBounds
    max_files: int | None = None


class _Item(Struct, frozen=True):
    """One section of a diff: how it begins (after `--- `) and the rule of what follows.

    A file that is there has a `path`, and `hunks` where some fit it; new ones have the rule of their `name`.
    """

    begins: str
    rule: str
    path: str = ""
    hunks: str = ""
    name: str = ""


def diff_rules(editing: Editing) -> tuple[str, ...]:
    """Return the rules of `diff`, whose sentences apply to the files as they are; none where nothing can be changed.

    Names of rules are `diff`, single letters, and those that begin with `x`.
    """
    rules = Rules()
    items = [item for file in editing.files if (item := _file_item(rules, file))]
    near = [file.path.rpartition("/")[0] for file in editing.files]
    new = new_name_rules(rules, editing.existing, editing.bounds, near)
    items += [_Item("/dev/null\n+++ b/", rules.add(rf'{name} "\n" n?'), name=name) for name in new]
    if not items:
        return ()
    limit = len(items) if editing.max_files is None else min(len(items), editing.max_files)
    if limit < 1:
        return ()
    first = _Order(rules, items, limit).write()
    return (f"diff ::= {first}", *rules.lines, *hunks.COMMON, *spelling.COMMON)


def _file_item(rules: Rules, file: EditableFile) -> _Item | None:
    kept = _kept(rules, file)
    removed = _removed(rules, file)
    ways = [f"{rules.literal(f'b/{file.path}' + chr(10))} {kept}"] if kept else []
    ways += [removed] if removed else []
    return _Item(f"a/{file.path}\n+++ ", rules.add(" | ".join(ways)), file.path, kept) if ways else None


def _kept(rules: Rules, file: EditableFile) -> str:
    return HunkRules(rules, file).write() if file.lines else "n"


def _removed(rules: Rules, file: EditableFile) -> str:
    if not file.lines or not file.whole:
        return ""
    lines = " ".join(f'"-" {rules.literal(line + chr(10))}' for line in file.lines)
    marker = f" {rules.literal(NO_NEWLINE)}" if file.open_end is not None else ""
    return rf'"/dev/null\n@@ -1" ( "," [1-9] [0-9]{{0,5}} )? " +0,0 @@\n" {lines}{marker}'


class _Order:
    """Writes in which order sections may follow each other: one rule for each set of those that were there."""

    def __init__(self, rules: Rules, items: Sequence[_Item], limit: int) -> None:
        self._rules = rules
        self._items = items
        self._limit = limit
        self._free = self._any_order(len(items), limit)
        self._names: dict[tuple[frozenset[int], int], str] = {}

    @staticmethod
    def _any_order(count: int, limit: int) -> int:
        """Return how many sections may come in any order."""
        free, states = 0, 1
        for size in range(1, limit + 1):
            states += comb(count, size)
            if states > _MAX_STATES:
                break
            free = size
        return max(free, 1)

    def write(self) -> str:
        """Write the rules; return what stands for one section or more."""
        return self._section(frozenset(), 0)

    def _rest(self, used: frozenset[int], count: int) -> str:
        """Return what may follow once `used` were there: in the state of a fixed order, those up to the last one."""
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
        """Return the ways to give a file a new name: it takes up its own place and that of a new file."""
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
            return f"( {' | '.join(ways)} )"

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
