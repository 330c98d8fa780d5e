"""Builder of the GBNF grammars for a step, a reflexion and a summary.

GBNF is llama.cpp's grammar format (its `grammars/README.md`). Every repetition is bounded, and so is an answer; only
the length of a reply in a chat is left to the token limit of its request.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from agent_workbench.core.patch.grammar.grammar_rules import GrammarRules
from agent_workbench.core.tools.arguments import Choices
from agent_workbench.core.tools.spec import ToolSpec, read_spec_schema
from agent_workbench.engine.answer.argument_grammar import ArgumentRules

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


def step_grammar(
    specs: Iterable[ToolSpec],
    diff: Sequence[str] = (),
    choices: Mapping[str, Choices] = MappingProxyType({}),
    pieces: Sequence[str] = (),
    *,
    replies: bool = False,
) -> str:
    """Return the grammar whose sentences are the steps that may be taken with these tools.

    With `replies` a reply to the user is a sentence too. `diff` are the rules of the diffs that may be written
    (`core.patch.grammar`), `pieces` those of the pieces that may be rewritten (`core.patch.rewrite`); without them no
    tool that takes such a body is offered. `choices` holds, by tool, the values that its arguments may have now.
    """
    rules = GrammarRules("v")
    values = ArgumentRules(rules)
    bodies = {False: diff, True: pieces}
    offered = [(_rule_name(spec, at), spec) for at, spec in enumerate(specs) if not spec.raw or bodies[spec.fenced]]
    # Some models only go on after a blank line.
    blank = r' "\n"?' if pieces else ""
    calls = rf'"Thought: " thought{blank} "\nAction: " action'
    roots = [calls] if not replies else [*([calls] if offered else []), r'("Thought: " thought "\n")? "Answer: " reply']
    thought = SENTENCES if pieces else (rf"thought ::= text{{1,{THOUGHT_CHARS}}}",)
    lines = ["root ::= " + " | ".join(roots), *thought]
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
