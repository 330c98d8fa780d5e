"""Completion of a new text that lacks a part of its piece: definitions and closing text stay, elisions are refused."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec import Struct

from agent_workbench.core.errors import PartialRewrite
from agent_workbench.core.patch.paths import shown

_COMMENTS = ("#", "//", "/*", "--", "<!--", ";", "%", "...", "…", "(...", "[...")
MOST_UNWRITTEN_LINES = 400
LEAST_CLOSING_LINES = 3
"""A shorter string or comment at the end of a file is not kept if a new text leaves it out."""
# A string or comment that is a statement of its own, at the start of a line; with its prefix in Python.
_BLOCKS = (('"""', '"""'), ("'''", "'''"), ("/*", "*/"), ("<!--", "-->"), ("{-", "-}"), ("=begin", "=end"))
_LINE_COMMENTS = ("#", "//", "--", ";", "%")
PYTHON = (".py", ".pyi")
_ABOVE_DOTS = (":", '"', "'", "(", "[", ",")
"""Ends of a line of Python below which `...` may stand alone: a signature, a docstring, an open bracket."""
_DOCTEST = (">>>", "...")
_REST = frozenset({"rest", "remaining", "remainder", "existing", "other", "previous", "unchanged", "omitted", "more"})
_GONE = frozenset({"unchanged", "same", "omitted", "before", "above", "code", "here"})
_DEFINITION = re.compile(
    r"(?P<indent>[ \t]*)"
    r"(?:(?:export|default|public|private|protected|static|async|abstract|final|pub(?:\([a-z]+\))?|unsafe)\s+)*"
    r"(?P<keyword>def|class|function|func|fn|struct|enum|trait|interface|module|impl|type)\s+(?:\([^)]*\)\s*)?"
    r"(?P<name>[A-Za-z_$][\w$]*)"
)
# Text that begins as a definition does, such as "type of the value" in a docstring: what follows the first word.
_ENGLISH = frozenset({"class", "function", "interface", "module", "type"})
_PROSE = re.compile(
    r"(?:an?|and|are|as|by|for|from|has|in|is|of|on|or|that|the|this|to|was|which|with)(?=$|[ \t,.]+(?:\w|$))"
    r"|[a-z_]+(?:[ \t]+(?!chan\b|extends\b|implements\b)[a-z]+){2}(?:[.,;:]?[ \t]|[.,;:]?$)"
)
_FUNCTIONS = frozenset({"def", "function", "func", "fn"})
# A body that says that there is none yet, a docstring or a comment beside it.
_NO_BODY = re.compile(
    r"(?:pass|\.\.\.|raise NotImplementedError\b.*|(?:throw|panic)\b.*(?:implement|todo).*|(?:todo|unimplemented)!.*)",
    re.IGNORECASE,
)
_DOCSTRING = re.compile(r'"{3}.*?"{3}|\'{3}.*?\'{3}|/\*.*?\*/', re.DOTALL)
_UNENDED = re.compile(r'("{3}|\'{3}).*', re.DOTALL)
_ABOVE = ("@", "#", "//", "/*", "*", "--")
"""First characters of lines directly above a definition that move with it: decorators, attributes, comments."""
_CLOSING = (")", "]", "}", "end", "{")
"""First characters of lines that end or continue a definition at its own indentation, such as `}` and `):`."""


class _Definition(Struct, frozen=True):
    """A definition in lines: its name, its indentation, the index of its own line, and what belongs to it.

    `block` is the index of the line that begins the block it is in, -1 for the outermost one.
    """

    name: str
    indent: str
    line: int
    lines: range
    block: int

    def encloses(self, other: "_Definition") -> bool:
        return other.line in self.lines and len(other.indent) > len(self.indent)


def with_left_out(
    name: str, path: str, old: Sequence[str], new: Sequence[str], *, whole: bool
) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the new text with what it left out of the old one, and a sentence for each repair.

    A small model often writes a part of what it was shown: only the functions that it changed, or all up to the last
    definition. `name` is how the piece is called, `whole` says that it is all of the file at `path`. Raises
    `PartialRewrite` for a comment or dots in place of lines, a text that ends at a signature, a definition whose place
    is not there any more, and a file that would be empty.
    """
    if not new and whole:
        raise PartialRewrite(
            f"the whole text of {shown(path)} would be gone",
            advice="give the file its whole new text; a file is removed by a diff only",
        )
    standing = {line.strip() for line in old}
    is_python = path.endswith(PYTHON)
    for at, line in enumerate(map(str.strip, new)):
        if line not in standing and (_stands_for_text(line) or (is_python and _left_out_here(new, at))):
            raise PartialRewrite(
                f"{name} leaves text out: {line[:80]!r}", advice="write every line of the piece, those that stay too"
            )
    if is_python and _opens_block(new) and not _opens_block(old):
        raise PartialRewrite(
            f"{name} ends where a body has to begin", advice="write every line of the piece, to its end"
        )
    lines, repairs = _with_definitions(name, path, old, new)
    if whole:
        lines, kept = _with_closing_text(path, old, lines)
        repairs += kept
    return lines, repairs


def _code(line: str) -> str:
    """Return a line of Python without its comment, as far as blanks are before it."""
    return re.split(r"(?:^|\s)#", line, maxsplit=1)[0].rstrip()


def _opens_block(lines: Sequence[str]) -> bool:
    """Return True for Python that ends with a line such as `def total(cart) -> int:`, comments below it left aside."""
    return next(filter(None, map(_code, reversed(lines))), "").endswith(":")


def _left_out_here(lines: Sequence[str], at: int) -> bool:
    """Return True for dots in place of lines of Python: they are no whole body, no index, and no line of a doctest."""
    line = lines[at]
    if line.strip() == "…":
        return True
    if line.strip() != "...":
        return False
    above = next(filter(None, (_code(lines[number]) for number in range(at - 1, -1, -1))), "")
    below = next((lines[number] for number in range(at + 1, len(lines)) if _code(lines[number])), "")
    alone = above.endswith(_ABOVE_DOTS) and _width(below) < _width(line)
    return not alone and not above.lstrip().startswith(_DOCTEST)


def _stands_for_text(line: str) -> bool:
    """Return True for a comment in place of lines that were left out, such as `# ... rest unchanged`."""
    if not line.startswith(_COMMENTS):
        return False
    words, dots = set(re.findall("[a-z]+", line.lower())), "..." in line or "…" in line
    if not words:
        return dots and line not in {"...", "…"}
    rest = words & _REST
    return bool(rest) and (dots or (rest != {"existing"} and bool(words & _GONE) and len(words) <= 8))


def defined_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names that these lines define, for the languages whose definitions begin with a keyword."""
    return tuple(found["name"] for line in lines if (found := _defined(line)))


def is_unwritten(lines: Sequence[str]) -> bool:
    """Return True if at least half of the functions in these lines have no body yet, such as `pass` alone.

    Long code is written code.
    """
    if len(lines) > MOST_UNWRITTEN_LINES:
        return False
    functions = [each for each in _definitions(lines) if _is_function(lines[each.line])]
    bodies = [lines[each.line + 1 : each.lines.stop] for each in functions]
    return 0 < len(bodies) <= 2 * sum(map(_has_no_body, bodies))


def is_heading(lines: Sequence[str]) -> bool:
    """Return True for Python that is the beginning of one definition alone: its own line, and what describes it.

    A long docstring is searched in parts, so it may not end in these lines.
    """
    said = map(str.strip, _UNENDED.sub("", _DOCSTRING.sub("", "\n".join(lines))).split("\n"))
    code = [line for line in said if line and not line.startswith(("#", "@"))]
    return len(code) == 1 and code[0].endswith(":") and _defined(code[0]) is not None


def _is_function(line: str) -> bool:
    found = _defined(line)
    return found is not None and found["keyword"] in _FUNCTIONS


def _has_no_body(lines: Sequence[str]) -> bool:
    said = map(str.strip, _DOCSTRING.sub("", "\n".join(lines)).split("\n"))
    code = [line for line in said if line and not line.startswith((*_LINE_COMMENTS, *_CLOSING))]
    return bool(code) and all(map(_NO_BODY.fullmatch, code))


def _defined(line: str) -> re.Match[str] | None:
    found = _DEFINITION.match(line)
    is_prose = found and found["keyword"] in _ENGLISH and _PROSE.match(line, found.start("name"))
    return None if is_prose else found


def _with_definitions(
    name: str, path: str, old: Sequence[str], new: Sequence[str]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the new text with the definitions that it left out, each where it was among the others.

    Nothing is kept of a block in which the new text has as many new definitions: they may stand in place of the old.
    """
    definitions = _definitions(old)
    lost = _lost(definitions, _definitions(new))
    if not lost:
        return new, ()
    lines, kept = list(new), range(0)
    for definition in definitions:
        if definition.name not in lost or definition.line in kept:
            continue
        kept = definition.lines
        place = _place(definition, definitions, old, lines)
        if place is None:
            raise PartialRewrite(
                f"{name} lost {', '.join(lost[:5])}",
                advice=f"{shown(path)} has to stay complete: write all definitions of the piece",
            )
        above = _blanks(reversed(old[: kept.start])) if place and lines[place - 1].strip() else 0
        below = _blanks(old[kept.stop :]) if place < len(lines) and lines[place].strip() else 0
        lines[place:place] = [""] * above + list(old[kept.start : kept.stop]) + [""] * below
    return lines, (f"{', '.join(lost[:5])} stayed as before: the new text of {name} left it out",)


def _lost(before: Sequence[_Definition], after: Sequence[_Definition]) -> list[str]:
    """Return the names that are defined before and not after, without those that may have new ones in their place."""
    blocks, new_blocks = (
        {each.name: next((other.name for other in reversed(texts) if other.encloses(each)), "") for each in texts}
        for texts in (before, after)
    )
    gone = [name for name in blocks if name not in new_blocks]
    added = Counter(block for name, block in new_blocks.items() if name not in blocks)
    left = Counter(blocks[name] for name in gone)
    lost: list[str] = []
    for name in gone:
        block = blocks[name]
        stands = not block or block in new_blocks or block in lost
        if after and stands and added[block] < left[block]:
            lost.append(name)
    return lost


def _blanks(lines: Iterable[str]) -> int:
    """Return how many blank lines come first."""
    return sum(1 for _ in takewhile(lambda line: not line.strip(), lines))


def _definitions(lines: Sequence[str]) -> list[_Definition]:
    """Return the definitions of these lines, but for those within a function."""
    found: list[_Definition] = []
    function = range(0)
    for at, line in enumerate(lines):
        if at not in function and (match := _defined(line)):
            indent = match["indent"]
            found.append(_Definition(match["name"], indent, at, _extent(lines, at, indent), _block(lines, at, indent)))
            function = found[-1].lines if match["keyword"] in _FUNCTIONS else function
    return found


def _extent(lines: Sequence[str], at: int, indent: str) -> range:
    """Return the indices of the lines of a definition, without blank ones around it."""
    start, end = at, at + 1
    while start and _belongs_below(lines[start - 1], indent):
        start -= 1
    for line in range(at + 1, len(lines)):
        text = lines[line].strip()
        if text and not (lines[line].startswith((indent + " ", indent + "\t")) or _closes(lines[line], indent)):
            break
        end = line + 1 if text else end
    return range(start, end)


def _block(lines: Sequence[str], at: int, indent: str) -> int:
    """Return the index of the nearest line above that is indented less, -1 if there is none."""
    above = range(at - 1, -1, -1) if indent else ()
    return next((each for each in above if lines[each].strip() and _width(lines[each]) < len(indent)), -1)


def _width(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _belongs_below(line: str, indent: str) -> bool:
    text = line.lstrip(" \t")
    return text.startswith(_ABOVE) and len(indent) <= _width(line) <= len(indent) + 1


def _closes(line: str, indent: str) -> bool:
    return line.startswith(tuple(indent + each for each in _CLOSING))


def _place(
    lost: _Definition, definitions: Sequence[_Definition], old: Sequence[str], lines: Sequence[str]
) -> int | None:
    """Return the index at which a lost definition belongs in the new lines, None if its block is not to be found."""
    parent = next((each for each in reversed(definitions) if each.encloses(lost)), None)
    is_outermost = lost.block < 0 or (parent is not None and _width(old[lost.block]) == len(parent.indent))
    siblings = [each for each in definitions if (each.indent, each.block) == (lost.indent, lost.block)]
    standing = _definitions(lines)
    if parent is not None:
        parent = next((each for each in standing if (each.name, each.indent) == (parent.name, parent.indent)), None)
        inner = [each for each in standing if parent is not None and parent.encloses(each)]
        if parent is None or any(each.indent != lost.indent for each in inner[:1]):
            return None  # Its class is gone, or indented in another way.
    there: dict[str, _Definition] = {}
    twice = set()
    for each in standing:
        if each.indent == lost.indent and _within(each, parent):
            if there.setdefault(each.name, each).block != each.block:
                twice.add(each.name)  # Each branch of a condition has one.
            there[each.name] = each
    known = there.keys() - twice
    earlier = [there[each.name] for each in siblings if each.line < lost.line and each.name in known]
    later = [there[each.name] for each in siblings if each.line > lost.line and each.name in known]
    if earlier:
        return earlier[-1].lines.stop
    if later:
        return later[0].lines.start
    if not is_outermost:
        return None
    return parent.lines.stop if parent is not None else len(lines)


def _within(definition: _Definition, parent: _Definition | None) -> bool:
    return parent is None or parent.encloses(definition)


def _with_closing_text(path: str, old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the new text of a whole file with the closing string or comment that it lost, and the repair.

    A small model often ends a file with its last definition. Code at the end is not kept: it may be meant to go.
    """
    start = _closing_text(old)
    text = [line.strip() for line in old[start:] if line.strip()]
    standing = {line.strip() for line in new}
    words = [line for line in text if any(map(str.isalpha, line))]
    follows = any(line.strip() for line in old[:start])
    if not new or not follows or len(text) < LEAST_CLOSING_LINES or any(line in standing for line in words):
        return new, ()
    body = list(new)
    while body and not body[-1].strip():
        body.pop()
    while start and not old[start - 1].strip():
        start -= 1
    return [*body, *old[start:]], (f"the text at the end of {shown(path)} was kept: the new text left it out",)


def _closing_text(lines: Sequence[str]) -> int:
    """Return the index at which the string or comment of many lines begins that ends a file; its length without one."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if not end:
        return len(lines)
    last = lines[end - 1].strip()
    for opening, closing in _BLOCKS:
        if last.endswith(closing) and last.count(closing) == 1:
            openings = (at for at in range(end - 2, -1, -1) if opening in lines[at])
            start = next(openings, len(lines))
            alone = start < len(lines) and lines[start].startswith(opening)
            return start if alone and lines[start].count(closing) == int(opening == closing) else len(lines)
    start = end
    while start and lines[start - 1].startswith(_LINE_COMMENTS):
        start -= 1
    return start if start < end else len(lines)
