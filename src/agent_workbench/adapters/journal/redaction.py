"""Secrets of the environment, and their replacement in whatever is recorded."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

_SHORTEST_SECRET = 8
_SHORTEST_LINE = 16
_SECRET_WORDS = {"KEY", "KEYS", "APIKEY", "PASS", "PWD", "PAT", "AUTH", "CREDENTIAL", "CREDENTIALS", "PASSPHRASE"}
_SECRET_ENDINGS = ("TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "APIKEY", "ACCESSKEY", "PRIVATEKEY")
# `PWD` and `OLDPWD` are the shell's, and name folders.
_NEVER_SECRET = {"PWD", "OLDPWD"}
_ENDINGS_OF_PLACES = {"DIR", "FILE", "HOME", "PATH", "SOCK"}
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")


class Redactor:
    """Replaces secrets by `«redacted:NAME»`."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """Take secrets by name; shorter ones than 8 characters are left out, they would be found everywhere."""
        spelled: dict[str, str] = {}
        for name, value in secrets.items():
            for spelling in _spellings(value.strip()):
                spelled.setdefault(spelling, name)
        # The longest first: a secret may begin with another one.
        longest_first = sorted(spelled, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if spelled else None
        self._names = spelled

    def redact(self, text: str) -> str:
        """Return the text without the secrets; the same text where it holds none."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: f"«redacted:{self._names[match[0]]}»", text)


def environment_redactor(environ: Mapping[str, str], keys: Collection[str] = ()) -> Redactor:
    """Return the redactor for variables whose names look secret or are `keys`, and for passwords inside of addresses.

    A value that is the path of something that exists is a place, not a secret.
    """
    secrets = {}
    for name, value in environ.items():
        if name in keys or (_looks_secret(name) and not _is_a_place(value)):
            secrets[name] = value
        elif password := _URL_PASSWORD.search(value):
            secrets[name] = password[1]
    return Redactor(secrets)


def _looks_secret(name: str) -> bool:
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if name in _NEVER_SECRET or words[-1] in _ENDINGS_OF_PLACES:
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def _is_a_place(value: str) -> bool:
    try:
        return value.startswith(("/", "~/")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _spellings(value: str) -> Iterator[str]:
    """Yield how a secret may stand in a text: plain, as in JSON, and line by line where it has several."""
    if len(value) < _SHORTEST_SECRET:
        return
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:  # a key in a file of its own; its frame is no secret
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("-----"))
