"""GBNF of a tool's arguments: JSON on one line that matches the shape of the schema.

Every repetition is bounded, except in a text of more than `MAX_TEXT` characters: llama.cpp refuses to count so far, so
only the answer's length bounds it. Whatever else the rules admit is a value of the shape.
"""

import json
from collections.abc import Iterable
from types import MappingProxyType

from agent_workbench.core.patch.grammar.grammar_rules import GrammarRules, Trie, TrieRules, with_text
from agent_workbench.core.text.gbnf import literal
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
from agent_workbench.engine.answer.number_ranges import integer_range

PLAIN_DEPTH = 3
PLAIN_ITEMS = 8
PLAIN_TEXT = 500
_NO_CHOICES: Choices = MappingProxyType({})
_SCALAR = r'"true" | "false" | "null" | "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})?'


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
