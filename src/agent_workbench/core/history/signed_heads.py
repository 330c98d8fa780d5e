"""Signed heads of a session's journal: claims of a worker, under a lease, that an event has a hash."""

from msgspec import Struct

from agent_workbench.core.ids import SessionId
from agent_workbench.core.signed import SignedPurpose, signed_message


class SignedHead(Struct, frozen=True):
    """The newest event of a session that shared state has: its number and its hash.

    Before the first event `seq` is -1 and `hash` is empty. `fence` is the number of the lease under which the worker
    wrote. `signature` is one of `SignedPurpose.JOURNAL` over `message`.
    """

    session: SessionId
    seq: int
    hash: str
    fence: int
    worker: str
    signature: str = ""

    @property
    def message(self) -> bytes:
        """The signed bytes."""
        parts = (self.session, self.seq, self.hash, self.fence, self.worker)
        return signed_message(SignedPurpose.JOURNAL, *parts)
