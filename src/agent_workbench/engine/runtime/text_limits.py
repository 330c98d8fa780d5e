"""Limits on the length of texts; what was cut is stated."""


def clip(text: str, limit_chars: int) -> str:
    """Return `text` in about `limit_chars` characters: its head and tail, the cut stated."""
    if len(text) <= limit_chars:
        return text
    head = limit_chars * 2 // 3
    rest = limit_chars - head
    return f"{text[:head]}\n… {len(text) - limit_chars} characters cut …\n{text[-rest:]}"


def clip_line(text: str, limit_chars: int) -> str:
    """Return `text` on one line of at most `limit_chars` characters, its white space joined."""
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 1]}…"
