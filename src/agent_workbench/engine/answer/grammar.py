"""GBNF grammars of a step, of a tool's arguments, of a reflexion and of a summary.

GBNF is llama.cpp's grammar format (its `grammars/README.md`). Every repetition is bounded, and so is an answer; only
the length of a reply in a chat is left to the token limit of its request.

Arguments are JSON on one line. A text in them of more than `MAX_TEXT` characters is bounded by the answer's length,
because llama.cpp refuses to count so far. Whatever else the rules admit is a value of the schema's shape.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from agent_workbench.core.patch.grammar_rules import GrammarRules, Trie, TrieRules, literal, with_text
from agent_workbench.core.tools.arguments import MAX_INTEGER, Choices
from agent_workbench.core.tools.schema import MAX_TEXT
from agent_workbench.core.tools.shapes import (
    AnyShape,
    ArrayShape,
    BooleanShape,
    ConstShape,
    IntegerShape,
    NullShape,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    UnionShape,
)
from agent_workbench.core.tools.spec import ToolSpec, read_spec_schema

THOUGHT_CHARS = 600
REFLEXION_CHARS = 900
SUMMARY_LINES, SUMMARY_LINE_CHARS = 24, 240

SENTENCES = (
    'thought ::= sentence (" " sentence){0,3}',
    r"sentence ::= part{1,300} [.!?]",
    r"part ::= [^\x00-\x1F\x7F.!?] | [.!?] [^\x00-\x20\x7F]",
)
"""Rules of a thought that ends where a sentence ends: a cut one is continued in the next answer."""

SHARED = (
    r"text ::= [^\x00-\x1F\x7F]",
    r'char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-cA-CefEF] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])',
    r'number ::= "0" | [1-9] [0-9]{0,5}',
)

PLAIN_DEPTH = 3
PLAIN_ITEMS = 8
PLAIN_TEXT = 500
_NO_CHOICES: Choices = MappingProxyType({})
_SCALAR = r'"true" | "false" | "null" | "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})?'


def step_grammar(
    specs: Iterable[ToolSpec],
    diff: Sequence[str] = (),
    choices: Mapping[str, Choices] = MappingProxyType({}),
    pieces: Sequence[str] = (),
    *,
    replies: bool = False,
    thought: str = "",
) -> str:
    """Return the grammar whose sentences are the steps that may be taken with these tools.

    With `replies` a reply to the user is a sentence too. `diff` are the rules of the diffs that may be written
    (`core.patch.diff_grammar`), `pieces` those of the pieces that may be rewritten (`core.patch.piece_grammar`);
    without them no tool that takes such a body is offered. `choices` holds, by tool, the values that its arguments may
    have now. With a `thought` that is the only one.
    """
    rules = GrammarRules("v")
    values = ArgumentRules(rules)
    bodies = {False: diff, True: pieces}
    offered = [(_rule_name(spec, at), spec) for at, spec in enumerate(specs) if not spec.raw or bodies[spec.fenced]]
    # Some models only go on after a blank line.
    blank = r' "\n"?' if pieces else ""
    calls = rf'"Thought: " thought{blank} "\nAction: " action'
    roots = [calls] if not replies else [*([calls] if offered else []), r'("Thought: " thought "\n")? "Answer: " reply']
    thinks = SENTENCES if pieces else (rf"thought ::= text{{1,{THOUGHT_CHARS}}}",)
    lines = ["root ::= " + " | ".join(roots), *([f"thought ::= {literal(thought)}"] if thought else thinks)]
    if offered:
        lines.append("action ::= " + " | ".join(name for name, _ in offered))
    if replies:
        lines.append(r"reply ::= [^\x00-\x20\x7F] [^\x00-\x08\x0B-\x1F\x7F]*")
    for name, spec in offered:
        if spec.raw:
            body = "pieces" if spec.fenced else "diff"
        else:
            body = values.arguments(read_spec_schema(spec).shape, choices.get(spec.name, {}))
        lines.append(f'{name} ::= "{spec.name}\\n" {body}')
    for fenced in dict.fromkeys(spec.fenced for _, spec in offered if spec.raw):
        lines += bodies[fenced]
    # Diffs and pieces share the rules of the names of new files.
    return "\n".join(dict.fromkeys([*lines, *rules.lines, *SHARED])) + "\n"


def reflexion_grammar() -> str:
    """Return the grammar of a reflexion: one bounded paragraph."""
    return f'root ::= "Reflexion: " text{{1,{REFLEXION_CHARS}}}\n{SHARED[0]}\n'


def summary_grammar() -> str:
    """Return the grammar of a summary: a few bounded lines."""
    # A line is a rule of its own: llama.cpp refuses repetitions inside a repetition where they multiply to too many.
    line = f"line ::= text{{1,{SUMMARY_LINE_CHARS}}}"
    return f'root ::= "Summary: " line ("\\n" line){{0,{SUMMARY_LINES - 1}}}\n{line}\n{SHARED[0]}\n'


def _rule_name(spec: ToolSpec, number: int) -> str:
    # The names of a source's tools may be alike once `_` and `.`, which no rule's name may have, are replaced.
    return f"act-{spec.name.replace('_', '-')}" if spec.builtin else f"call-{number}"


class ArgumentRules:
    """Writer of the rules for arguments into one grammar; each shape is written once.

    The grammar has the rules `char` and `number` of `engine.answer.grammar`.
    """

    def __init__(self, rules: GrammarRules) -> None:
        self._rules = rules
        self._names: dict[Shape, str] = {}
        self._plain: dict[int, str] = {}

    def arguments(self, shape: Shape, choices: Choices = _NO_CHOICES) -> str:
        """Return the expression for the arguments; `choices` are the values that some of them may have now."""
        if isinstance(shape, ObjectShape) and shape.properties:
            return self._members(shape.properties, choices)
        return self._value(shape)

    def _value(self, shape: Shape) -> str:
        match shape:
            case ObjectShape(properties=()):
                return self._map(shape.others)
            case ObjectShape():
                return self._named(shape)
            case ArrayShape():
                return self._array(shape)
            case UnionShape(choices=choices):
                return f"({' | '.join(map(self._value, choices))})"
            case ConstShape(values=values):
                return self._one_of(values)
            case StringShape() if shape.max_length > MAX_TEXT:
                return rf'"\"" char{{{shape.min_length}}} char* "\""' if shape.min_length else r'"\"" char* "\""'
            case StringShape():
                return rf'"\"" char{{{shape.min_length},{shape.max_length}}} "\""'
            case IntegerShape(minimum=0, maximum=most) if most == MAX_INTEGER:
                return "number"
            case IntegerShape():
                return integer_range(shape.minimum, shape.maximum)
            case NumberShape():
                return self._named(shape)
            case BooleanShape():
                return '("true" | "false")'
            case NullShape():
                return '"null"'
            case AnyShape():
                return self._plain_value(PLAIN_DEPTH)

    def _named(self, shape: Shape) -> str:
        """Return the name of the rule of a shape; the same shape is written once."""
        if shape not in self._names:
            match shape:
                case ObjectShape(properties=properties) if properties:
                    body = self._members(properties, {})
                case NumberShape():
                    body = _number(shape)
                case _:
                    body = self._value(shape)
            self._names[shape] = self._rules.add(body)
        return self._names[shape]

    def _members(self, properties: tuple[Property, ...], choices: Choices) -> str:
        required = [self._member(each, choices) for each in properties if each.required]
        optional = [self._member(each, choices) for each in properties if not each.required]
        if required:
            extra = "".join(f' (", " {each})?' for each in optional)
            return f'"{{" {_listed(required)}{extra} "}}"'
        if not optional:
            return '"{}"'
        return f'"{{" ({self._some(optional)})? "}}"'

    def _some(self, members: list[str]) -> str:
        """Return the expression for at least one of these members, in order."""
        *earlier, last = members
        ways, rest = [last], ""
        for member in reversed(earlier):
            rest = self._rules.add(f'(", " {self._rules.add(last)})? {rest}'.rstrip())
            last = member
            ways.insert(0, f"{member} {rest}")
        return " | ".join(ways)

    def _member(self, argument: Property, choices: Choices) -> str:
        name = json.dumps(argument.name, ensure_ascii=not argument.name.isprintable())
        if argument.name in choices:
            texts = (json.dumps(each, ensure_ascii=not each.isprintable()) for each in choices[argument.name])
            value = self._one_of(texts)
        else:
            value = self._value(argument.shape)
        return f"{literal(f'{name}: ')} {value}"

    def _map(self, others: Shape | None) -> str:
        if others is None:
            return '"{}"'
        entry = self._rules.add(rf'"\"" char{{0,{PLAIN_TEXT}}} "\": " {self._named(others)}')
        return f'"{{" ({entry} (", " {entry}){{0,{PLAIN_ITEMS - 1}}})? "}}"'

    def _array(self, shape: ArrayShape) -> str:
        if shape.items is None or not shape.max_items:
            return '"[]"'
        # A rule of its own: llama.cpp refuses repetitions inside a repetition where they multiply to too many.
        item = self._named(shape.items)
        least, most = max(0, shape.min_items - 1), shape.max_items - 1
        listed = f'{item} (", " {item}){{{least},{most}}}' if most else item
        return f'"[" {listed} "]"' if shape.min_items else f'"[" ({listed})? "]"'

    def _one_of(self, texts: Iterable[str]) -> str:
        """Return the rule for one of these JSON texts."""
        trie: Trie[str] | None = None
        others: list[str] = []
        for text in texts:
            if text.startswith('"'):
                trie = with_text(trie, text, "")
            else:
                # The number 1 is the beginning of 12, which a trie cannot hold.
                others.append(literal(text))
        if trie:
            others.insert(0, TrieRules[str](self._rules, str).body(trie))
        return self._rules.add(" | ".join(others) or r'"\"\""')

    def _plain_value(self, depth: int) -> str:
        """Return the rule for any JSON value that is nested no deeper than this."""
        if depth not in self._plain:
            body = rf'"\"" char{{0,{PLAIN_TEXT}}} "\"" | {_SCALAR}'
            if depth:
                inner = self._plain_value(depth - 1)
                entry = self._rules.add(rf'"\"" char{{0,{PLAIN_TEXT}}} "\": " {inner}')
                more = f"{{0,{PLAIN_ITEMS - 1}}}"
                body = f'{inner} | "[" ({inner} (", " {inner}){more})? "]" | "{{" ({entry} (", " {entry}){more})? "}}"'
            self._plain[depth] = self._rules.add(body)
        return self._plain[depth]


def _listed(members: list[str]) -> str:
    return ' ", " '.join(members)


def _number(shape: NumberShape) -> str:
    ways: list[str] = []
    if shape.whole:
        ways.append(integer_range(*shape.whole))
    # The last digit is no zero, so the number is between two whole ones.
    for sign, bounds in (("", shape.fractions), ('"-" ', shape.negative_fractions)):
        if bounds:
            ways.append(f'{sign}{integer_range(*bounds)} "." [0-9]{{0,5}} [1-9]')
    return " | ".join(ways)


def integer_range(low: int, high: int) -> str:
    """Return a GBNF expression that matches exactly the integers from `low` to `high`."""
    ways: list[str] = []
    if low < 0:
        # Minus zero is left out.
        ways += [f'"-" {way}' for way in _positive(max(1, -high), -low)] if high < 0 else _negatives(-low)
    if high >= 0:
        ways += _positive(max(0, low), high)
    return f"({' | '.join(ways)})"


def _negatives(most: int) -> list[str]:
    return [f'"-" {way}' for way in _positive(1, most)]


def _positive(low: int, high: int) -> list[str]:
    """Return GBNF alternatives for a range of integers that are not negative."""
    ways: list[str] = []
    for width in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (width - 1) if width > 1 else 0)
        last = min(high, 10**width - 1)
        ways += _of_width(str(first), str(last))
    return ways


def _of_width(low: str, high: str) -> list[str]:
    """Return GBNF alternatives for a range whose bounds have the same number of digits."""
    if low == high:
        return [f'"{low}"']
    first, last, rest = low[0], high[0], len(low) - 1
    if first == last:
        return [f'"{first}" ({" | ".join(_of_width(low[1:], high[1:]))})']
    if not rest:
        return [f"[{first}-{last}]"]
    ways: list[str] = []
    lowest, highest = int(first), int(last)
    if low[1:].strip("0"):
        ways.append(f'"{first}" ({" | ".join(_of_width(low[1:], "9" * rest))})')
        lowest += 1
    if high[1:].strip("9"):
        ways.append(f'"{last}" ({" | ".join(_of_width("0" * rest, high[1:]))})')
        highest -= 1
    if lowest <= highest:
        digit = f"[{lowest}-{highest}]" if lowest < highest else f'"{lowest}"'
        ways.append(f"{digit} [0-9]{{{rest}}}")
    return ways
