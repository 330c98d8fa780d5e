"""Command lines as a shell reads them: their simple commands and the programs these start."""

import re
import shlex
from collections.abc import Iterator

_MAX_NESTED = 3
_OPERATORS = "();<>|&`\n"
_PART = re.compile(r"&?[<>]+[&|]?|[^<>]")
_ASSIGNMENT = re.compile(r"\w+=")
_PROGRAM = re.compile(r"(?!-)[\w./+-]+", re.ASCII)


def programs_of(line: str) -> tuple[str, ...]:
    """Return the program of each simple command, `python -m NAME` for a module. Quoted programs are left out."""
    found: list[str] = []
    words: list[str] = []
    redirects = False
    for word, operator in [*_words(line), (";", True)]:
        if not operator:
            if not redirects and (words or not _ASSIGNMENT.match(word)):
                words.append(word)
            redirects = False
        elif "<" in word or ">" in word:
            redirects = True
        else:
            if words and _PROGRAM.fullmatch(words[0]):
                module = words[1:2] == ["-m"] and len(words) > 2 and words[0].rpartition("/")[2].startswith("python")
                found.append(" ".join(words[:3]) if module else words[0])
            words, redirects = [], False
    return tuple(dict.fromkeys(found))


def left_running(line: str) -> str:
    """Return the command before a final `&`, with which a shell leaves it running; empty for any other line."""
    line = line.rstrip()
    command, sign = line[:-1], line[-1:]
    leaves = sign == "&" and not command.endswith("\\") and _tokens(line)[-1:] == ["&"]
    return command if leaves and command.strip() else ""


def commands_in(line: str, nested: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each simple command as words joined by spaces, with the whole line in that spelling.

    Commands inside quotes are yielded too, up to a depth of `nested`.
    """
    words = _words(line)
    simple: list[list[str]] = [[]]
    chain = ""
    for word, operator in words:
        if operator and "<" not in word and ">" not in word:
            simple.append([])
            chain = chain.rstrip(" ") + (";" if word == "\n" else word)
        else:
            simple[-1].append(word)
            chain += f"{word} "
    for each in filter(None, simple):
        yield " ".join(each), chain.strip()
    if nested < _MAX_NESTED:
        inner = (_ASSIGNMENT.sub("", word, count=1) for word, operator in words if not operator)
        for word in inner:
            if any(each.isspace() or each in _OPERATORS for each in word):
                yield from commands_in(word, nested + 1)


def _words(line: str) -> list[tuple[str, bool]]:
    """Return the shell words of a line, each with True if it is an operator."""
    found: list[tuple[str, bool]] = []
    for token in _tokens(line):
        if token and set(token) <= set(_OPERATORS):
            found += ((part, True) for part in _PART.findall(token))
        else:
            found.append((" ".join(token.split(" ")), False))
    return found


def _tokens(line: str) -> list[str]:
    """Return words and runs of operators, as a shell divides a line."""
    lexer = shlex.shlex(line.replace("\\\n", ""), posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote
        return re.findall(r"[^\s'\"();<>|&`]+|[();<>|&`\n]+", line)
