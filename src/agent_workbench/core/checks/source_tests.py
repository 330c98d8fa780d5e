"""Tests inside the source files that they check: their blocks, read by the simple syntax that each language has."""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from agent_workbench.core.repo.path_kinds import is_test

_PREPROCESSED = (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".mm", ".cs")
_MACRO = re.compile(r"\b(?!HAVE_)\w*?(?<![A-Za-z])(?:SELF|UNIT)?TEST(?:S|ING|ER)?(?![A-Za-z])\w*", re.IGNORECASE)
_MOST_OUTER = 100
"""Conditions around a block that are compared, from the outermost and from the innermost."""
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif|define|undef)\b[ \t]*(\w*)")
_NEGATION = re.compile(r"!\s*(?:defined\s*)?\(?\s*$")
_BLOCKS = {
    ".rs": re.compile(r"^[ \t]*#\[.*(?:\s*^[ \t]*#\[.*)*", re.MULTILINE),
    ".zig": re.compile(r"^[ \t]*test\b(?=[^\n;=(]*\{)", re.MULTILINE),
    ".d": re.compile(r"^[ \t]*(?:@\w+[ \t]+)*unittest\b", re.MULTILINE),
}
"""Patterns of the line with which a block of tests begins, by the suffix of the file."""
_RUST_TEST = re.compile(r"#\[(?:cfg(\([^\n\]]{0,300})\]|(?:\w+::)*\w*test\w*\b)")
_RUST_CONDITION = re.compile(r"(\w*)\(([^()]*)\)")
_RUST_FILE = re.compile(r"^[ \t]*#!\[cfg.*", re.MULTILINE)
_RUST_EXAMPLE = re.compile(
    r"^[ \t]*//[/!][ \t]*```(.*)\n((?:[ \t]*//[/!](?![ \t]*```).*\n)*)(?:[ \t]*//[/!][ \t]*```)?", re.MULTILINE
)
_RUST_RUN = re.compile(r"(?:rust|no_run|should_panic|compile_fail|edition\d+|[\s,])*")
_RUST_DEFINITION = re.compile(
    r"^[^/\n]*?\b(?:fn|struct|enum|trait|mod|type|union|macro_rules!)[ \t]+(\w+)", re.MULTILINE
)
_BRACKETS = re.compile(r"[][(){};]")
_QUOTED = re.compile(
    r"//(?:\\\n|[^\n])*|/\*|r(#*)\".*?(?:\"\1|\Z)|R\"(\w*)\(.*?(?:\)\2\"|\Z)|\"(?:\\.|[^\"\\])*\"|'(?:\\.[^\n']*|[^\\'\n])'",
    re.DOTALL,
)
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_DOCTEST = re.compile(r"^[ \t]*>>> .*(?:\n(?![ \t]*(?:$|>>> ))(?!.*(?:\"\"\"|''')).*)*", re.MULTILINE)
_PYTHON_HEAD = r"(?:(?:async[ \t]+)?def[ \t]+test|class[ \t]+(?>\w*Test)).*\n(?:(?:[ \t)].*)?\n)*"
# Decorators alone match too, so that none of them is tried twice.
_PYTHON_TEST = re.compile(rf"^(?:(?:@.*\n)++(?:{_PYTHON_HEAD})?|{_PYTHON_HEAD})", re.MULTILINE)


def changed_tests(path: str, before: str | None, after: str | None) -> tuple[str, ...]:
    """Return the names of the tests in a source file that a change alters or removes; new ones are no change."""
    if before is None or before == after or is_test(path):
        return ()
    now = _tests(path, after or "")
    return tuple(name for name, text in _tests(path, before).items() if now.get(name) != text)


def _tests(path: str, text: str) -> dict[str, list[str]]:
    """Return the texts of the tests in a source file, with what switches them on, by their names."""
    suffix = path[path.rfind(".") :].lower()
    found: dict[str, list[str]] = {}
    pairs = _python(text) if suffix == ".py" else ()
    if suffix in _PREPROCESSED:
        pairs = _conditional(_masked(text).split("\n"), text.split("\n"))
    elif suffix in _BLOCKS:
        pairs = _blocks(suffix, _masked(text, nested=suffix == ".rs"), text)
    for name, piece in pairs:
        found.setdefault(name, []).append(piece)
    return found


def _conditional(masked: list[str], lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each line that is compiled for tests alone, with the conditions around it, and the macros that they ask."""
    stack: list[str] = []
    inside: list[str] = []
    switches: dict[str, list[str]] = {}
    names: dict[str, None] = {}
    for code, line in zip(masked, lines, strict=True):
        directive = _DIRECTIVE.match(code)
        word = directive[1] if directive is not None else ""
        closed = stack.pop() if stack and word in {"elif", "else", "endif"} else ""
        del inside[len(stack) :]
        if word == "else":
            stack.append(f"not {closed}")
        elif word in {"if", "ifdef", "ifndef", "elif"}:
            stack.append(" ".join(code.split()))
        elif directive is not None and word in {"define", "undef"} and _MACRO.fullmatch(directive[2]):
            switches.setdefault(directive[2], []).append(" ".join(code.split()))
        if len(stack) > len(inside):
            outer = inside[-1] if inside else ""
            inside.append(outer or (f"`{stack[-1]}`" if _is_for_tests(stack[-1]) else ""))
            if inside[-1] and not outer:
                names[inside[-1]] = None
                yield inside[-1], "\n".join((*stack[:_MOST_OUTER], *stack[-_MOST_OUTER:]))
        if inside and inside[-1]:
            yield inside[-1], line
    switched = {macro: str(hash("\n".join(told))) for macro, told in switches.items()}
    for name in names:
        yield name, " ".join(switched.get(word, "") for word in re.findall(r"\w+", name))


def _is_for_tests(condition: str) -> bool:
    """Return True for a condition that only a macro of tests satisfies, in each of its alternatives."""
    if "||" in condition:
        return all(map(_is_for_tests, condition.split("||")))
    macro = _MACRO.search(condition)
    if macro is None:
        return False
    negations = ("not " in condition[:4], "ifndef" in condition, _NEGATION.search(condition[: macro.start()]))
    return sum(map(bool, negations)) % 2 == 0


def _blocks(suffix: str, masked: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks in braces that are for tests, with their depth: one that is moved into another may be dead."""
    end, counted, depth = 0, 0, 0
    file = _RUST_FILE.findall(masked)
    for begin in _BLOCKS[suffix].finditer(masked):
        if begin.start() < end or (suffix == ".rs" and not any(map(_is_rust_test, _RUST_TEST.finditer(begin[0])))):
            continue
        head, end = _block_ends(masked, begin.start())
        depth += masked.count("{", counted, begin.start()) - masked.count("}", counted, begin.start())
        counted = begin.start()
        name = " ".join(text[begin.start() : head].split())[:80]
        yield f"`{name}`", f"{file} {depth} {text[begin.start() : end]}"
    if suffix == ".rs":
        yield from _rust_examples(text)


def _is_rust_test(attribute: re.Match[str]) -> bool:
    """Return True for an attribute that no build but that of tests satisfies."""
    condition = attribute[1]
    while condition and (part := _RUST_CONDITION.search(condition)) is not None:
        asked = [each.strip() in {"test", "doctest"} for each in part[2].split(",") if each.strip()]
        holds = asked and (all(asked) if part[1] == "any" else any(asked) and part[1] != "not")
        condition = f"{condition[: part.start()]}{'test' if holds else 'other'}{condition[part.end() :]}"
    return condition is None or condition.strip() == "test"


def _rust_examples(text: str) -> Iterator[tuple[str, str]]:
    """Yield the examples that are run, by the definition that they are above."""
    defined = [(each.start(), each[1]) for each in _RUST_DEFINITION.finditer(text)]
    for example in _RUST_EXAMPLE.finditer(text):
        if _RUST_RUN.fullmatch(example[1]):
            at = bisect(defined, (example.start(), ""))
            inner = at == len(defined) or example[0].lstrip().startswith("//!")
            name = "the module" if inner else defined[at][1]
            yield f"the example in the comments of {name}", example[1] + example[2]


def _block_ends(masked: str, at: int) -> tuple[int, int]:
    """Return where the head of an item ends, and where the item does: behind its braces or a semicolon."""
    depth, head = 0, 0
    for mark in _BRACKETS.finditer(masked, at):
        if not depth and mark[0] in "{;":
            head = mark.start()
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth <= 0 and mark[0] in "};":
            return head or mark.start(), mark.end()
    return head or len(masked), len(masked)


def _python(text: str) -> Iterator[tuple[str, str]]:
    """Yield the doctests by the definition that they are in, and the functions and classes of tests."""
    defined = [(each.start(), each[1]) for each in _DEFINITION.finditer(text)]
    count = Counter(name for _, name in defined)
    at = 0
    for example in _DOCTEST.finditer(text):
        while at < len(defined) and defined[at][0] < example.start():
            at += 1
        name = defined[at - 1][1] if at else ""
        # A second definition of this name would hide the one with the doctest.
        yield f"the doctest of {name or 'the module'}", f"{count[name]} {example[0]}"
    for test in _PYTHON_TEST.finditer(text):
        if (head := _DEFINITION.search(test[0])) is not None:
            yield f"`{head[1]}`", test[0].rstrip()


def _masked(text: str, *, nested: bool = False) -> str:
    """Return a text with spaces in place of comments and of quoted text. `nested`: comments may hold comments."""
    kept: list[str] = []
    at = 0
    while (quoted := _QUOTED.search(text, at)) is not None:
        end = _comment_end(text, quoted.end(), nested=nested) if quoted[0] == "/*" else quoted.end()
        kept += (text[at : quoted.start()], re.sub(r"[^\n]", " ", text[quoted.start() : end]))
        at = end
    return "".join((*kept, text[at:]))


def _comment_end(text: str, at: int, *, nested: bool) -> int:
    depth = 1
    for mark in _COMMENT_ENDS.finditer(text, at):
        depth += int(nested) if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(text)
