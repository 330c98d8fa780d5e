"""The rules of the hunks that fit one file: old lines as they stand there, in order, new lines as one likes.

A hunk may end only where its old lines, taken together, stand once in the whole file, so that nothing that fits is
ambiguous whatever the numbers in its header say. The states are named by the next old line `i`: `c<i>` while nothing
was changed yet, `d<i>` afterwards. Before that, while the old lines so far stand in several places, a hunk is in one
state for all of these places at once (`Shared`); they are numbered by the first place that the hunks before leave open.
"""

from bisect import bisect_left
from dataclasses import dataclass

from agent_workbench.engine.edits.files import EditableFile
from agent_workbench.engine.edits.notation import NO_NEWLINE, Rules, literal
from agent_workbench.engine.edits.runs import Shared, Way, unique_runs
from agent_workbench.engine.edits.tries import Trie, TrieRules, with_text

_BLOCK = 8
"""Every so many lines there is a trie of all lines from there on; those up to it are tried one by one."""

# An added line that begins with `++ ` would read as the header of a file, so there is none; old lines that begin with
# `-- ` are then no matter, as only the two headers together make a file. Text may hold tabs and form feeds.
_TEXT = r"\x00-\x08\x0A\x0B\x0D-\x1F\x7F"
COMMON = (
    rf"t ::= [^{_TEXT}]",
    r'e ::= t* "\n"',
    rf'p ::= "+" ( "\n" | [^+{_TEXT}] e | "+" ( "\n" | [^+{_TEXT}] e | "+" ( "\n" | [^ {_TEXT}] e ) ) )',
    r'r ::= ( "0" | [1-9] [0-9]{0,5} ) ( "," ( "0" | [1-9] [0-9]{0,5} ) )?',
    r'h ::= "@@ -" r " +" r " @@" ( " " t{0,80} )? "\n"',
    rf"m ::= {literal(NO_NEWLINE)}",
    # A file's only lines: one or more, the last with its line feed or without.
    "z ::= p ( z | m )?",
    r'n ::= "@@ -0,0 +1" ( "," [1-9] [0-9]{0,5} )? " @@\n" z',
)
"""Rules for every file: text, the end of a line, an added line, header numbers, a hunk's header, a new file's hunk."""


@dataclass(frozen=True, slots=True)
class _Node:
    """The rules of one `Shared`: their names begin with `name`."""

    name: str
    shared: Shared

    def rule(self, start: int, flag: str) -> str:
        """Return the rule for those runs that begin at `start` or later."""
        return f"{self.name}{flag}{self.index(start)}"

    def index(self, start: int) -> int:
        return bisect_left(self.shared.ways, start, key=lambda way: way.start)


class HunkRules:
    """Writes the rules of one file's hunks."""

    def __init__(self, rules: Rules, file: EditableFile) -> None:
        self._rules = rules
        self._file = file
        self._name = rules.fresh() + "-"
        self._nodes: dict[int, _Node] = {}
        self._root = self._node(unique_runs(file.lines, file.offered))

    def write(self) -> str:
        """Write all rules; return the name of the one for the file's hunks, empty when no hunk fits this file."""
        if not self._root.shared.ways:
            return ""
        for at in sorted(self._file.offered | {each + 1 for each in self._file.offered}):
            self._write_line(at)
        waiting = [self._root]
        while waiting:
            waiting += self._write_node(waiting.pop())
        return self._rules.add(f"h {self._root.rule(0, 'c')}")

    def _node(self, shared: Shared) -> _Node:
        if id(shared) not in self._nodes:
            self._nodes[id(shared)] = _Node(self._rules.fresh() + "-", shared)
        return self._nodes[id(shared)]

    def _state(self, flag: str, at: int) -> str:
        return f"{self._name}{flag}{at}"

    def _line(self, at: int) -> str:
        return self._file.lines[at] + "\n" + (NO_NEWLINE if at == self._file.open_end else "")

    def _write_line(self, at: int) -> None:
        """Write the states before line `at` of a hunk that stands in one place."""
        unchanged, changed = self._state("c", at), self._state("d", at)
        added = f"p {changed}"
        if at == len(self._file.lines):
            after = self._rules.add(f"{changed} | m")
            added = f"p {after}"
        ways, ways_changed = [added], [added, '""']
        if self._root.index(at) < len(self._root.shared.ways):
            ways_changed.append(f"h {self._root.rule(at, 'c')}")
        if at in self._file.offered:
            line, gone = self._rules.literal(self._line(at)), self._state("d", at + 1)
            if at == self._file.open_end:  # nothing can stand behind it, so it is a change or the hunk's end
                ways.append(f'"-" {line} {gone}')
                ways_changed += [f'"-" {line} {gone}', f'" " {line}']
            else:
                # Many leave out the space of a blank line; at the end of a hunk that would be no line.
                space = '" "?' if not self._file.lines[at] else '" "'
                ways += [f"{space} {line} {self._state('c', at + 1)}", f'"-" {line} {gone}']
                ways_changed.append(f"[ -] {line} {gone}")
        self._rules.define(unchanged, " | ".join(ways))
        self._rules.define(changed, " | ".join(ways_changed))

    def _write_node(self, node: _Node) -> list[_Node]:
        """Write the states of one node and return the nodes behind it."""
        ways = [way for way in node.shared.ways if way.at != self._file.open_end]
        end = len(ways) < len(node.shared.ways)
        self._write_choices(node, ways)
        for index, way in enumerate(node.shared.ways):
            unchanged, changed = node.rule(way.start, "c"), node.rule(way.start, "d")
            bodies = [f"p {changed}"], [f"p {changed}"]
            if index < len(ways):
                bodies[0].extend([f'" " {node.name}u{index}', f'"-" {node.name}v{index}'])
                bodies[1].append(f"[ -] {node.name}v{index}")
                blank = next((each for each in ways[index:] if not self._file.lines[each.at]), None)
                if blank is not None:
                    bodies[0].append(rf'"\n" {self._after("c", blank)}')
            if end:
                line = self._rules.literal(self._line(len(self._file.lines) - 1))
                gone = f'"-" {line} {self._state("d", len(self._file.lines))}'
                bodies[0].append(gone)
                bodies[1].extend([gone, f'" " {line}'])
            self._rules.define(unchanged, " | ".join(bodies[0]))
            self._rules.define(changed, " | ".join(bodies[1]))
        behind = {id(way.further): way.further for way in node.shared.ways if way.further is not None}
        return [self._node(shared) for shared in behind.values()]

    def _write_choices(self, node: _Node, ways: list[Way]) -> None:
        """Write the rules `u<index>` and `v<index>`: the next old line is that of a way from `index` on."""
        tries = {
            "u": TrieRules[Way](self._rules, lambda way: self._after("c", way)),
            "v": TrieRules[Way](self._rules, lambda way: self._after("d", way)),
        }
        trie: Trie[Way] | None = None
        for index in range(len(ways) - 1, -1, -1):
            way = ways[index]
            trie = with_text(trie, self._line(way.at), way)
            for flag, written in tries.items():
                if (len(ways) - index) % _BLOCK == 0:
                    body = written.body(trie)
                else:
                    body = f"{self._rules.literal(self._line(way.at))} {self._after('cd'['uv'.index(flag)], way)}"
                    if index + 1 < len(ways):
                        body += f" | {node.name}{flag}{index + 1}"
                self._rules.define(f"{node.name}{flag}{index}", body)

    def _after(self, flag: str, way: Way) -> str:
        if way.further is None:
            return self._state(flag, way.at + 1)
        return self._node(way.further).rule(way.start, flag)
