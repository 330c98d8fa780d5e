"""Joining of UTF-16 surrogate pairs that arrive in two pieces."""

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class SurrogateJoiner:
    """Joins surrogate pairs that arrive in two pieces; an unpaired surrogate becomes U+FFFD."""

    def __init__(self) -> None:
        self._waiting = ""

    def feed(self, text: str) -> str:
        """Return all complete text that was not returned yet."""
        text = self._waiting + text
        self._waiting = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        whole = text.removesuffix(self._waiting) if self._waiting else text
        return _joined(whole)

    def rest(self) -> str:
        """Return what still waits for its second half."""
        waiting, self._waiting = self._waiting, ""
        return _joined(waiting)


def _joined(text: str) -> str:
    if not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
