"""Journal anchors: lines of commit messages that name an event of a session by its hash."""

import re
from collections.abc import Iterator

from msgspec import Struct

from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.proposals import TRAILER
from agent_workbench.core.text.sanitizer import sanitize_line

# A squash merge indents the messages it quotes, or makes them list items.
_LINE = re.compile(rb"^[ \t>*+-]{0,40}" + TRAILER.encode() + rb":[ \t]*([^\r\n]{0,300}?)[ \t]*\r?$", re.MULTILINE)
_VALUE = re.compile(rb"([0-9]{8}T[0-9]{6}-[a-z2-7]{6}):(0|[1-9][0-9]{0,11}):([0-9a-f]{64})")
MAX_MALFORMED = 20


class Anchor(Struct, frozen=True):
    """Claim of a commit that event `seq` of a session has this hash; `ref` is the checkpoint's ref, if any.

    Of a head that machines share, `signer` is the principal of its signature, and `worker` the machine that wrote it.
    """

    session: SessionId
    seq: int
    hash: str
    commit: CommitId
    ref: str = ""
    signer: str = ""
    worker: str = ""

    @property
    def name(self) -> str:
        """Short name of the commit, checkpoint or signed head."""
        if self.signer:
            return f"the head of worker {self.worker} (signed by {self.signer})"
        return f"checkpoint {self.ref}" if self.ref else f"commit {self.commit[:10]}"


class Trailers(Struct, frozen=True):
    """Anchors in one commit's message, and the values after `Agent-Journal:` that name no event."""

    anchors: tuple[Anchor, ...]
    malformed: tuple[str, ...]


class FoundAnchors(Struct, frozen=True):
    """Anchors that a repository holds for some sessions.

    `malformed` are trailer values that name one of the sessions but no event, each with its commit. `notes` name what
    could not be read.
    """

    anchors: tuple[Anchor, ...] = ()
    malformed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, session: str) -> "FoundAnchors":
        """Return the anchors of one session."""
        mine = tuple(each for each in self.anchors if each.session == session)
        return FoundAnchors(mine, tuple(each for each in self.malformed if session in each), self.notes)

    def with_heads(self, other: "FoundAnchors") -> "FoundAnchors":
        """Return these anchors with those of signed heads, and what is wrong with the latter."""
        return FoundAnchors(
            (*self.anchors, *other.anchors), (*self.malformed, *other.malformed), (*self.notes, *other.notes)
        )


def read_trailers(commit: CommitId, message: bytes, ref: str = "") -> Trailers:
    """Return the distinct trailers of a commit's message."""
    anchors: dict[Anchor, None] = {}
    malformed: dict[str, None] = {}
    for value in _values(message):
        if found := _VALUE.fullmatch(value):
            session, seq, digest = (part.decode("ascii") for part in found.groups())
            anchors[Anchor(SessionId(session), int(seq), digest, commit, ref)] = None
        elif len(malformed) < MAX_MALFORMED:
            malformed[sanitize_line(value.decode("utf-8", "replace"), 120)] = None
    return Trailers(tuple(anchors), tuple(malformed))


def anchor_lines(message: bytes) -> tuple[str, ...]:
    """Return the distinct anchors in a commit's message, as lines of another message."""
    values = (value.decode("ascii") for value in _values(message) if _VALUE.fullmatch(value))
    return tuple(dict.fromkeys(f"{TRAILER}: {value}" for value in values))


def without_anchors(text: str) -> str:
    """Return a text without the lines that would be read as anchors in a commit's message."""
    return _LINE.sub(b"", text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _values(message: bytes) -> Iterator[bytes]:
    return (found[1] for found in _LINE.finditer(message))
