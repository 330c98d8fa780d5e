"""Signed texts in shared state: their purposes, and the bytes that a signature covers."""

from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue

VERSION = "agent-workbench/1"
"""Version of the form of signed bytes; a change of the form changes it, and older signatures stay verifiable."""


class SignedPurpose(StrEnum):
    """Use of a signature: the namespace of `ssh-keygen -Y`, which an allowed signer has to have."""

    JOURNAL = "agent-journal"
    """The head of a session's journal."""
    DECISION = "agent-decision"
    """A person's decision about a proposal."""
    TASK = "agent-task"
    """A task as it was put into the queue."""
    RESULT = "agent-result"
    """The outcome of a task."""


WORKER_PURPOSES = (SignedPurpose.JOURNAL, SignedPurpose.RESULT)
"""Purposes of the key of a machine that only works: it decides nothing and puts nothing into the queue."""
PERSON_PURPOSES = tuple(SignedPurpose)


class SignedText(RecordedValue, frozen=True):
    """A text exactly as somebody signed it, and the signature, so that others can judge it later."""

    text: str
    signature: str


def signed_message(purpose: SignedPurpose, *parts: str | bytes | int) -> bytes:
    """Return the bytes that are signed: version and purpose, then each part behind its length in bytes.

    No two lists of parts have the same bytes. A value of many fields is one part: its encoding exactly as it is
    stored beside the signature. What identifies its row is a part too, so that it counts in no other row.
    """
    encoded = [part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass") for part in parts]
    return b"".join((f"{VERSION} {purpose}\n".encode(), *(b"%d:%b\n" % (len(part), part) for part in encoded)))
