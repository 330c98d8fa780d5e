"""Grammars in GBNF, llama.cpp's notation: one for a single sentence, and room for a thought before any answer."""

import re
from collections.abc import Iterable
from enum import StrEnum

from agent_workbench.adapters.llama_cpp.token_counts import Token
from agent_workbench.core.errors import UsageError
from agent_workbench.core.patch.grammar_rules import literal

THOUGHT_START = "<think>"
THOUGHT_END = "</think>"

# Literals, character classes and comments, in which a name is not a reference to a rule; then names.
_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*|[A-Za-z0-9-]+', re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9-]+")
# Text that does not end the thought. It also excludes `</thi` and `<` right after `</`, which nobody writes.
_THOUGHT = r'( [^<] | "<"+ ( [^/<] | "/" ( [^t<] | "t" ( [^h<] | "h" [^i<] ) ) ) )* "<"*'


class Thinking(StrEnum):
    """A chat template's treatment of thoughts: none, it opens one itself, or it lets the model open one."""

    NONE = "none"
    OPENED = "opened"
    OFFERED = "offered"


def sentence_grammar(text: str) -> str:
    """Return the grammar whose only sentence is `text`; raise `UsageError` for text that GBNF cannot express."""
    return f"root ::= {literal(text)}\n"


def tokens_grammar(tokens: Iterable[Token]) -> str:
    """Return the grammar whose only sentence is these tokens; raise `UsageError` if they end within a character.

    Tokens that are not whole characters are given as text, which the server may spell in other tokens.
    """
    said: list[str] = []
    part = b""
    for token in tokens:
        part += token.data
        try:
            text = part.decode()
        except UnicodeDecodeError:
            continue
        said.append(f"<[{token.id}]>" if part == token.data else literal(text))
        part = b""
    if part:
        raise UsageError(f"the tokens end within a character, with {part!r}")
    return f"root ::= {' '.join(said)}\n"


def with_prefix(grammar: str, prefix: str) -> str:
    """Return a grammar whose sentences match `prefix` (the right side of a rule) and then `grammar`."""
    names = set(_NAME.findall(grammar))
    inner = "answer"
    while inner in names:
        inner += "-x"
    renamed = _TOKENS.sub(lambda found: inner if found[0] == "root" else found[0], grammar)
    return f"root ::= {prefix} {inner}\n{renamed}"


def with_thought(grammar: str, thinking: Thinking) -> str:
    """Return `grammar` with room for a thought if the template has one; else the answer would be taken for it."""
    ending = f'{_THOUGHT} {literal(THOUGHT_END)} "\\n"? "\\n"?'
    match thinking:
        case Thinking.NONE:
            return grammar
        case Thinking.OPENED:
            return with_prefix(grammar, ending)
        case Thinking.OFFERED:
            return with_prefix(grammar, f"( {literal(THOUGHT_START)} {ending} )?")
