"""Patterns of commands that a task must not run, and their comparison with a command line.

A pattern is a glob over the words of one command; one that is written as a regular expression (`git push.*--force`)
stands for its equivalent globs. So the comparison takes linear time from each word. It does not stop an agent that
wants to evade it; the sandbox does.
"""

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

from agent_workbench.core.rules.command_lines import commands_in
from agent_workbench.core.rules.expression_globs import globs_of, looks_like_expression
from agent_workbench.core.text.messages import quoted

MAX_CHARS = 10_000
"""Longer command lines are refused without comparison."""
MAX_PATTERN_CHARS = 500
_WILD = frozenset("*?[")
_PLAIN = re.compile(r"[\w ./:@=+,~%-]+")
# Options with or without a value, as in `git -C . --no-pager push`; bounded, because both readings are tried.
_OPTIONS = r"(?: -\S+(?: [^\s-]\S*)?){0,8}"
_BETWEEN = re.compile(r" *([;|&]) *")


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
