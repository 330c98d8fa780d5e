"""Detection of secrets in environment variables: by name, by token shape, or by position in a text."""

import re
from collections.abc import Iterator
from functools import cache

from agent_workbench.core.text.token_shapes import SERVICES, TOKENS

_WORDS = {
    *("KEY", "KEYS", "APIKEY", "PASS", "PWD", "PAT", "AUTH", "CREDENTIAL", "CREDENTIALS", "CRED", "CREDS", "PSK"),
    *("PASSPHRASE", "PASSCODE", "JWT", "BEARER", "COOKIE"),
}
_ENDINGS = (
    *("TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSWORDS", "PASSPHRASE", "PASS", "PWD"),
    *("APIKEY", "ACCESSKEY", "PRIVATEKEY", "SECRETKEY", "MASTERKEY", "SIGNINGKEY", "DEPLOYKEY", "AUTHKEY", "SSHKEY"),
)
_ORDINARY_NAMES = {"COMPASS", "BYPASS", "ENCOMPASS", "OVERPASS", "SURPASS", "TRESPASS", "UNDERPASS"}
# The shell's own variables, which hold folders.
_NEVER_SECRET = {"PWD", "OLDPWD"}
# The last word of a name that holds a path or a number.
_NO_VALUES = {"DIR", "FILE", "HOME", "PATH", "SOCK", "SOCKET", "LIMIT", "SIZE", "TTL", "COUNT", "TIMEOUT", "TYPE"}
# Values too common in code and prose to be redacted; they are no secrets.
_ORDINARY_VALUES = {
    *("password", "postgres", "postgresql", "changeme", "changeit", "username", "anonymous", "disabled", "required"),
    *("optional", "localhost", "undefined", "development", "production", "external", "internal", "keyboard"),
    *("interactive", "publickey", "basic-auth", "access_token", "refresh_token", "x-access-token"),
}
# Schemes whose URL names a user and not a token: `ssh://deployer@host`.
_NAMES_USERS = re.compile(
    r"(?:.*\+)?(?:ssh|scp|sftp|ftp|ftps|rsync|git|svn|smb|imaps?|smtps?|ldaps?|vnc|rdp)|.*sql.*", re.IGNORECASE
)
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://([^/\s\"'<>?#]*)@")
_USER_OPTION = re.compile(r"(?:^|\s)(?:-u|--user)[= ]{0,3}[\"']?[^\s\"':]{1,200}:([^\s\"']+)")
_ASSIGNED = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|auth|(?:api|access|account|private|shared|secret)[\w-]{0,12}key)"
    r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?([^\s\"';&,}]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?:\bbearer|\bauthorization[\"']?\s{0,3}[=:]\s{0,3}[\"']?\w{0,20})\s{1,3}([\w.~+/=-]+)", re.IGNORECASE
)
# Parts that make a URL a secret: the end of a Discord webhook, a signature, a bot's token.
_IN_ADDRESS = (
    re.compile(r"discord(?:app)?\.com/api/(?:v[0-9]{1,3}/)?webhooks/[0-9]{1,30}/([\w-]+)", re.IGNORECASE),
    re.compile(r"(?<![\w-])(?:sig|x-(?:amz|goog)-signature)=([\w%+/=.~-]{16,})", re.IGNORECASE),
    re.compile(r"/bot([0-9]{5,16}:[\w-]{30,})"),
)
_COOKIES = re.compile(r"(?<![^;:\s\"'])(?!(?:domain|expires|path)=)[^=;:\s\"']{1,200}+=([^;\s\"']+)", re.IGNORECASE)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY.*?(?:-----END[ A-Z0-9_-]{0,100}-----|\Z)", re.DOTALL
)
_REFERENCES = ("$", "<", "{", "%", "*", "-----")
_ONE_TOKEN = re.compile(r"(?!\.{0,2}/)[\w.=+/:~-]{14,}")
_MIXED = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{12,}")
_CHANGE = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_MIN_CHANGES = 5
_NAMES_CONTENT = re.compile(r"COMMIT|SHA|HASH|DIGEST|REVISION|CHECKSUM|VERSION|AUTHOR(?!I[SZ])")


def looks_secret(name: str) -> bool:
    """Return True if a variable of this name holds a secret, whatever its value."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if name in _NEVER_SECRET or words[-1] in _NO_VALUES:
        return False
    return any(word in _WORDS or (word.endswith(_ENDINGS) and word not in _ORDINARY_NAMES) for word in words)


def is_ordinary(value: str) -> bool:
    """Return True if a value is no secret even under a secret's name: a common word, or one repeated character."""
    return value.lower() in _ORDINARY_VALUES or len(set(value)) < 2


def secrets_within(name: str, value: str) -> Iterator[str]:
    """Yield the parts of a variable's value that are secrets by shape or position, whatever its name.

    These are private keys, tokens of known services, user information and signatures in URLs, cookies, and values that
    the text itself calls a password, key or token. A random-looking value counts if `name` hints at a secret or a
    service.
    """
    has_cookies = "COOKIE" in name.upper() or "cookie:" in value.lower()
    for found in (*_candidates(value), *(_COOKIES.findall(value) if has_cookies else ())):
        if not found.startswith(_REFERENCES) and not is_ordinary(found):
            yield found
    yield from (match[0] for match in _PRIVATE_KEY.finditer(value))
    if _hints(name) and _is_random(value):
        yield value


def _candidates(value: str) -> Iterator[str]:
    for match in _tokens().finditer(value):
        yield from match.group("token", 0)
    for scheme, userinfo in _USERINFO.findall(value):
        yield from _of_userinfo(scheme, userinfo)
    for pattern in (_USER_OPTION, _ASSIGNED, _BEARER, *_IN_ADDRESS):
        yield from pattern.findall(value)


def _of_userinfo(scheme: str, userinfo: str) -> Iterator[str]:
    user, colon, password = userinfo.partition(":")
    if colon and password:
        yield password
    elif not _NAMES_USERS.fullmatch(scheme) or _MIXED.search(user):
        yield user


@cache
def _tokens() -> re.Pattern[str]:
    # Services lengthen their tokens, so the rest of the word is part of the token.
    return re.compile(rf"(?<![A-Za-z0-9])(?P<token>{'|'.join(TOKENS)})[\w-]*+")


@cache
def _hinting() -> re.Pattern[str]:
    return re.compile("|".join(("ACCESS", "AUTH", "API", "CRED", "KEY", "PASS", "SECRET", "TOKEN", *SERVICES)))


def _hints(name: str) -> bool:
    bare = name.upper()
    return bool(_hinting().search(bare.replace("_", ""))) and not _NAMES_CONTENT.search(bare)


def _is_random(value: str) -> bool:
    if not _ONE_TOKEN.fullmatch(value) or "://" in value:
        return False
    letters_and_digits = re.sub(r"[^A-Za-z0-9]", "", value)
    return bool(_MIXED.search(value)) or len(_CHANGE.findall(letters_and_digits)) >= _MIN_CHANGES
