"""Specs of tools: what a model, a person and a journal know of a tool without the tool itself."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from agent_workbench.core.errors import JournalError
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line, without_chat_markers
from agent_workbench.core.tools.schema import SchemaError, SchemaReading, read_schema

BUILTIN = "builtin"
MCP = "mcp:"
"""Beginning of the source of a tool that an MCP server brings."""
FINISH, NOTE = "finish", "note"
REWRITE = "rewrite"
QUERY_KNOWLEDGE, REMEMBER = "query_knowledge", "remember"
"""Built-in tools that the engine treats in a way of their own."""
MAX_SUMMARY_CHARS = 4_000
MAX_KEYWORDS = 10
MAX_HINTS, MAX_HINT_CHARS = 20, 200
MAX_TOOLS = 64
MAX_SPEC_CHARS = 200_000
"""Characters of all specs that a source brings: they stand in the journal of each task."""
DIGEST_CHARS = 16
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}", re.ASCII)
_SOURCE = re.compile(r"(?P<kind>skill|consultant|mcp:[A-Za-z0-9][A-Za-z0-9_.-]{0,59})", re.ASCII)
# A source's own claims widen nothing: which permissions its tools may ask for depends on what kind of source it is.
_PERMITTED = {
    "skill": frozenset({Permission.READ, Permission.SCRIPT}),
    "consultant": frozenset({Permission.READ, Permission.PLAN}),
    "mcp": frozenset({Permission.EXTERNAL}),
}


class ToolSpec(RecordedValue, frozen=True):
    """A tool as it is recorded when a task starts.

    `input_schema` is the JSON Schema of its arguments, as JSON text; empty for a tool that takes a body instead.
    `source` is `builtin`, `skill`, `consultant` or `mcp:<server>`. `hints` are what a source says of the tool itself,
    such as "read-only": they are shown to a person and decide nothing. `server` identifies the program or address that
    brings the tool: a rule for one server's tool does not count for the same tool of another. `fenced`: the tool takes
    the new text of pieces between fences instead of arguments (`core.patch.rewritten_pieces`).
    """

    name: str
    summary: str
    permission: Permission
    input_schema: str = ""
    source: str = BUILTIN
    hints: tuple[str, ...] = ()
    server: str = ""
    fenced: bool = False

    @property
    def raw(self) -> bool:
        """True if the tool takes a unified diff, or pieces between fences, instead of arguments."""
        return not self.input_schema

    @property
    def builtin(self) -> bool:
        """True if the workbench itself brings the tool."""
        return self.source == BUILTIN

    @property
    def digest(self) -> str:
        """Digest of everything in the spec: rules name it, so that a tool that changes is asked for again."""
        brought = (f"server {self.server}",) if self.server else ()
        parts = (self.name, self.summary, self.permission, self.input_schema, self.source, *self.hints, *brought)
        told_apart = "".join(f"{len(part)}:{part}" for part in parts)
        return sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]


def spec_problem(spec: ToolSpec) -> str:
    """Return why a source's tool is left out, as the end of a sentence; empty if it can be used."""
    source = _SOURCE.fullmatch(spec.source)
    if source is None:
        return f"its source is called {spec.source[:80]!r}"
    if spec.source.startswith(MCP) and spec.name == tool_prefix(spec.source):
        return "it has no name"
    if not _NAME.fullmatch(spec.name):
        return "its name may have letters, digits, `_`, `-` and `.` only, 60 at most, a letter first"
    if spec.permission not in _PERMITTED[source["kind"].partition(":")[0]]:
        return f"a tool of {spec.source} may not ask for the permission {spec.permission}"
    if not spec.summary.strip():
        return "it has no description"
    if len(spec.summary) > MAX_SUMMARY_CHARS:
        return f"its description has more than {MAX_SUMMARY_CHARS:,} characters"
    if len(spec.hints) > MAX_HINTS or any(len(hint) > MAX_HINT_CHARS for hint in spec.hints):
        return f"it has more than {MAX_HINTS} hints, or one of more than {MAX_HINT_CHARS} characters"
    if spec.raw:
        return "it has no input schema"
    if without_chat_markers(spec.input_schema) != spec.input_schema:
        return "its schema holds markers of a chat template"
    try:
        read_schema(spec.input_schema)
    except SchemaError as error:
        return f"its schema {error}"
    return ""


def tool_prefix(source: str) -> str:
    """Return what the names of an MCP server's tools begin with."""
    return f"mcp__{source.removeprefix(MCP)}__"


def select_specs(specs: Iterable[ToolSpec], taken: Iterable[str]) -> Iterator[tuple[ToolSpec, str]]:
    """Yield each spec with the reason why it is left out, empty where it can be used; `taken` are names in use.

    Names that differ only in case, `-`, `_` and `.` are the same: a model's spelling is read leniently.
    """
    names, count, chars = {_plain(name) for name in taken}, 0, 0
    for spec in specs:
        problem = spec_problem(spec)
        size = len(spec.summary) + len(spec.input_schema)
        if not problem and _plain(spec.name) in names:
            problem = "another tool has that name"
        if not problem and (count >= MAX_TOOLS or chars + size > MAX_SPEC_CHARS):
            problem = f"all tools together are more than {MAX_TOOLS}, or longer than {MAX_SPEC_CHARS:,} characters"
        if not problem:
            names.add(_plain(spec.name))
            count, chars = count + 1, chars + size
        yield spec, problem


def by_name(specs: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    """Return the specs by their names, in the same order."""
    return {spec.name: spec for spec in specs}


def read_spec_schema(spec: ToolSpec) -> SchemaReading:
    """Return the schema of a tool's arguments; raise `JournalError` for a recorded one that cannot be read."""
    try:
        return read_schema(spec.input_schema)
    except SchemaError as error:
        raise JournalError(
            f"the recorded schema of the tool {sanitize_line(spec.name, 64)} {error}",
            advice="the journal was changed: `agent sessions verify` tells; start the task in a new session",
        ) from None


def unheld(spec: ToolSpec) -> tuple[str, ...]:
    """Return the keywords of a tool's schema that no grammar holds an answer to: they are checked after the answer."""
    return () if spec.raw else read_spec_schema(spec).unheld


def describe_unheld(specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Return for each tool whose arguments no grammar holds in full what is checked after the answer."""
    return tuple(text for spec in specs if (text := _unheld_text(spec)))


def _unheld_text(spec: ToolSpec) -> str:
    try:
        keywords = unheld(spec)
    except JournalError as error:
        return str(error)
    held = f"arguments of {spec.name} are partly checked only after the answer: {', '.join(keywords[:MAX_KEYWORDS])}"
    return held if keywords else ""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).casefold()
