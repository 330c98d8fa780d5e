"""The file of allowed signers (`ssh-keygen(1)`, ALLOWED SIGNERS), read more strictly than ssh-keygen does.

A line counts if it names one principal, the purposes one by one, and a key. Anything else in it, such as a pattern or a
certificate authority, makes the line invalid: it would allow more than its reader sees.
"""

import base64
import binascii
import os
import re
import shlex
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import SigningError
from agent_workbench.core.text.amounts import quoted
from agent_workbench.system.regular_files import open_regular

MOST_BYTES = 1_000_000
MOST_LINE_CHARS = 20_000
PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_TYPE = re.compile(r"[a-z0-9][a-z0-9@.-]{0,63}")
_OPTION = re.compile(r'([a-z-]+)="([^"\\]*)"')
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]*")
_DATES = frozenset({"valid-after", "valid-before"})
_DATE = re.compile(r"[0-9]{8}(?:[0-9]{4}(?:[0-9]{2})?)?Z?")
_WRITABLE_BY_OTHERS = 0o022


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
