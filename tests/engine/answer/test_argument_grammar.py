"""Whatever the grammar of a tool's arguments admits, the tool's schema accepts."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from agent_workbench.core.settings import ALL_TOOLS, Permission
from agent_workbench.core.tools.arguments import MAX_JSON_CHARS, read_arguments
from agent_workbench.core.tools.schema import SchemaError, read_schema
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.engine.answer.grammar import integer_range, step_grammar
from agent_workbench.engine.tools.registry import builtin_specs
from tests.adapters.llama_cpp.grammar_oracle import fits, grammar_oracle
from tests.gbnf_sampler import sample

HEAD = "Action: tool\n"
BUILTIN = builtin_specs(ALL_TOOLS)
NAMES = st.text(max_size=8) | st.sampled_from(["a", "b", "größe", 'with "quotes"', "\x00", "$ref", "a-b", "a_b", "😀"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=6) | st.floats(-1e6, 1e6, width=32)
)
BOUNDS = st.none() | st.integers(-(10**17), 10**17) | st.integers(-130, 130) | st.floats(-50, 50, width=32)
SIZES = st.none() | st.integers(0, 5)


def without_none(**keywords: object) -> dict[str, object]:
    return {name: value for name, value in keywords.items() if value is not None}


def strings() -> st.SearchStrategy[dict[str, object]]:
    return st.builds(lambda a, b: without_none(type="string", minLength=a, maxLength=b), SIZES, SIZES)


def numbers() -> st.SearchStrategy[dict[str, object]]:
    return st.builds(
        lambda kind, a, b, c, d: without_none(type=kind, minimum=a, maximum=b, exclusiveMinimum=c, exclusiveMaximum=d),
        *(st.sampled_from(["integer", "number"]), BOUNDS, BOUNDS, BOUNDS, BOUNDS),
    )


def objects(inner: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    def made(properties: dict[str, object], required: list[str], others: object) -> dict[str, object]:
        return without_none(type="object", properties=properties, required=required, additionalProperties=others)

    required = st.lists(NAMES, max_size=3)
    return st.dictionaries(NAMES, inner, max_size=4).flatmap(
        lambda properties: st.builds(
            made,
            st.just(properties),
            required if not properties else st.lists(st.sampled_from(sorted(properties)) | NAMES, max_size=3),
            st.none() | st.booleans() | inner,
        )
    )


def inner_schemas(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    lists = st.builds(lambda a, b, c: without_none(type="array", items=a, minItems=b, maxItems=c), inner, SIZES, SIZES)
    unions = st.builds(
        lambda word, ways: {word: ways}, st.sampled_from(["anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)
    )
    return lists | unions | objects(inner)


LEAVES = (
    strings()
    | numbers()
    | st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=5))
    | st.builds(lambda value: {"const": value}, SCALARS)
    | st.builds(
        lambda names: {"type": names},
        st.lists(st.sampled_from(["string", "null", "boolean", "integer"]), min_size=1, max_size=3, unique=True),
    )
    | st.sampled_from([True, {}, {"type": "boolean"}, {"type": "null"}, {"description": "anything"}])
)
ODD = st.sampled_from(
    [
        {"pattern": "^[a-z]+$"},
        {"multipleOf": 3},
        {"uniqueItems": True},
        {"not": {"type": "string"}},
        {"allOf": [{"minLength": 2}]},
        {"if": {"type": "string"}, "then": {"minLength": 2}},
        {"minProperties": 2},
        {"patternProperties": {"^x": {"type": "integer"}}},
        {"propertyNames": {"maxLength": 3}},
        {"contains": {"const": 1}},
        {"dependentRequired": {"a": ["b"]}},
        {"enum": ["x", 1, 22]},
        {"minLength": 3},
        {"$ref": "#"},
        {"$ref": "#/properties"},
        {"prefixItems": [{"type": "string"}]},
        {"unevaluatedProperties": False},
    ]
)
SCHEMAS = st.recursive(LEAVES, inner_schemas, max_leaves=8)
ODD_SCHEMAS = st.recursive(
    LEAVES | st.builds(lambda one, odd: {**one, **odd} if isinstance(one, dict) else odd, LEAVES, ODD),
    inner_schemas,
    max_leaves=8,
)


def grammar_of(schema: object) -> tuple[str, tuple[str, ...]]:
    """Return the grammar of a step with a tool of this schema, and the keywords that it leaves out."""
    text = json.dumps(schema)
    reading = read_schema(text)
    return step_grammar([ToolSpec("tool", "a tool", Permission.EXTERNAL, text, "mcp:test")]), reading.unheld


def arguments_in(sentence: str) -> JsonValue:
    _, mark, line = sentence.partition(HEAD)
    assert mark
    assert "\n" not in line
    spec = ToolSpec("tool", "a tool", Permission.EXTERNAL, "{}", "mcp:test")
    objects: list[list[str]] = []

    def kept(pairs: list[tuple[str, JsonValue]]) -> JsonValue:
        objects.append([name for name, _ in pairs])
        return dict(pairs)

    value: JsonValue = json.loads(line, object_pairs_hook=kept)
    # No grammar can keep an object with free names from having one twice; such an answer is sent back.
    if len(line) <= MAX_JSON_CHARS and all(len(set(names)) == len(names) for names in objects):
        read_arguments(line, spec)
    return value


def problems(schema: object, value: object) -> list[str]:
    return [error.message for error in Draft202012Validator(schema, registry=Registry()).iter_errors(value)]  # type: ignore[arg-type]


@pytest.mark.slow
@given(objects(SCHEMAS), st.integers())
@settings(max_examples=60, deadline=None)
def test_whatever_the_grammar_admits_the_schema_accepts(schema: dict[str, object], seed: int) -> None:
    try:
        grammar, unheld = grammar_of(schema)
    except SchemaError:
        assume(False)
    for _ in range(2):
        value = arguments_in(sample(grammar, random.Random(seed)))
        assert unheld or problems(schema, value) == []


@pytest.mark.slow
@given(objects(ODD_SCHEMAS), st.integers())
@settings(max_examples=60, deadline=None)
def test_what_the_grammar_cannot_hold_is_told(schema: dict[str, object], seed: int) -> None:
    try:
        grammar, unheld = grammar_of(schema)
    except SchemaError:
        assume(False)
    value = arguments_in(sample(grammar, random.Random(seed)))
    assert unheld or problems(schema, value) == []


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 10**9) | st.integers(0, 300), st.integers())
def test_a_range_of_whole_numbers_holds_its_ends_and_nothing_beyond(low: int, more: int, seed: int) -> None:
    high = min(low + more, 10**15 - 1)
    grammar = f"root ::= {integer_range(low, high)}"
    chance = random.Random(seed)
    found = [sample(grammar, chance) for _ in range(20)]
    assert all(low <= int(each) <= high and str(int(each)) == each for each in found)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (-3, 12), (7, 7), (-120, -99), (8, 23), (0, 255), (99, 101), (-1, 1)]
)
def test_a_small_range_admits_each_of_its_numbers(low: int, high: int) -> None:
    grammar = f"root ::= {integer_range(low, high)}"
    chance = random.Random(1)
    assert {int(sample(grammar, chance)) for _ in range(20_000)} == set(range(low, high + 1))


# Shapes of all kinds at their bounds: what llama.cpp has to read.
REAL = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 2000},
        "labels": {"type": "array", "items": {"type": "string", "maxLength": 2000}, "minItems": 1, "maxItems": 16},
        "priority": {"enum": ["low", "high", 1, 12, None, {"größe": [1, 2]}]},
        "line": {"type": "integer", "minimum": -17, "maximum": 120_345},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "owner": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a_b": {"type": "boolean"}}}]},
        "more": {},
        "free": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "array"}}},
        "many": {"enum": [f"value {number}" for number in range(200)]},
    },
    "required": ["title", "line", "labels"],
}


SMALLER = {
    "title": {"type": "string", "minLength": 1, "maxLength": 20},
    "labels": {"type": "array", "items": {"type": "string", "maxLength": 20}, "minItems": 1, "maxItems": 3},
    "more": {"type": ["boolean", "null"]},
    "free": {"type": "object", "properties": {}, "additionalProperties": False},
}


async def test_llama_cpp_reads_the_grammar_and_draws_the_same_line(tmp_path: Path) -> None:
    grammar, unheld = grammar_of(REAL)
    assert unheld == ()
    chance = random.Random(3)
    # Lines of a schema with smaller bounds fit this one, too; to draw the longest ones takes seconds each.
    small, _ = grammar_of({**REAL, "properties": {**REAL["properties"], **SMALLER}})  # type: ignore[dict-item]
    right = [sample(small, chance) for _ in range(12)]
    head = f'Thought: x\n{HEAD}{{"title": "x", "labels": ["y"], "line": 7'
    right += [f"{head}}}", f'{head}, "priority": 12}}', f'{head}, "share": 0.5, "more": {{"a": [null]}}}}']
    wrong = [
        f'{head}, "priority": 2}}',
        f'{head}, "share": 1}}',
        f'{head}, "share": 0.0}}',
        f'{head}, "other": 1}}',
        f'{head}, "owner": 1}}',
        f"{head},}}",
        f'Thought: x\n{HEAD}{{"title": "", "labels": ["y"], "line": 7}}',
        f'Thought: x\n{HEAD}{{"title": "x", "labels": ["y"], "line": 120346}}',
        f'Thought: x\n{HEAD}{{"title": "x", "labels": [], "line": 7}}',
        f'Thought: x\n{HEAD}{{"line": 7, "title": "x", "labels": ["y"]}}',
    ]
    async with grammar_oracle(tmp_path, [*right, *wrong]) as server:
        assert [text for text in right if not await fits(server, grammar, text)] == []
        assert [text for text in wrong if await fits(server, grammar, text)] == []


async def test_llama_cpp_reads_the_largest_grammar_of_tools(tmp_path: Path) -> None:
    large = {"type": "object", "properties": {f"name {at}": REAL["properties"]["labels"] for at in range(100)}}  # type: ignore[index]
    specs = [ToolSpec(f"tool{at}", "a tool", Permission.EXTERNAL, json.dumps(large), "mcp:test") for at in range(10)]
    grammar = step_grammar([*BUILTIN, *specs])
    right = 'Thought: x\nAction: tool9\n{"name 99": ["y"]}'
    async with grammar_oracle(tmp_path, [right]) as server:
        assert await fits(server, grammar, right)


def test_tools_with_names_alike_have_rules_of_their_own() -> None:
    schema = json.dumps({"type": "object", "properties": {}, "additionalProperties": False})
    names = ("a_b", "a-b", "a.b", "A_B", "act", "root", "call-0")
    specs = [ToolSpec(name, "a tool", Permission.EXTERNAL, schema, "mcp:test") for name in names]
    grammar = step_grammar([*builtin_specs(("finish",)), *specs])
    chance = random.Random(5)
    found = {sample(grammar, chance).partition("Action: ")[2].partition("\n")[0] for _ in range(300)}
    assert found == {"finish", *names}
