"""Messages between the workbench and the client process of a server: one JSON object a line."""

from msgspec import Struct

MAX_ANSWER_BYTES = 4_000_000
MAX_TEXT_CHARS = 400_000
MAX_LISTED = 500


class Connect(Struct, tag="connect", frozen=True):
    """The first message. A server at `url` gets `headers`; one without is at the descriptors of the command line."""

    url: str = ""
    headers: dict[str, str] = {}


class ListTools(Struct, tag="list", frozen=True):
    """Request for the tools."""

    id: int


class CallTool(Struct, tag="call", frozen=True):
    """Request for a call; `arguments` is one JSON object."""

    id: int
    tool: str
    arguments: str


class Cancel(Struct, tag="cancel", frozen=True):
    """Request to stop an earlier request, which is answered with `Failed`."""

    id: int


class Connected(Struct, tag="connected", frozen=True):
    """The server answered: its own name and version, and the protocol's."""

    server: str
    protocol: str


class ListedTool(Struct, frozen=True):
    """A tool as the server describes it; `schema` is JSON text."""

    name: str
    summary: str
    schema: str
    hints: tuple[str, ...] = ()


class Listed(Struct, tag="listed", frozen=True):
    """The tools of the server; `more` is true if it lists more than are read."""

    id: int
    tools: tuple[ListedTool, ...]
    more: bool = False


class Called(Struct, tag="called", frozen=True):
    """Result of a call; `cut_bytes` of its text were left out."""

    id: int
    text: str
    failed: bool = False
    cut_bytes: int = 0


class Failed(Struct, tag="failed", frozen=True):
    """A request that has no result, and why. `id` is 0 where the connection itself failed."""

    id: int
    reason: str


class Noticed(Struct, tag="noticed", frozen=True):
    """Something that the server did unasked; `tools_changed`: it says that its tools are others now."""

    text: str = ""
    tools_changed: bool = False


Request = Connect | ListTools | CallTool | Cancel
Answer = Connected | Listed | Called | Failed | Noticed
