"""The port `Signatures` by `ssh-keygen -Y sign` and `verify`."""

import asyncio
import base64
import binascii
import tempfile
from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic

from msgspec import Struct

from agent_workbench.adapters.signatures.allowed_signers import (
    PRINCIPAL,
    AllowedSigner,
    AllowedSigners,
    parse_allowed_signers,
    read_guarded,
    read_string,
    signer_line,
)
from agent_workbench.adapters.signatures.signing_key import SigningKey
from agent_workbench.adapters.signatures.ssh_keygen import SshKeygen
from agent_workbench.core.errors import SigningError
from agent_workbench.core.signed import PERSON_PURPOSES, SignedPurpose

MOST_SIGNATURE_CHARS = 20_000
MOST_JUDGED = 4_096
"""Judgements that are kept."""
KEPT_SECONDS = 60.0
"""How long a judgement is kept: a key may expire meanwhile."""
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG\x00\x00\x00\x01"
_NOT_SIGNED = "it is not signed"


class _Judgement(Struct, frozen=True):
    """The principal, or the problem, and until when it is kept."""

    principal: str
    problem: str
    until: float = 0.0


class _Trusted(Struct, frozen=True):
    """The signers that count now, and a digest of the files that say so."""

    allowed: AllowedSigners
    revoked: Path | None
    digest: bytes


class SshSignatures:
    """`core.ports.shared_state.Signatures` with a key and a file of allowed signers.

    The file `revoked_keys` beside it lists keys that do not count any more (`ssh-keygen -r`). `own_name` is the
    principal of this machine's key where the file does not name it. `seconds` is a clock.
    """

    def __init__(
        self,
        keygen: SshKeygen,
        key: SigningKey,
        allowed: Path,
        own_name: str,
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        self._keygen = keygen
        self._key = key
        self._allowed = allowed
        self._own_name = own_name
        self._seconds = seconds
        self._judged: dict[bytes, _Judgement] = {}
        self._lock = Lock()

    async def sign(self, purpose: SignedPurpose, message: bytes) -> str:
        return await asyncio.to_thread(self._key.sign, purpose, message)

    async def signer(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        return (await asyncio.to_thread(self._judge, purpose, message, signature)).principal

    async def problem(self, purpose: SignedPurpose, message: bytes, signature: str) -> str:
        return (await asyncio.to_thread(self._judge, purpose, message, signature)).problem

    async def key_is_unknown(self, purpose: SignedPurpose, signature: str) -> bool:
        return await asyncio.to_thread(self._key_is_unknown, purpose, signature)

    async def principal(self) -> str:
        return await asyncio.to_thread(self._principal)

    async def public_line(self, purposes: Collection[SignedPurpose]) -> str:
        return await asyncio.to_thread(self._public_line, purposes)

    async def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the file of allowed signers; raise `SigningError` if none of it counts."""
        trusted = await asyncio.to_thread(self._trusted)
        return tuple(f"{self._allowed}: {each}" for each in trusted.allowed.problems)

    def _principal(self) -> str:
        public = self._key.public()
        listed = self._trusted().allowed.with_key(_key_of(public))
        return listed[0].principal

    def _public_line(self, purposes: Collection[SignedPurpose]) -> str:
        return signer_line(self._principal(), frozenset(purposes), self._key.public())

    def _key_is_unknown(self, purpose: SignedPurpose, signature: str) -> bool:
        key = _signing_key(signature)
        listed = self._trusted().allowed.with_key(key)
        return bool(key) and not any(purpose in each.namespaces for each in listed)

    def _judge(self, purpose: SignedPurpose, message: bytes, signature: str) -> _Judgement:
        """Return who signed, from memory where the same was judged with the same files a moment ago."""
        if not signature:
            return _Judgement("", _NOT_SIGNED)
        trusted, now = self._trusted(), self._seconds()
        parts = (trusted.digest, purpose.encode(), message, signature.encode("utf-8", "replace"))
        name = sha256(b"".join(sha256(part).digest() for part in parts)).digest()
        with self._lock:
            known = self._judged.get(name)
        if known is not None and now < known.until:
            return known
        principal, problem = self._verified(trusted, purpose, message, signature)
        found = _Judgement(principal, problem, now + KEPT_SECONDS)
        with self._lock:
            self._judged.pop(name, None)
            self._judged[name] = found
            if len(self._judged) > MOST_JUDGED:
                del self._judged[next(iter(self._judged))]
        return found

    def _verified(self, trusted: _Trusted, purpose: SignedPurpose, message: bytes, signature: str) -> tuple[str, str]:
        """Return the principal and no problem, or no principal and the problem."""
        key = _signing_key(signature)
        if not key:
            return "", "its signature is malformed"
        listed = trusted.allowed.with_key(key)
        if not listed:
            return "", f"its key {_fingerprint(key)} is not in {self._allowed}"
        for_purpose = [each for each in listed if purpose in each.namespaces]
        if not for_purpose:
            return "", f"the key of {listed[0].principal} may not sign for {purpose}"
        problem = ""
        for each in for_purpose:
            problem = self._problem_of(trusted, each, purpose, message, signature)
            if not problem:
                return each.principal, ""
        return "", f"its signature by {for_purpose[0].principal} is not valid: {problem}"

    def _problem_of(
        self, trusted: _Trusted, signer: AllowedSigner, purpose: SignedPurpose, message: bytes, signature: str
    ) -> str:
        """Return why ssh-keygen refuses the signature as one of this signer."""
        try:
            with tempfile.TemporaryDirectory(prefix="agent-signature-") as folder:
                allowed, signed = Path(folder, "allowed"), Path(folder, "signature")
                allowed.write_text(f"{signer.line}\n", "ascii")
                signed.write_text(f"{signature}\n", "ascii")
                revoked = ("-r", str(trusted.revoked)) if trusted.revoked is not None else ()
                files = ("-f", str(allowed), "-s", str(signed), *revoked)
                words = ("-Y", "verify", "-n", purpose, "-I", signer.principal, *files)
                return self._keygen.run(words, message)[1]
        except OSError as error:
            raise SigningError(
                f"a signature cannot be checked: {error.strerror}", advice="see that temporary files can be written"
            ) from error

    def _trusted(self) -> _Trusted:
        """Return who counts now: those of the file, and this machine's key for every purpose unless it is listed."""
        content = read_guarded(self._allowed, "the file of allowed signers")
        revoked = self._allowed.with_name("revoked_keys")
        withdrawn = read_guarded(revoked, "the list of revoked keys")
        allowed = parse_allowed_signers(content or b"")
        public = self._own_public()
        if public and not allowed.with_key(_key_of(public)):
            own = signer_line(self._own_name, frozenset(PERSON_PURPOSES), public)
            allowed = AllowedSigners((*allowed.signers, *parse_allowed_signers(own.encode()).signers), allowed.problems)
        parts = (content or b"", withdrawn or b"", public.encode())
        digest = b"".join(sha256(part).digest() for part in parts)
        return _Trusted(allowed, revoked if withdrawn is not None else None, digest)

    def _own_public(self) -> str:
        """Return this machine's public key, empty if it has none that can be used: others are judged all the same."""
        try:
            return self._key.public() if self._key.exists() else ""
        except SigningError:
            return ""


def principal_of(name: str) -> str:
    """Return a name as a principal: what cannot be in one becomes a dash."""
    kept = "".join(char if PRINCIPAL.fullmatch(f"x{char}") else "-" for char in name)[:100]
    return kept if PRINCIPAL.fullmatch(kept) else f"x{kept}"


def _signing_key(signature: str) -> bytes:
    """Return the public key that a signature says it was made with, empty for what is no signature."""
    text = signature.strip()
    if len(text) > MOST_SIGNATURE_CHARS or not text.isascii() or not text.startswith(_BEGIN) or not text.endswith(_END):
        return b""
    try:
        data = base64.b64decode("".join(text[len(_BEGIN) : -len(_END)].split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
    return read_string(data[len(_MAGIC) :])[0] if data.startswith(_MAGIC) else b""


def _key_of(public: str) -> bytes:
    return base64.b64decode(public.partition(" ")[2])


def _fingerprint(key: bytes) -> str:
    return "SHA256:" + base64.b64encode(sha256(key).digest()).decode().rstrip("=")
