"""Ports of tools from elsewhere: their source, the programs that serve, language servers, and checks of arguments."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.checks.language_servers import Diagnostic
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.ports.workspace import Command, OnOutput
from agent_workbench.core.tools.spec import ToolSpec

NOTHING = -3
"""Descriptor that stands for the null device, as in `subprocess.DEVNULL`."""


class QuestionAnswer(StrEnum):
    """Answer of a person to a question of a server, in the words of MCP."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class SourceQuestion(Struct, frozen=True):
    """Question of a server to a person, before the call has a result.

    `schema` is the JSON Schema of a flat form, empty for a question about the page at `url`. `reply` goes on with the
    call: it takes the answer and the values of the form as one JSON object, and raises `ToolError`.
    """

    message: str
    schema: str
    url: str
    reply: "Callable[[QuestionAnswer, str, OnOutput], Awaitable[SourceResult]]"


class SourceResult(Struct, frozen=True):
    """Answer of a source's tool: its text for the model, with `cut_bytes` left out.

    `failed`: the tool reported a failure. `structured` is the answer as one JSON object, empty if there is none. With a
    `question` the call goes on once that is answered; a later call of the source drops it.
    """

    text: str
    failed: bool = False
    cut_bytes: int = 0
    structured: str = ""
    question: SourceQuestion | None = None


class ToolSource(Protocol):
    """A source of tools: a server, the skills of a repo, a consultant."""

    @property
    def name(self) -> str:
        """The `source` of its specs: `skill`, `consultant` or `mcp:<server>`."""

    async def list_tools(self) -> Sequence[ToolSpec]:
        """Return the specs of the tools that it brings now; raise `ToolError`."""

    async def obstacle(self, tool: str, arguments: str) -> str:
        """Return why a call with these checked arguments cannot be made now, empty if no reason is known.

        It is asked before a person is.
        """

    async def call(self, tool: str, arguments: str, on_output: OnOutput) -> SourceResult:
        """Call a tool with checked arguments (one JSON object); raise `ToolError` if no answer comes.

        Cancelling the call stops it.
        """

    async def close(self) -> None:
        """Release what the source holds."""


class SchemaValidator(Protocol):
    """Check against JSON Schemas in full, in bounded time and memory; nothing is fetched."""

    async def schema_problems(self, schemas: Sequence[str]) -> tuple[str, ...]:
        """Return for each schema why it is invalid, empty where it is valid.

        Raises `ToolError` if the check came to no end.
        """

    async def problem(self, schema: str, value: str) -> str:
        """Return why a JSON value does not fit a valid schema, empty if it fits; raise `ToolError`."""


class StandardStreams(Struct, frozen=True):
    """Descriptors that a process gets as its standard input, output and error; it inherits `beside` as it is.

    `network` is that of a network namespace that it joins.
    """

    stdin: int = NOTHING
    stdout: int = NOTHING
    stderr: int = NOTHING
    beside: int = NOTHING
    network: int = NOTHING


class ServerCommand(Struct, frozen=True):
    """A program that serves tools, with its access.

    `argv` begins with the program: a name on PATH, or a path relative to the repo. `environment` is all that it gets
    beyond PATH, a home of its own and the locale. It reads the system, the folder of its program and `readable`, and
    writes `writable` and its own temporary folder; paths may begin with `~` or be relative to the repo. It starts in
    the repo if it may read that. Unless it is `confined`, it runs with the user's rights.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: bool = False
    confined: bool = True


class ServerProcess(Protocol):
    """A started server, with all processes that it started."""

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, None while it runs."""

    async def stop(self) -> int:
        """End the server and all its descendants; return the exit code."""


class ServerProcesses(Protocol):
    """Starter of servers. They end with this process at the latest."""

    async def start(self, command: ServerCommand, streams: StandardStreams) -> ServerProcess:
        """Start a server; the caller closes its own descriptors of `streams` afterwards. Raises `ToolError`."""


class ServedCommands(Protocol):
    """Starter of servers in the sandbox of commands (`core.ports.workspace.Shell`)."""

    async def serve(self, command: Command, streams: StandardStreams) -> ServerProcess:
        """Start a server that begins in the command's folder, and writes nothing but a temporary one of its own.

        The caller closes its own descriptors of `streams` afterwards. Raises `SandboxError` where no sandbox holds, and
        `ShellError`.
        """


class AppliedDiff(Struct, frozen=True):
    """A diff that was applied in the worktree at `root`; the approved content was `base` before it and is `tree`."""

    root: str
    base: str
    tree: str
    changes: tuple[FileChange, ...]


class LanguageServers(Protocol):
    """Language servers of one session. They are started when they are needed; one that fails is left out.

    `servers` are the names of those that may be used.
    """

    def prepare(self, root: str, paths: Sequence[str], servers: Collection[str]) -> None:
        """Begin to look at files in the worktree at `root` that a diff may change soon; return at once."""

    async def compare(self, diff: AppliedDiff, servers: Collection[str]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of the changed files that the diff added, as far as servers answer in time."""

    def late(self, tree: str) -> tuple[Diagnostic, ...]:
        """Return what came after `compare` had returned, once, if `tree` is the approved content still."""

    async def close(self) -> None:
        """End the servers."""
