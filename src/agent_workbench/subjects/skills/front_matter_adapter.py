"""Lenient parser of the front matter of a `SKILL.md`: YAML between two lines of `---`."""

import re
from collections.abc import Iterator, Mapping

import yaml
from msgspec import Struct

from agent_workbench.core.errors import SkillError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line, without_chat_markers

NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_WORD, MOST_WORDS = 64, 1024, 80, 50
MOST_HEAD_CHARS = 16_384
MOST_PROBLEMS = 10
MOST_NESTED = 500
_NESTING = "[{-?:"
_IGNORED_KEYS = ("license", "compatibility")
_KEYS = ("name", "description", "metadata", "allowed-tools", *_IGNORED_KEYS)
_FENCE = "---"
_LAST_FENCE = re.compile(rf"^{_FENCE}[ \t]*$", re.MULTILINE)
# The front matter begins in the second line of the file; YAML counts from 0.
_FIRST_LINE = 2
_UNQUOTED = re.compile(r"(?P<key>[A-Za-z][A-Za-z-]*):[ \t]+(?P<value>[^\s\"'\[{|>&*!%@`#].*)")


class SkillHead(Struct, frozen=True):
    """Front matter of a skill: its description, and the metadata by which it may be chosen.

    `tokens` are declared (0: not), `role` is the one part of the workbench that uses the skill.
    """

    description: str
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    role: str = ""
    tokens: int = 0


class ParsedSkill(Struct, frozen=True):
    """A skill's file. `problems` begin with file and line; none of them prevents its use."""

    head: SkillHead
    body: str
    problems: tuple[str, ...] = ()


class _Fault(Exception):
    """Fault in a front matter, with its line (from 1)."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


_Entries = Mapping[str, yaml.Node]


def parse_skill(text: str, file: str, folder: str) -> ParsedSkill:
    """Return the skill in `folder`; raise `SkillError` with `file` and line if it cannot be used."""
    try:
        head, body = _divide(text)
        reading = _Reading(head, folder)
        found = reading.head()
    except _Fault as fault:
        raise SkillError(
            f"{file}:{fault.line}: {fault}",
            advice="a SKILL.md begins with a line ---, then `name:` and `description:`, then a line --- again",
        ) from fault
    problems = sorted(reading.problems)[:MOST_PROBLEMS]
    return ParsedSkill(found, body.strip("\n"), tuple(f"{file}:{line}: {what}" for line, what in problems))


def is_skill_name(name: str) -> bool:
    """Return True for a valid name of a skill."""
    return len(name) <= LONGEST_NAME and bool(NAME.fullmatch(name))


def _divide(text: str) -> tuple[str, str]:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first, _, rest = text.partition("\n")
    if first.rstrip() != _FENCE:
        raise _Fault(1, f"expected a line {_FENCE} and the front matter after it")
    end = _LAST_FENCE.search(rest)
    if end is None:
        raise _Fault(text.count("\n") + 1, f"expected a line {_FENCE} that ends the front matter")
    head = rest[: max(0, end.start() - 1)]
    if len(head) > MOST_HEAD_CHARS:
        raise _Fault(_FIRST_LINE, f"the front matter has {len(head):,} characters; the limit is {MOST_HEAD_CHARS:,}")
    return head, rest[end.end() + 1 :]


class _Reading:
    """Reader of one front matter; `problems` collects lines and texts of what is ignored."""

    def __init__(self, text: str, folder: str) -> None:
        self._folder = folder
        self.problems: list[tuple[int, str]] = []
        self._entries = self._mapping(self._compose(text), "the front matter")

    def head(self) -> SkillHead:
        """Return the front matter; raise `_Fault` without a description."""
        description = self._description()
        self._check_name()
        for key, node in self._entries.items():
            if key == "allowed-tools":
                self._warn(_line(node), "'allowed-tools' grants nothing here: approvals are yours")
            elif key not in _KEYS:
                self._warn(_line(node), f"unknown key {quoted(key)} is ignored")
        metadata = self._metadata()
        domains, languages, patterns = (self._words(metadata, key) for key in ("domains", "languages", "patterns"))
        role = next(iter(self._words(metadata, "role")), "")
        return SkillHead(description, domains, languages, patterns, role, self._tokens(metadata))

    def _warn(self, line: int, what: str) -> None:
        self.problems.append((line, what))

    def _compose(self, text: str) -> yaml.Node:
        try:
            node = _parse(text)
        except _Fault as fault:
            # Many write `description: Use this: …` without quotes.
            try:
                node = _parse("\n".join(map(_with_quotes, text.split("\n"))))
            except _Fault:
                raise fault from None
            self._warn(fault.line, f"{fault}; read as if its values were in quotes")
        if node is None:
            raise _Fault(_FIRST_LINE, "the front matter is empty")
        return node

    def _mapping(self, node: yaml.Node, what: str) -> _Entries:
        if not isinstance(node, yaml.MappingNode):
            raise _Fault(_line(node), f"{what}: expected keys with values")
        entries: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = _text(key, "a key")
            if name in entries:
                self._warn(_line(key), f"{quoted(name)} stands there twice; the first one counts")
            entries.setdefault(name, value)
        return entries

    def _description(self) -> str:
        node = self._entries.get("description")
        if node is None:
            raise _Fault(_FIRST_LINE, "'description' is missing")
        said = _text(node, "description")
        if not said.strip():
            raise _Fault(_line(node), "description: expected a text, found an empty one")
        if len(said) > LONGEST_DESCRIPTION:
            most = f"the limit is {LONGEST_DESCRIPTION:,}, and the rest is not shown"
            self._warn(_line(node), f"description: has {len(said):,} characters; {most}")
        return _inert(said, LONGEST_DESCRIPTION)

    def _check_name(self) -> None:
        node = self._entries.get("name")
        try:
            said = _text(node, "name") if node is not None else ""
        except _Fault as fault:
            self._warn(fault.line, f"{fault}; the folder's name is used")
            return
        if node is None:
            self._warn(_FIRST_LINE, "'name' is missing; the folder's name is used")
        elif said != self._folder:
            self._warn(_line(node), f"the name is {quoted(said)}; the folder's name {quoted(self._folder)} is used")

    def _metadata(self) -> _Entries:
        node = self._entries.get("metadata")
        try:
            return self._mapping(node, "metadata") if node is not None else {}
        except _Fault as fault:
            self._warn(fault.line, f"{fault}; it is ignored")
            return {}

    def _words(self, metadata: _Entries, key: str) -> tuple[str, ...]:
        """Return a list of words, given as a YAML list or as one text with commas."""
        node = metadata.get(key)
        if node is None:
            return ()
        try:
            each = list(_items(node, f"metadata.{key}"))
        except _Fault as fault:
            self._warn(fault.line, f"{fault}; it is ignored")
            return ()
        if len(each) > MOST_WORDS:
            self._warn(_line(node), f"metadata.{key}: has {len(each)} words; the first {MOST_WORDS} count")
        return tuple(filter(None, (_inert(word, LONGEST_WORD) for word in each[:MOST_WORDS])))

    def _tokens(self, metadata: _Entries) -> int:
        node = metadata.get("tokens")
        if node is None:
            return 0
        said = node.value if isinstance(node, yaml.ScalarNode) else ""
        if not (said.isascii() and said.isdigit() and 0 < len(said) < 10):
            self._warn(_line(node), "metadata.tokens: expected a number; it is ignored")
            return 0
        return int(said)


def _parse(text: str) -> yaml.Node | None:
    try:
        # The loader in C takes a tenth of the time, and a deeply nested document the whole stack of its thread.
        flat = sum(map(text.count, _NESTING)) <= MOST_NESTED and yaml.__with_libyaml__
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader if flat else yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise _Fault(line + _FIRST_LINE, f"not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        what = (str(error) or "nested too deeply").split("\n", 1)[0]
        raise _Fault(_FIRST_LINE, f"not YAML: {what}") from error
    return node


def _with_quotes(line: str) -> str:
    found = _UNQUOTED.fullmatch(line)
    if found is None:
        return line
    value = found["value"].rstrip().replace("'", "''")
    return f"{found['key']}: '{value}'"


def _items(node: yaml.Node, what: str) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        yield from (_text(each, what) for each in node.value)
    else:
        yield from (word.strip() for word in _text(node, what).split(","))


def _text(node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _Fault(_line(node), f"{what}: expected a text")
    if node.tag == "tag:yaml.org,2002:null":
        raise _Fault(_line(node), f"{what}: expected a text, found nothing")
    return str(node.value)


def _inert(text: str, limit: int) -> str:
    """Return a text on one line, without control characters and markers of chat templates."""
    return sanitize_line(without_chat_markers(text), limit)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + _FIRST_LINE
