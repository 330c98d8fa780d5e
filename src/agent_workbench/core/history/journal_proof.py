"""Proof of a journal: its hash chain, compared with every anchor, the line of a commit message that names an event."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import CheckpointTaken, Recorded, SessionForked, SessionStarted
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.proposals import TRAILER
from agent_workbench.core.repo.workspace import Checkpoint
from agent_workbench.core.text.sanitizer import sanitize_line

# A squash merge indents the messages it quotes, or makes them list items.
_LINE = re.compile(rb"^[ \t>*+-]{0,40}" + TRAILER.encode() + rb":[ \t]*([^\r\n]{0,300}?)[ \t]*\r?$", re.MULTILINE)
_VALUE = re.compile(rb"([0-9]{8}T[0-9]{6}-[a-z2-7]{6}):(0|[1-9][0-9]{0,11}):([0-9a-f]{64})")
MAX_MALFORMED = 20

MAX_PROBLEMS = 20
REDACTED = "«redacted:"


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


class Proof(StrEnum):
    """Result of a verification."""

    GREEN = "green"
    RED = "red"
    UNPROVABLE = "not provable"


class Problem(Struct, frozen=True):
    """A journal line that does not fit, counted from 1; 0 for the whole journal."""

    line: int
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" if self.line else self.what


class VerifyReport(Struct, frozen=True):
    """Result of checking a journal on its own.

    `hashes` are the claims of all lines, `recorded` the events of the valid ones. An unfinished last line
    (`torn_bytes`) is no problem: it was never acknowledged. A journal that was cut at a line, or hashed anew, is
    consistent on its own; `prove_journal` compares it with its anchors.
    """

    hashes: tuple[str, ...]
    recorded: tuple[Recorded, ...]
    problems: tuple[Problem, ...] = ()
    torn_bytes: int = 0

    @property
    def events(self) -> int:
        """Number of lines."""
        return len(self.hashes)

    @property
    def head(self) -> str:
        """Hash of the last line, empty if there is none."""
        return self.hashes[-1] if self.hashes else ""

    @property
    def ok(self) -> bool:
        """True if every line and every blob is valid."""
        return not self.problems

    @property
    def sound(self) -> int:
        """Number of the last event before the first invalid line, -1 if there is none."""
        return min((max(problem.line - 2, -1) for problem in self.problems), default=len(self.hashes) - 1)


class JournalProof(Struct, frozen=True):
    """Proof of a session's journal: events 0 to `through` (-1: none) are proved by the anchor named `by`.

    `anchors` are the matching ones up to which every line is valid.
    """

    session: SessionId
    events: int
    head: str
    through: int = -1
    by: str = ""
    anchors: tuple[Anchor, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    torn_bytes: int = 0

    @property
    def proof(self) -> Proof:
        """Red with a problem, green with an anchor and no problem."""
        if self.problems:
            return Proof.RED
        return Proof.GREEN if self.through >= 0 else Proof.UNPROVABLE


class Relative(Struct, frozen=True):
    """A parent or fork of a session; both share their events up to number `shared`."""

    report: VerifyReport
    proof: JournalProof
    shared: int


Tips = Mapping[str, CommitId | None]
"""Commit at each checkpoint's ref, None if the ref does not exist."""


def prove_journal(session: SessionId, report: VerifyReport, found: FoundAnchors, tips: Tips) -> JournalProof:
    """Return the proof from the journal's hash chain, the session's anchors, and the refs of its checkpoints."""
    sound = [each for each in found.anchors if each.seq <= report.sound and not _misfit(report, each)]
    best = max(sound, key=lambda each: (each.seq, each.ref == ""), default=None)
    refs = list(_moved(report, tips))
    absent = sum(tips.get(each.ref) is None for each in checkpoints(report.recorded))
    torn = (f"its last line is unfinished ({report.torn_bytes} bytes) and is ignored",) if report.torn_bytes else ()
    gone = (f"checkpoints that are not in this repository: {absent}",) if absent else ()
    return JournalProof(
        session=session,
        events=report.events,
        head=report.head,
        through=best.seq if best is not None else -1,
        by=best.name if best is not None else "",
        anchors=tuple(sorted(sound, key=lambda each: (each.seq, each.name))),
        problems=(*_own_problems(session, report, found), *refs),
        notes=(*torn, *gone, *found.notes),
        torn_bytes=report.torn_bytes,
    )


def _own_problems(session: SessionId, report: VerifyReport, found: FoundAnchors) -> Iterator[str]:
    yield from map(str, report.problems)
    header = report.recorded[0].event if report.recorded else None
    if isinstance(header, SessionStarted) and header.session != session:
        yield f"line 1: it is the journal of session {sanitize_line(header.session, 40)}"
    misfits = ((each, _misfit(report, each)) for each in sorted(found.anchors, key=lambda each: (each.seq, each.name)))
    yield from (f"{each.name} {misfit}" for each, misfit in misfits if misfit)
    yield from found.malformed


def _misfit(report: VerifyReport, anchor: Anchor) -> str:
    """Return how an anchor contradicts the journal, empty if it does not."""
    if anchor.seq >= report.events:
        ends = f"ends with event {report.events - 1}" if report.events else "has no event"
        return f"names event {anchor.seq}, and the journal {ends}: its end was cut off"
    stands = report.hashes[anchor.seq]
    if stands != anchor.hash:
        return f"names event {anchor.seq} with the hash {anchor.hash[:12]}…, the journal has {stands[:12] or 'none'}…"
    return ""


def checkpoints(events: Sequence[Recorded]) -> Iterator[Checkpoint]:
    """Yield the checkpoints that a journal names."""
    for recorded in events:
        match recorded.event:
            case CheckpointTaken(checkpoint=checkpoint) | SessionForked(checkpoint=Checkpoint() as checkpoint):
                yield checkpoint
            case _:
                continue


def _moved(report: VerifyReport, tips: Tips) -> Iterator[str]:
    # After a crash, an unrecorded checkpoint may be recorded later under the same ref.
    named: dict[str, set[str]] = {}
    for each in checkpoints(report.recorded):
        named.setdefault(each.ref, set()).add(each.commit)
    for ref, commits in named.items():
        at = tips.get(ref)
        if at is not None and at not in commits:
            yield f"{sanitize_line(ref, 120)} is at {at[:10]}, the journal has {sanitize_line(min(commits), 40)[:10]}"


def with_relatives(proof: JournalProof, report: VerifyReport, relatives: Sequence[Relative]) -> JournalProof:
    """Return the proof, extended by the session's parent and forks: each holds a copy of the shared events.

    A copy that differs is a problem of this journal unless its own anchors prove the events, or the relative's own
    anchors contradict the relative. An equal copy proves what the relative's anchors prove.
    """
    for each in relatives:
        same, differs = _compared(report.recorded, each)
        name = f"session {each.proof.session}"
        if differs is not None and differs > proof.through and each.proof.proof is not Proof.RED:
            said = f"event {differs} is not the one that {name} has of it" if differs < report.events else ""
            cut = f"{name} has event {differs} of it, and the journal ends before: its end was cut off"
            proof = replace(proof, problems=(*proof.problems, said or cut))
        through = min(same, each.proof.through, report.sound)
        if through > proof.through:
            proof = replace(proof, through=through, by=f"{each.proof.by} of {name}, which has the same events")
    return proof


def _compared(mine: Sequence[Recorded], relative: Relative) -> tuple[int, int | None]:
    """Return the last event that both share, and the first that differs, None if none does."""
    own = {recorded.seq: recorded for recorded in mine}
    same = -1
    for other in relative.report.recorded:
        if other.seq > relative.shared:
            break
        this = own.get(other.seq)
        if this is None:
            return same, other.seq
        if other.seq and (this.time, this.event) != (other.time, other.event):
            # A fork redacts the secrets of the environment it was made in.
            return same, None if REDACTED in f"{this.event!r}{other.event!r}" else other.seq
        same = other.seq
    return same, None
