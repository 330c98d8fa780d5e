"""Port `Signatures` by `ssh-keygen -Y`, and the file of allowed signers, read more strictly than it does.

A line of the file counts if it names one principal, the purposes one by one, and a key. Anything else in it, such as a
pattern or a certificate authority, makes the line invalid: it would allow more than its reader sees.
"""

import asyncio
import base64
import binascii
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic

from msgspec import Struct

from agent_workbench.adapters.ssh_keygen import SigningKey, SshKeygen
from agent_workbench.core.errors import SigningError
from agent_workbench.core.signed import PERSON_PURPOSES, SignedPurpose
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.folder_trees import open_regular

MOST_BYTES = 1_000_000
MOST_LINE_CHARS = 20_000
PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_TYPE = re.compile(r"[a-z0-9][a-z0-9@.-]{0,63}")
_OPTION = re.compile(r'([a-z-]+)="([^"\\]*)"')
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]*")
_DATES = frozenset({"valid-after", "valid-before"})
_DATE = re.compile(r"[0-9]{8}(?:[0-9]{4}(?:[0-9]{2})?)?Z?")
_WRITABLE_BY_OTHERS = 0o022

MOST_SIGNATURE_CHARS = 20_000
MOST_JUDGED = 4_096
"""Judgements that are kept."""
KEPT_SECONDS = 60.0
"""How long a judgement is kept: a key may expire meanwhile."""
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG\x00\x00\x00\x01"
_NOT_SIGNED = "it is not signed"


class AllowedSigner(Struct, frozen=True):
    """A line of the file: who may sign for what. `key` is the public key as signatures have it."""

    principal: str
    namespaces: frozenset[str]
    key: bytes
    line: str
    """The line as ssh-keygen reads it, without comments."""


class AllowedSigners(Struct, frozen=True):
    """The lines of the file that count, and what is wrong with the others."""

    signers: tuple[AllowedSigner, ...] = ()
    problems: tuple[str, ...] = ()

    def with_key(self, key: bytes) -> tuple[AllowedSigner, ...]:
        """Return the lines with a public key."""
        return tuple(each for each in self.signers if each.key == key)


def read_guarded(path: Path, what: str) -> bytes | None:
    """Return the content of a file that only its user or root can change, None if there is none.

    Raises `SigningError` for any other file, and for one that is too long or cannot be read. Blocks.
    """
    try:
        with os.fdopen(open_regular(path, follow=True), "rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid not in {os.geteuid(), 0} or facts.st_mode & _WRITABLE_BY_OTHERS:
                raise SigningError(
                    f"others may change {what} {path}, so it does not count",
                    advice=f"`chmod go-w {shlex.quote(str(path))}`; it must be yours or root's",
                )
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SigningError(
            f"{what} {path} cannot be read: {error.strerror}", advice="make it a readable file"
        ) from error
    if len(content) > MOST_BYTES:
        raise SigningError(f"{what} {path} has more than {MOST_BYTES:,} bytes", advice="remove lines from it")
    return content


def parse_allowed_signers(content: bytes) -> AllowedSigners:
    """Return the signers of a file; a line that does not count is a problem with its number."""
    signers, problems = [], []
    for number, raw in enumerate(content.split(b"\n"), 1):
        try:
            line = raw.decode("ascii")
            if line.strip(" \t") and not line.lstrip(" \t").startswith("#"):
                signers.append(_signer(line))
        except ValueError as error:
            why = "it is not ASCII" if isinstance(error, UnicodeDecodeError) else str(error)
            problems.append(f"line {number}: {why}")
    return AllowedSigners(tuple(signers), tuple(problems))


def signer_line(principal: str, namespaces: frozenset[str], key: str) -> str:
    """Return the line of a key, given as `TYPE BASE64`."""
    return f'{principal} namespaces="{",".join(sorted(namespaces))}" {key}'


def _signer(line: str) -> AllowedSigner:
    """Return the signer of a line; raise `ValueError` with what is wrong with it."""
    if len(line) > MOST_LINE_CHARS or not line.replace("\t", " ").isprintable():
        raise ValueError(f"it has more than {MOST_LINE_CHARS:,} characters, or control characters")
    principal, _, rest = line.strip(" \t").replace("\t", " ").partition(" ")
    if not PRINCIPAL.fullmatch(principal):
        raise ValueError(f"{quoted(principal)} is not one principal without patterns")
    options, rest = _options(rest.lstrip(" "))
    if unknown := options.keys() - {"namespaces", *_DATES}:
        raise ValueError(f"the option {quoted(min(unknown))} is not supported")
    namespaces = options.get("namespaces", "").split(",")
    if not all(map(_NAMESPACE.fullmatch, namespaces)):
        raise ValueError('it does not list what the key may sign, as namespaces="agent-journal,agent-result"')
    if wrong := [name for name in sorted(_DATES & options.keys()) if not _DATE.fullmatch(options[name])]:
        raise ValueError(f"{wrong[0]} is not a date such as 20271231")
    kind, _, encoded = rest.partition(" ")
    encoded = encoded.lstrip(" ").partition(" ")[0]
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        key = b""
    if not _TYPE.fullmatch(kind) or read_string(key)[0] != kind.encode():
        raise ValueError("it has no public key, as `ssh-ed25519 AAAA…`")
    told = ",".join(f'{name}="{value}"' for name, value in options.items())
    return AllowedSigner(principal, frozenset(namespaces), key, f"{principal} {told} {kind} {encoded}")


def _options(text: str) -> tuple[dict[str, str], str]:
    """Return the options at the beginning of a text, and the rest; raise `ValueError` for one given twice."""
    found: dict[str, str] = {}
    while match := _OPTION.match(text):
        if match[1] in found:
            raise ValueError(f"the option {match[1]} is there twice")
        found[match[1]], text = match[2], text[match.end() :]
        if not text.startswith(","):
            break
        text = text[1:]
    if found and not text.startswith(" "):
        raise ValueError("its options cannot be read")
    return found, text.lstrip(" ")


def read_string(data: bytes) -> tuple[bytes, bytes]:
    """Return a string of the SSH protocol and what follows it; two empty ones if there is none."""
    size = int.from_bytes(data[:4])
    return (data[4 : 4 + size], data[4 + size :]) if len(data) >= 4 + size >= 5 else (b"", b"")


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
