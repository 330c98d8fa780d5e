"""Protocols of what machines share beside the stores. The database and the git remote are not trusted."""

from collections.abc import Collection
from typing import Protocol

from agent_workbench.core.signed import SignedPurpose


class Signatures(Protocol):
    """Signatures with this machine's key, and the judgement of signatures that others made.

    Who may sign for which purpose is set on each machine by its user. This machine's own key counts here for every
    purpose. `core.signed.signed_message` makes the messages.
    """

    async def sign(self, purpose: SignedPurpose, message: bytes) -> str:
        """Return a signature of the message for one purpose; raise `SigningError` if the key cannot be used."""

    async def signer(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        """Return the principal whose key signed exactly this message for this purpose; empty if it does not count.

        That is a signature that is missing, malformed, of an unknown or revoked key, of a key that may not sign for
        this purpose or not at this time, or of another message. Raises `SigningError` only if nothing can be judged.
        """

    async def problem(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        """Return why a signature does not count, as the end of a sentence ("… does not count: "); empty if it does."""

    async def principal(self) -> str:
        """Return the principal of this machine's key, such as `ada@laptop`; raise `SigningError`."""

    async def public_line(self, purposes: Collection[SignedPurpose]) -> str:
        """Return the line that allows this machine's key for `purposes` on other machines; raise `SigningError`."""
