"""Keys of the agent's own comments: a hidden last line by which a comment is found again and replaced."""

import re

_KEY = re.compile(r"<!-- agent-workbench ([A-Za-z0-9._:/@-]{1,200}) -->")


def with_key(text: str, key: str) -> str:
    """Return the comment's body: its text, and the key in a last line that is not displayed."""
    return f"{text.strip()}\n\n<!-- agent-workbench {key} -->"


def split_key(body: str) -> tuple[str, str]:
    """Return text and key of a comment of the agent's account; only the last line can be a key."""
    lines = body.replace("\r\n", "\n").strip()
    text, _, last = lines.rpartition("\n")
    match = _KEY.fullmatch(last.strip())
    return (text.strip(), match[1]) if match else (lines, "")
