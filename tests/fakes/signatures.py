"""Signatures without keys: each machine of a test has a principal, and says who may sign for what."""

from collections.abc import Collection, Mapping
from hashlib import sha256

from agent_workbench.core.errors import SigningError
from agent_workbench.core.signed import PERSON_PURPOSES, SignedPurpose


class FakeSignatures:
    """`core.ports.shared_state.Signatures` whose signature names principal, purpose and message.

    `allowed` maps the principals of other machines to what they may sign; `forged` makes a signature in anybody's name.
    """

    def __init__(self, own: str = "ada@laptop", allowed: Mapping[str, Collection[SignedPurpose]] | None = None) -> None:
        self._own = own
        self.allowed = {**(allowed or {}), own: PERSON_PURPOSES}
        self.broken = False
        """`sign` raises `SigningError`."""

    async def sign(self, purpose: SignedPurpose, message: bytes) -> str:
        if self.broken:
            raise SigningError("the signing key cannot be read", advice="make it readable")
        return _signature(self._own, purpose, message)

    async def signer(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        principal = signature.partition(" ")[0]
        right = signature == _signature(principal, purpose, message)
        return principal if right and purpose in self.allowed.get(principal, ()) else ""

    async def problem(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        if await self.signer(purpose, message, signature):
            return ""
        return "it is not signed" if not signature else "its signature is of no allowed signer"

    async def key_is_unknown(self, purpose: SignedPurpose, signature: str) -> bool:
        return bool(signature) and purpose not in self.allowed.get(signature.partition(" ")[0], ())

    async def principal(self) -> str:
        return self._own

    async def public_line(self, purposes: Collection[SignedPurpose]) -> str:
        return f'{self._own} namespaces="{",".join(purposes)}" ssh-ed25519 AAAA'


def _signature(principal: str, purpose: SignedPurpose, message: bytes) -> str:
    return f"{principal} {sha256(f'{purpose} '.encode() + message).hexdigest()}"
