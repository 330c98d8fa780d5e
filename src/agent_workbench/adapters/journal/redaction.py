"""Redaction: secrets of the environment are replaced in everything that is recorded."""

import base64
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

from agent_workbench.core.text.secrets import is_ordinary, looks_secret, secrets_within

_SHORTEST_SECRET = 8
_SHORTEST_LINE = 16
_SHORTEST_BASE64 = 9
# In a JSON value, the line ends of a key are spelled with these two characters.
_LINE_END = re.compile(r"\r?\n|(?:\\r)?\\n")


class Redactor:
    """Replaces secrets by `«redacted:NAME»`."""

    def __init__(self, secrets: Iterable[tuple[str, str]]) -> None:
        """Take names and secrets; secrets of less than 8 characters are left out, as they would match everywhere."""
        spelled: dict[str, str] = {}
        for name, value in secrets:
            for spelling in _spellings(value.strip()):
                spelled.setdefault(spelling, name)
        # The longest first: a secret may begin with another one.
        self._spelled = dict(sorted(spelled.items(), key=lambda pair: len(pair[0]), reverse=True))

    def redact(self, text: str) -> str:
        """Return the text with each secret replaced by its name."""
        # A plain search for each costs less than one pattern of all of them, and mostly finds none.
        found = [each for each in self._spelled if each in text]
        if not found:
            return text
        pattern = re.compile("|".join(map(re.escape, found)))
        return pattern.sub(lambda match: f"«redacted:{self._spelled[match[0]]}»", text)


def environment_redactor(environ: Mapping[str, str], keys: Collection[str] = ()) -> Redactor:
    """Return the redactor of variables whose names look secret or are in `keys`, and of secrets within all others.

    The path of an existing file is no secret.
    """
    return Redactor((name, secret) for name, value in environ.items() for secret in _secrets_of(name, value, keys))


def secret_names(environ: Mapping[str, str], keys: Collection[str] = ()) -> tuple[str, ...]:
    """Return the variables that the redactor of these would look for."""
    return tuple(name for name, value in environ.items() if value and any(_secrets_of(name, value, keys)))


def _secrets_of(name: str, value: str, keys: Collection[str]) -> Iterator[str]:
    if name in keys or (looks_secret(name) and not is_ordinary(value.strip()) and not _is_existing_path(value)):
        yield value
    yield from secrets_within(name, value)


def _is_existing_path(value: str) -> bool:
    try:
        return value.startswith(("/", "~/")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _spellings(value: str) -> Iterator[str]:
    """Yield the forms of a secret in texts: plain, as in JSON, in addresses and in base64, and line by line."""
    if len(value) < _SHORTEST_SECRET:
        return
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    lines = [line.strip() for line in _LINE_END.split(value)]
    if len(lines) > 1 and not value.startswith(("{", "[")):  # a key in a file of its own; its frame is no secret
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("-----"))
    data = value.encode(errors="surrogatepass")
    for escaped in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield escaped
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), escaped)
    if "%" in value:  # from an address
        yield unquote(value)
    yield from _in_base64(data)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the characters that stand for `data` in base64, whatever precedes and follows it, as in `user:secret`."""
    for before in range(3):
        digits = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        # The first and last digits hold bits of the neighbours too.
        inner = digits[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        if len(inner) >= _SHORTEST_BASE64:
            yield inner
            yield inner.translate(str.maketrans("+/", "-_"))
