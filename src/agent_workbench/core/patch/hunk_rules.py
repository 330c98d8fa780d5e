"""Grammar of the hunks that fit one file: where one may begin, its old lines, and any new ones.

A hunk may end only if its old lines together occur once in the whole file. So no hunk is ambiguous, whatever the
numbers in its header are. A state is named by the next old line `i`: `c<i>` before the first change, `d<i>` after it,
`g<i>` if the only change so far removed a blank line. While the old lines so far occur several times, one state stands
for all these positions (`SharedRuns`); it is numbered by the first position that the previous hunks leave open.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct, field

from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.grammar_rules import GrammarRules, Trie, TrieRules, literal, with_text
from agent_workbench.core.patch.values import NO_NEWLINE, FileContent

MAX_SHARED_LINES = 16
"""The largest number of lines that two runs may share before they differ; longer ones are not followed."""

MAX_LINE_BYTES = 4_000
_CONTROLS = frozenset(map(chr, [*range(0x20), 0x7F])) - {"\t", "\f"}

_MARKER = NO_NEWLINE + "\n"
_BLOCK = 8
"""Distance of the lines with a trie of all lines from there on; the lines between are tried one by one."""

# An added line that begins with `++ ` would look like the header of a file, so there is none. Old lines that begin with
# `-- ` do no harm then, as only both headers together begin a file. Text may contain tabs and form feeds.
_TEXT = r"\x00-\x08\x0A\x0B\x0D-\x1F\x7F"
COMMON = (
    rf"t ::= [^{_TEXT}]",
    r'e ::= t* "\n"',
    rf'k ::= [^+{_TEXT}] e | "+" ( "\n" | [^+{_TEXT}] e | "+" ( "\n" | [^ {_TEXT}] e ) )',
    r'p ::= "+" ( "\n" | k )',
    r'r ::= ( "0" | [1-9] [0-9]{0,5} ) ( "," ( "0" | [1-9] [0-9]{0,5} ) )?',
    r'h ::= "@@" ( " -" r " +" r " @@" ( " " t{0,80} )? )? "\n"',
    rf"m ::= {literal(_MARKER)}",
    # All lines of a new content: one or more, the last with or without its line feed.
    r'z ::= "+" ( "\n" z? | k ( z | m )? )',
    r'n ::= "@@" ( " -0,0 +1" ( "," [1-9] [0-9]{0,5} )? " @@" )? "\n" z',
)
"""Rules for all files: a character, the end of a line, the text of an added line that is not blank, an added line,
numbers, a hunk header, the marker of a missing line feed (never after a blank line), all lines of a new content, and
the hunk of a new file."""


class RunStep(Struct, frozen=True):
    """The next line, `at`, of a run that begins at `start`; `further` is None if the run occurs once with it."""

    start: int
    at: int
    further: "SharedRuns | None"


class SharedRuns(Struct, frozen=True):
    """Equal runs that occur more than once, in the order of their beginnings, with the next line of each.

    It contains only runs that offered lines can extend to a run that occurs once.
    """

    ways: tuple[RunStep, ...] = field(default=())


def find_unique_runs(lines: Sequence[str], offered: Collection[int]) -> SharedRuns:
    """Return the steps from the empty run to all runs of `offered` lines that occur once in `lines`."""
    every = range(len(lines))
    return SharedRuns(tuple(sorted(_ways(lines, offered, every, frozenset(every), 0), key=lambda way: way.start)))


def _ways(
    lines: Sequence[str], offered: Collection[int], starts: Sequence[int], open_starts: Collection[int], depth: int
) -> Iterator[RunStep]:
    """Yield the next steps of runs of `depth` equal lines at `starts`; the runs at `open_starts` are offered."""
    groups: dict[str, list[int]] = {}
    for start in starts:
        if start + depth < len(lines):
            groups.setdefault(lines[start + depth], []).append(start)
    for group in groups.values():
        usable = [start for start in group if start in open_starts and start + depth in offered]
        if len(group) == 1:
            yield from (RunStep(start, start + depth, None) for start in usable)
        elif usable and depth < MAX_SHARED_LINES:
            found = sorted(_ways(lines, offered, group, frozenset(usable), depth + 1), key=lambda way: way.start)
            if found:
                further = SharedRuns(tuple(found))
                yield from (RunStep(way.start, way.start + depth, further) for way in found)


class EditableFile(Struct, frozen=True):
    """A file that a diff may change.

    `lines` are all its lines, without their line ends. `offered` are the indices of those that a diff may contain: each
    is text that fits in one line of a diff. `terminated` is True if the last line has a line feed.
    """

    path: str
    lines: tuple[str, ...]
    offered: frozenset[int]
    terminated: bool = True

    @property
    def open_end(self) -> int | None:
        """The index of a last line without a line feed, None if there is none."""
        return None if self.terminated or not self.lines else len(self.lines) - 1

    @property
    def whole(self) -> bool:
        """True if every line is offered, so that the file may be deleted."""
        return len(self.offered) == len(self.lines)


def text_lines(content: FileContent) -> FileLines | None:
    """Return the lines of a text file, None for a file that contains a NUL."""
    return None if b"\0" in content.data else FileLines(content.data)


def editable(path: str, lines: FileLines, shown: Collection[int]) -> EditableFile:
    """Return the file with those of the `shown` lines offered that fit in a line of a diff."""
    fit = frozenset(at for at in shown if _can_be_written(lines.bare[at]))
    return EditableFile(path, lines.bare, fit, lines.terminated)


def _can_be_written(line: str) -> bool:
    if not _CONTROLS.isdisjoint(line):
        return False
    try:
        return len(line.encode()) <= MAX_LINE_BYTES
    except UnicodeEncodeError:
        return False


class _Node(Struct, frozen=True):
    """The rules of one `SharedRuns`, by its `number`; `blank`: its runs end with a blank line."""

    number: int
    shared: SharedRuns
    blank: bool = False

    def index(self, start: int) -> int:
        return bisect_left(self.shared.ways, start, key=_start)


def _start(way: RunStep) -> int:
    return way.start


class HunkRules:
    """Writes the rules of the hunks of one file."""

    def __init__(self, rules: GrammarRules, file: EditableFile) -> None:
        self._rules = rules
        self._file = file
        self._nodes: dict[int, _Node] = {}
        self._root = self._node(find_unique_runs(file.lines, file.offered))

    def write(self) -> str:
        """Write all rules; return the name of the rule for the hunks of the file, empty if no hunk fits."""
        if not self._root.shared.ways:
            return ""
        for at in sorted(self._file.offered | {each + 1 for each in self._file.offered}):
            self._write_line(at)
        waiting = [self._root]
        while waiting:
            waiting += self._write_node(waiting.pop())
        return self._rules.add(f"h {self._rule(self._root, 0, 'c')}")

    def _node(self, shared: SharedRuns, *, blank: bool = False) -> _Node:
        if id(shared) not in self._nodes:
            self._nodes[id(shared)] = _Node(len(self._nodes), shared, blank)
        return self._nodes[id(shared)]

    def _state(self, flag: str, at: int) -> str:
        return self._rules.name_of((self._file.path, flag, at))

    def _rule(self, node: _Node, start: int, flag: str) -> str:
        """Return the rule for the runs of a node that begin at `start` or later."""
        return self._choice(node, flag, node.index(start))

    def _choice(self, node: _Node, flag: str, index: int) -> str:
        return self._rules.name_of((self._file.path, node.number, flag, index))

    def _line(self, at: int) -> str:
        return self._file.lines[at] + "\n" + (_MARKER if at == self._file.open_end else "")

    def _write_line(self, at: int) -> None:
        """Write the states before line `at` of a hunk whose position is unique."""
        unchanged, changed = self._state("c", at), self._state("d", at)
        behind = self._rules.add(f"{changed} | m") if at == len(self._file.lines) else changed
        added = f"p {changed}" if behind == changed else rf'"+" ( "\n" {changed} | k {behind} )'
        ways, ways_changed = [], ['""']
        if self._root.index(at) < len(self._root.shared.ways):
            ways_changed.append(f"h {self._rule(self._root, at, 'c')}")
        if at in self._file.offered:
            line, gone = self._rules.literal(self._line(at)), self._state("d", at + 1)
            if at == self._file.open_end:  # Nothing follows it, so it is a change or the end of the hunk.
                ways.append(f'"-" {line} {gone}')
                ways_changed += [f'"-" {line} {gone}', f'" " {line}']
            else:
                ways += self._old_line(line, self._state("c", at + 1), gone, self._removed(at))
                ways_changed.append(f"[ -] {line} {gone}")
        self._rules.define(unchanged, "|".join([added, *ways]))
        self._rules.define(changed, "|".join([added, *ways_changed]))
        if at and not self._file.lines[at - 1]:
            back = rf'"+" ( "\n" {unchanged} | k {behind} )'
            self._rules.define(self._state("g", at), "|".join([back, *ways_changed]))

    def _removed(self, at: int) -> str:
        """Return the state after line `at` was removed as the first change; a blank line may be added back."""
        return self._state("d" if self._file.lines[at] else "g", at + 1)

    @staticmethod
    def _old_line(line: str, kept: str, gone: str, removed: str) -> tuple[str, str]:
        """Return the alternatives that keep or remove a line before the first change."""
        # Many models leave out the space of a blank line; at the end of a hunk that would be no line.
        space = '" "' if gone == removed else '" "?'
        return f"{space} {line} {kept}", f'"-" {line} {removed}'

    def _write_node(self, node: _Node) -> list[_Node]:
        """Write the states of one node; return the nodes after it."""
        lines = self._file.lines
        ways = [way for way in node.shared.ways if lines[way.at] and way.at != self._file.open_end]
        blanks = [way for way in node.shared.ways if not lines[way.at] and way.at != self._file.open_end]
        end = len(ways) + len(blanks) < len(node.shared.ways)
        self._write_choices(node, ways)
        for way in node.shared.ways:
            unchanged, changed = self._rule(node, way.start, "c"), self._rule(node, way.start, "d")
            bodies: tuple[list[str], list[str]] = [], []
            index = bisect_left(ways, way.start, key=_start)
            if index < len(ways):
                bodies[0].extend([f'" " {self._choice(node, "u", index)}', f'"-" {self._choice(node, "v", index)}'])
                bodies[1].append(f"[ -] {self._choice(node, 'v', index)}")
            if blank := next((each for each in blanks if each.start >= way.start), None):
                kept, gone, removed = (self._after(flag, blank) for flag in "cdg")
                bodies[0].extend(self._old_line(r'"\n"', kept, gone, removed))
                bodies[1].append(rf'[ -] "\n" {gone}')
            if end:
                line = self._rules.literal(self._line(len(lines) - 1))
                gone = f'"-" {line} {self._state("d", len(lines))}'
                bodies[0].append(gone)
                bodies[1].extend([gone, f'" " {line}'])
            self._rules.define(unchanged, "|".join([f"p {changed}", *bodies[0]]))
            self._rules.define(changed, "|".join([f"p {changed}", *bodies[1]]))
            if node.blank:
                back = rf'"+" ( "\n" {unchanged} | k {changed} )'
                self._rules.define(self._rule(node, way.start, "g"), "|".join([back, *bodies[1]]))
        behind = {id(way.further): way for way in node.shared.ways if way.further is not None}
        return [self._node(way.further, blank=not lines[way.at]) for way in behind.values() if way.further]

    def _write_choices(self, node: _Node, ways: list[RunStep]) -> None:
        """Write the rules `u<index>` and `v<index>`: the next old line is that of a step from `index` on."""
        tries = {
            "u": TrieRules[RunStep](self._rules, lambda way: self._after("c", way)),
            "v": TrieRules[RunStep](self._rules, lambda way: self._after("d", way)),
        }
        trie: Trie[RunStep] | None = None
        for index in range(len(ways) - 1, -1, -1):
            way = ways[index]
            trie = with_text(trie, self._line(way.at), way)
            for flag, written in tries.items():
                if (len(ways) - index) % _BLOCK == 0:
                    body = written.body(trie)
                else:
                    body = f"{self._rules.literal(self._line(way.at))} {self._after('cd'['uv'.index(flag)], way)}"
                    if index + 1 < len(ways):
                        body += f"|{self._choice(node, flag, index + 1)}"
                self._rules.define(self._choice(node, flag, index), body)

    def _after(self, flag: str, way: RunStep) -> str:
        if way.further is None:
            return self._state(flag, way.at + 1)
        return self._rule(self._node(way.further, blank=not self._file.lines[way.at]), way.start, flag)
