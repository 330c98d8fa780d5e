"""Prompts of the user's own, which words such as `/fix 12` call by name, and their expansion."""

import re

from msgspec import Struct

FOLDER = "commands"
"""Folder of prompts, in the memory folder of a repository and in the user's configuration folder."""
SUFFIX = ".md"
_CALL = re.compile(r"/(?P<name>[a-z0-9][a-z0-9_-]{0,63})(?:\s+(?P<words>.*))?", re.DOTALL)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLACEHOLDER = re.compile(r"\$(?:(?P<all>ARGUMENTS)(?![A-Za-z0-9_])|(?P<number>[1-9])(?![0-9]))")
_WORD = re.compile(r'"(?P<held>[^"]*)"|(?P<plain>"?[^\s"]\S*|")')


class NamedCall(Struct, frozen=True):
    """Words that begin with `/`: the name after it, and the rest."""

    name: str
    words: str = ""


class CustomPrompt(Struct, frozen=True):
    """A prompt by its name: its text with placeholders, and the file that it is from, for messages.

    With a `problem` it cannot be called.
    """

    name: str
    text: str
    file: str
    description: str = ""
    problem: str = ""


def prompt_folder(memory_dir: str) -> str:
    """Return the folder of a repository's prompts."""
    return f"{memory_dir.strip('/')}/{FOLDER}"


def named_call(text: str) -> NamedCall | None:
    """Return the call that a text is, None for other words; a path such as `/etc/hosts` is no call."""
    match = _CALL.fullmatch(text.strip())
    return NamedCall(match["name"], (match["words"] or "").strip()) if match else None


def is_prompt_name(name: str) -> bool:
    """Return True for a name that can be called."""
    return bool(_NAME.fullmatch(name))


def expand(text: str, words: str) -> str:
    """Return a prompt's text with the words of a call in it.

    `$ARGUMENTS` is all words as they were typed. `$1` to `$9` are one word each, empty if there is none; double quotes
    hold words together. Without any of these the words follow the text. What is put in is not expanded again.
    """
    each = [match["plain"] if match["held"] is None else match["held"] for match in _WORD.finditer(words)]

    def value(match: re.Match[str]) -> str:
        if match["all"]:
            return words
        number = int(match["number"])
        return each[number - 1] if number <= len(each) else ""

    expanded, used = _PLACEHOLDER.subn(value, text)
    return expanded if used or not words else f"{expanded}\n\n{words}"
