"""GBNF for one step: only tools that are open now, only arguments of their schema.

GBNF is llama.cpp's grammar format (its `grammars/README.md`). Every repetition is bounded, and so is an answer.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from agent_workbench.core.patch.grammar.rule_list import RuleList
from agent_workbench.core.patch.grammar.tries import Trie, TrieRules, with_text
from agent_workbench.engine.tools.arguments import Argument, ArgumentKind, Choices
from agent_workbench.engine.tools.tool import Tool

THOUGHT_CHARS = 600
REFLEXION_CHARS = 900
SUMMARY_LINES, SUMMARY_LINE_CHARS = 24, 240

SHARED = (
    r"text ::= [^\x00-\x1F\x7F]",
    r'char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-cA-CefEF] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])',
    r'number ::= "0" | [1-9] [0-9]{0,5}',
)


def step_grammar(
    tools: Iterable[Tool], diff: Sequence[str] = (), choices: Mapping[str, Choices] = MappingProxyType({})
) -> str:
    """Return the grammar whose sentences are the steps that may be taken with these tools.

    `diff` are the rules of the diffs that may be written (`edits.sections`); without them no tool is offered that takes
    one. `choices` holds, by tool, what may be chosen for its arguments.
    """
    listed = RuleList("v")
    offered = tuple(tool for tool in tools if diff or not tool.raw)
    rules = [
        r'root ::= "Thought: " thought "\nAction: " action',
        rf"thought ::= text{{1,{THOUGHT_CHARS}}}",
        "action ::= " + " | ".join(f"act-{_dashed(tool.name)}" for tool in offered),
    ]
    for tool in offered:
        body = "diff" if tool.raw else _object(tool.arguments, listed, choices.get(tool.name, {}))
        rules.append(f'act-{_dashed(tool.name)} ::= "{tool.name}\\n" {body}')
    if any(tool.raw for tool in offered):
        rules += diff
    return "\n".join([*rules, *listed.lines, *SHARED]) + "\n"


def reflexion_grammar() -> str:
    """Return the grammar of a reflexion: one bounded paragraph."""
    return f'root ::= "Reflexion: " text{{1,{REFLEXION_CHARS}}}\n{SHARED[0]}\n'


def summary_grammar() -> str:
    """Return the grammar of a summary: a few bounded lines."""
    # A line is a rule of its own: llama.cpp refuses repetitions inside a repetition where they multiply to too many.
    line = f"line ::= text{{1,{SUMMARY_LINE_CHARS}}}"
    return f'root ::= "Summary: " line ("\\n" line){{0,{SUMMARY_LINES - 1}}}\n{line}\n{SHARED[0]}\n'


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _object(schema: tuple[Argument, ...], rules: RuleList, choices: Choices) -> str:
    required = [each for each in schema if each.required]
    optional = [each for each in schema if not each.required]
    if not required:
        first = " | ".join(_member(each, rules, choices) for each in optional)
        return f'"{{" ({first})? "}}"' if optional else '"{}"'
    members = ' ", " '.join(_member(each, rules, choices) for each in required)
    extra = "".join(f' (", " {_member(each, rules, choices)})?' for each in optional)
    return f'"{{" {members}{extra} "}}"'


def _member(argument: Argument, rules: RuleList, choices: Choices) -> str:
    if argument.name in choices:
        value = _one_of(choices[argument.name], rules)
    elif argument.kind is ArgumentKind.INTEGER:
        value = "number"
    else:
        value = rf'"\"" char{{0,{argument.max_length}}} "\""'
    return rf'"\"{argument.name}\": " {value}'


def _one_of(values: Iterable[str], rules: RuleList) -> str:
    """Return the rule for one of these values, as JSON."""
    trie: Trie[str] | None = None
    for value in values:
        written = json.dumps(value, ensure_ascii=not value.isprintable())
        trie = with_text(trie, written, "")
    return rules.add(TrieRules[str](rules, str).body(trie) if trie else r'"\"\""')
