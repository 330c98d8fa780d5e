"""The ways to read a diff's text, the strictest first."""

import html
import re

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.reader.hunk_bodies import Reading, as_loose
from agent_workbench.core.patch.reader.lenient import read_loosely
from agent_workbench.core.patch.reader.sections import read_sections

_ENTITIES = "characters written as HTML entities were read as what they stand for"
_QUOTES = "curly quotes were read as straight ones"
_CURLY = str.maketrans("“”‘’", "\"\"''")


def _read_strictly(text: str) -> Reading | None:
    sections = read_sections(text)
    if not sections:
        raise PatchError("the diff is empty", advice="Give at least one file with one hunk.")
    return Reading(tuple(map(as_loose, sections)))


def _read_entities(text: str) -> Reading | None:
    """Return the reading of a diff that was escaped as a whole: it has no angle bracket or bare ampersand left."""
    if not re.search(r"&(?:lt|gt|amp|quot|#39|#x27);", text) or re.search(r"[<>]|&(?!\w+;|#\w+;)", text):
        return None
    reading = read_loosely(html.unescape(text))
    return Reading(reading.files, (*reading.repairs, _ENTITIES), translated=True)


def _read_quotes(text: str) -> Reading | None:
    """Return the reading of a diff whose quotes were all made curly."""
    if not re.search("[“”‘’]", text) or '"' in text or "'" in text:
        return None
    reading = read_loosely(text.translate(_CURLY))
    return Reading(reading.files, (*reading.repairs, _QUOTES), translated=True)


READERS = (_read_strictly, read_loosely, _read_entities, _read_quotes)
"""Each returns what it reads, None where the text is nothing for it; or raises `PatchError`."""
