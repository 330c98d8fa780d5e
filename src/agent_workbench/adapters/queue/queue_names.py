"""Names of queued files: their form, what makes two of them the same, and names in place of odd ones."""

import os
import unicodedata
from hashlib import sha256
from pathlib import PurePath

MAX_NAME_BYTES = 200
SUFFIXES = (".yaml", ".yml")


def stem_of(name: str) -> str:
    """Return a name without its suffix."""
    return PurePath(name).stem


def key_of(name: str) -> str:
    """Return what two names of one task have in common."""
    return folded(stem_of(name) if name.endswith(SUFFIXES) else name)


def folded(name: str) -> str:
    """Return a name as a file system that ignores case and Unicode form compares it."""
    return unicodedata.normalize("NFC", name).casefold()


def name_problem(name: str) -> str:
    """Return why a queued file cannot have this name, empty if it can; it completes "the name …"."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is not UTF-8"
    if size > MAX_NAME_BYTES:
        return f"has more than {MAX_NAME_BYTES} bytes"
    if "/" in name or name.startswith("."):
        return "begins with a dot or has a slash"
    return "" if name.isprintable() else "has characters that cannot be printed"


def shown_name(name: str) -> str:
    """Return a name for a message and a document."""
    return "".join(each if each.isprintable() else "?" for each in name)[:MAX_NAME_BYTES]


def stored_name(name: str) -> str:
    """Return the name that a refused file gets: its own, unless that is odd."""
    if not name_problem(name):
        return name
    digest = sha256(os.fsencode(name)).hexdigest()[:8]
    plain = "".join(each if each.isascii() and each.isprintable() and each != "/" else "_" for each in stem_of(name))
    return f"{plain.lstrip('.')[:40]}-{digest}{PurePath(name).suffix}"
