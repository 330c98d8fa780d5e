"""Command lines as a shell reads them, and patterns of commands that a task must not run.

A pattern is a glob over the words of one command; one that is written as a regular expression (`git push.*--force`)
stands for its equivalent globs. So the comparison takes linear time from each word. It does not stop an agent that
wants to evade it; the sandbox does.
"""

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache

from agent_workbench.core.text.amounts import quoted

_MAX_NESTED = 3
_OPERATORS = "();<>|&`\n"
_PART = re.compile(r"&?[<>]+[&|]?|[^<>]")
_ASSIGNMENT = re.compile(r"\w+=")
_PROGRAM = re.compile(r"(?!-)[\w./+-]+", re.ASCII)

MAX_CHARS = 10_000
"""Longer command lines are refused without comparison."""
MAX_PATTERN_CHARS = 500
_WILD = frozenset("*?[")
_PLAIN = re.compile(r"[\w ./:@=+,~%-]+")
# Options with or without a value, as in `git -C . --no-pager push`; bounded, because both readings are tried.
_OPTIONS = r"(?: -\S+(?: [^\s-]\S*)?){0,8}"
_BETWEEN = re.compile(r" *([;|&]) *")

_SIGNS = re.compile(
    r"\.[*+]|\\[sSwWdDbB.*+?()\[\]{}|^$/-]|^\^|\$$|\(\?|\([^()\s]*\|[^()\s]*\)|\)[?*+]|\]\+|\{[0-9]+(?:,[0-9]*)?\}|\[\^"
)
_REPEATED = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?")
_MAX_GLOBS = 8
_BLANK, _ANY = " ", "?"


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


def pattern_fault(pattern: str) -> tuple[str, str]:
    """Return what is wrong with a pattern and what to do about it; both empty for a valid one."""
    if not pattern.strip():
        return "expected a command, found nothing", "remove it"
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"expected at most {MAX_PATTERN_CHARS} characters, found {len(pattern)}", "make it shorter"
    if not looks_like_expression(pattern) or globs_of(pattern):
        return "", ""
    return (
        f"expected a glob, found the regular expression {quoted(pattern)}, which no glob expresses",
        "write it as a glob; `*` is any text, `?` any character, `[.]` a dot before `*`",
    )


def denial(line: str, patterns: Sequence[str]) -> str:
    """Return why these patterns deny a command line, empty if they do not."""
    if not patterns:
        return ""
    if len(line) > MAX_CHARS:
        return f"a command of {len(line):,} characters is too long to be compared with the denied commands"
    commands = tuple(commands_in(line))
    found = next((pattern for pattern in patterns if _matches(pattern, line, commands)), "")
    return f"this task does not allow {found!r} in a command" if found else ""


def _matches(pattern: str, line: str, commands: Sequence[tuple[str, str]]) -> bool:
    if not pattern.strip() or len(pattern) > MAX_PATTERN_CHARS:
        return False
    if not _PLAIN.fullmatch(pattern) and pattern in line:
        return True
    return any(_finds(glob, commands) for glob in _globs(pattern))


def _finds(glob: str, commands: Sequence[tuple[str, str]]) -> bool:
    compiled = _compiled(glob)
    whole = not {";", "|", "&"}.isdisjoint(glob)
    # All commands of a line share its chain; reading it again for each would make the search cubic.
    texts = dict.fromkeys(chain if whole else command for command, chain in commands)
    return any(map(compiled.search, texts))


@lru_cache(maxsize=256)
def _globs(pattern: str) -> tuple[str, ...]:
    """Return the globs that a pattern stands for: those of a regular expression, else itself."""
    return (globs_of(pattern) if looks_like_expression(pattern) else ()) or (pattern,)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression for a glob that starts at a word. Without wildcards it may end anywhere."""
    glob = _BETWEEN.sub(r"\1", " ".join(pattern.split()))
    # `translate` uses atomic groups, so each start position takes linear time.
    beginning = r"\A" if glob.startswith("*") else r"(?<!\w)" if re.match(r"\w", glob) else ""
    wanted = glob if _WILD & set(glob) else f"{glob}*"
    program, _, rest = wanted.partition(" ")
    if _WILD & set(program) or not re.match(r"\w", rest):
        return re.compile(beginning + translate(wanted))
    return re.compile(f"{beginning}{re.escape(program)}{_OPTIONS} {translate(rest)}")


def looks_like_expression(pattern: str) -> bool:
    """Return True if a pattern was written as a regular expression."""
    return bool(_SIGNS.search(pattern))


def globs_of(expression: str) -> tuple[str, ...]:
    """Return the globs equivalent to a regular expression; none if globs cannot express it."""
    try:
        globs, end = _alternatives(expression, 0)
    except ValueError:
        return ()
    if end != len(expression):
        return ()
    ends = expression.endswith("$") and not expression.endswith("\\$")
    whole = (re.sub(r"\*+", "*", glob if ends else f"{glob}*").strip() for glob in globs)
    return tuple(dict.fromkeys(each for each in whole if each.strip("*? ")))


def _alternatives(text: str, at: int) -> tuple[list[str], int]:
    """Return the globs of `a|b|…` from `at` on, and the index after them: a closing bracket or the end."""
    found: list[str] = []
    ways = [""]
    while at < len(text) and text[at] != ")":
        if text[at] == "|":
            found, ways, at = found + ways, [""], at + 1
            continue
        atoms, at = _atom(text, at)
        repeated = _REPEATED.match(text, at)
        if repeated:
            atoms, at = _repeated(atoms, repeated[0]), repeated.end()
        ways = ["".join(pair) for pair in itertools.product(ways, atoms)]
        if len(found) + len(ways) > _MAX_GLOBS:
            raise ValueError("too many globs")
    return found + ways, at


def _atom(text: str, at: int) -> tuple[list[str], int]:
    match text[at]:
        case "(":
            inner = at + 3 if text.startswith("(?:", at) else at + 1
            ways, end = _alternatives(text, inner)
            if text.startswith("?", inner) or not text.startswith(")", end):
                raise ValueError("no glob says that")
            return ways, end + 1
        case "[":
            end = text.find("]", at + 2)
            if end < 0:
                raise ValueError("a set without its end")
            content = text[at + 1 : end].replace("\\s", _BLANK).replace("\\", "")
            return [f"[{'!' + content[1:] if content.startswith('^') else content}]"], end + 1
        case "\\" if at + 1 < len(text):
            return [_escaped(text[at + 1])], at + 2
        case "^" | "$":
            return [""], at + 1
        case ".":
            return [_ANY], at + 1
    return [text[at]], at + 1


def _escaped(letter: str) -> str:
    if letter in "sS":
        return _BLANK if letter == "s" else _ANY
    if letter in "bB":
        return ""
    if letter in "wWdD":
        return _ANY
    return f"[{letter}]" if letter in "*?[" else letter


def _repeated(atoms: list[str], how: str) -> list[str]:
    if atoms == [_BLANK]:
        return atoms
    if atoms == [_ANY]:
        return ["?*" if how[0] == "+" else "*"]
    if how[0] == "?":
        return [*atoms, ""]
    return [f"{atom}*" for atom in atoms] if how[0] == "+" else ["*"]
