"""Messages between the workbench and the client process of a server: one JSON object a line."""

from typing import Literal

from msgspec import Struct

MAX_ANSWER_BYTES = 4_000_000
MAX_TEXT_CHARS = 400_000
MAX_LISTED = 500


class Connect(Struct, tag="connect", frozen=True):
    """The first message. A server at `url` gets `headers`; one without is at the descriptors of the command line.

    `sign_in` is the file that keeps the tokens of a sign-in (empty: none is used); `anew`: a person signs in now.
    """

    url: str = ""
    headers: dict[str, str] = {}
    sign_in: str = ""
    anew: bool = False


class ListTools(Struct, tag="list", frozen=True):
    """Request for the tools."""

    id: int


class CallTool(Struct, tag="call", frozen=True):
    """Request for a call; `arguments` is one JSON object."""

    id: int
    tool: str
    arguments: str


class Reply(Struct, tag="reply", frozen=True):
    """Request to go on with a call whose server asked: `action` is that of the protocol, `content` one JSON object."""

    id: int
    call: int
    action: Literal["accept", "decline", "cancel"]
    content: str = "{}"


class Cancel(Struct, tag="cancel", frozen=True):
    """Request to stop an earlier request, which is answered with `Failed`; a call that waits for a reply is not."""

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


class Asked(Struct, tag="asked", frozen=True):
    """Question of the server to a person before the `call` has a result; `Reply` answers it.

    `schema` is the JSON Schema of a flat form. It is empty for a question about `url`, which the person visits.
    """

    id: int
    call: int
    message: str
    schema: str = ""
    url: str = ""


class Failed(Struct, tag="failed", frozen=True):
    """A request that has no result, and why. `id` is 0 where the connection itself failed.

    `unsigned`: the server wants a sign-in, or a new one.
    """

    id: int
    reason: str
    unsigned: bool = False


class Noticed(Struct, tag="noticed", frozen=True):
    """Something that the server did unasked; `tools_changed`: it says that its tools are others now.

    `visit` is the page on which a person signs in.
    """

    text: str = ""
    tools_changed: bool = False
    visit: str = ""


Request = Connect | ListTools | CallTool | Reply | Cancel
Answer = Connected | Listed | Called | Asked | Failed | Noticed
