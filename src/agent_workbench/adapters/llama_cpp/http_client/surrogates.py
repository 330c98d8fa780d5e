"""Characters whose two UTF-16 halves come one by one."""

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class SurrogateJoiner:
    """Joins characters whose two UTF-16 halves came in two pieces; a half without its other becomes U+FFFD."""

    def __init__(self) -> None:
        self._waiting = ""

    def feed(self, text: str) -> str:
        """Return what can be shown of all text so far that was not returned yet."""
        text = self._waiting + text
        self._waiting = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        whole = text.removesuffix(self._waiting) if self._waiting else text
        return _joined(whole)

    def rest(self) -> str:
        """Return what still waited for its other half."""
        waiting, self._waiting = self._waiting, ""
        return _joined(waiting)


def _joined(text: str) -> str:
    if not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
