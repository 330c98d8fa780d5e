"""Names of notes: a note's file is `<name>.md`, directly in the folder of the notes."""

import re

from agent_workbench.core.knowledge.notes import MAX_NAME_CHARS, check_note_name

FOLDER = "knowledge"
SUFFIX = ".md"
_SEPARATORS = re.compile(r"[^a-z0-9._]+")
_RUNS = re.compile(r"([._-])[._-]+")


def knowledge_folder(memory: str) -> str:
    """Return the folder of the notes, relative to the repo, in the folder `memory`."""
    return f"{memory.strip('/')}/{FOLDER}"


def note_path(memory: str, name: str) -> str:
    """Return the path of a note's file, relative to the repo."""
    return f"{knowledge_folder(memory)}/{name}{SUFFIX}"


def name_in_path(path: str) -> str:
    """Return the name of the note whose file has this path."""
    return path.rpartition("/")[2].removesuffix(SUFFIX)


def note_name(said: str) -> str:
    """Return the name of a note for a title or a file name: its base name, in lower case, joined by `-`.

    Raises `UsageError` if no name is left.
    """
    base = said.strip().replace("\\", "/").rpartition("/")[2].removesuffix(SUFFIX)
    plain = _RUNS.sub(r"\1", _SEPARATORS.sub("-", base.lower())).strip("._-")
    name = plain[:MAX_NAME_CHARS].strip("._-")
    check_note_name(name)
    return name


def auto_name(time: str) -> str:
    """Return the name of a note that nobody named: `YYYY-MM-DD-HHMMSS-auto` of a time in ISO 8601, UTC."""
    return f"{time[:10]}-{''.join(letter for letter in time[11:19] if letter.isdigit())}-auto"
