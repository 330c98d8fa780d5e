"""Literals in GBNF, the grammar notation of llama.cpp."""

import re

from agent_workbench.core.errors import UsageError

_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")


def literal(text: str) -> str:
    """Return `text` as a GBNF literal; raise `UsageError` for NUL and lone surrogates."""
    if _IMPOSSIBLE.search(text):
        raise UsageError(f"{text[:60]!r} holds a character that no grammar can: NUL or half of a surrogate pair")
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
