"""A file's lines as hunks are compared with them."""

from collections.abc import Sequence
from functools import cached_property

_BLANK = " \t\r\f\v"
_TRIVIAL = frozenset(
    {"", "pass", "return", "else:", "else", "try:", "try", "finally:", "break", "continue", "end", "do", "then", "fi"}
    | {"break;", "continue;", "return;", "begin", "done", "default:", "return None", "return false;", "return true;"}
)


class Ground:
    """The lines of one file: `raws` with their ends as bytes, `bodies` without line feeds as text."""

    def __init__(self, data: bytes) -> None:
        self.raws = data.split(b"\n")
        last = self.raws.pop()
        self.raws = [raw + b"\n" for raw in self.raws] + ([last] if last else [])
        self.terminated = not last
        # Bytes that are no UTF-8 are letters that no diff can hold: they equal nothing and are written as they were.
        self.bodies = [raw.removesuffix(b"\n").decode(errors="surrogateescape") for raw in self.raws]
        self.keys = [key_of(body) for body in self.bodies]

    def __len__(self) -> int:
        return len(self.raws)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each line stands, compared without what is blank at its end."""
        return places_of(self.keys)

    @cached_property
    def stripped(self) -> list[str]:
        """The lines without what is blank at either end."""
        return [key.lstrip(_BLANK) for key in self.keys]

    @cached_property
    def stripped_places(self) -> dict[str, list[int]]:
        """Where each line stands, compared without what is blank at either end."""
        return places_of(self.stripped)

    @cached_property
    def ends(self) -> frozenset[bytes]:
        """The kinds of line ends in the file; both where it is mixed."""
        return frozenset(b"\r\n" if raw.endswith(b"\r\n") else b"\n" for raw in self.raws if raw.endswith(b"\n"))

    def is_open(self, at: int) -> bool:
        """Return whether the line at this index is the last one and has no line feed."""
        return at == len(self.raws) - 1 and not self.terminated

    def find(self, keys: Sequence[str], most: int = 50) -> list[int]:
        """Return every index where these lines stand one behind the other, up to so many."""
        return _find(keys, self.keys, self.places, most)

    def find_stripped(self, keys: Sequence[str], most: int = 50) -> list[int]:
        """Return every index where these lines, stripped, stand one behind the other, up to so many."""
        return _find(keys, self.stripped, self.stripped_places, most)


def key_of(body: str) -> str:
    """Return a line as it is compared: without what is blank at its end."""
    return body.rstrip(_BLANK)


def is_trivial(key: str) -> bool:
    """Return whether a line stands in many places of many files and tells nothing."""
    bare = key.strip()
    return bare in _TRIVIAL or not any(char.isalnum() for char in bare)


def places_of(keys: Sequence[str]) -> dict[str, list[int]]:
    """Return where each of these lines stands."""
    found: dict[str, list[int]] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    return found


def _find(wanted: Sequence[str], keys: list[str], places: dict[str, list[int]], most: int) -> list[int]:
    if not wanted or any(key not in places for key in wanted):
        return []
    seed = min(range(len(wanted)), key=lambda at: len(places[wanted[at]]))
    rows = list(wanted)
    size = len(rows)
    # Of a text of few different lines every place looks nearly right: its ends are compared first, they tell early.
    found = []
    for at in places[rows[seed]]:
        start = at - seed
        if start < 0 or start + size > len(keys) or keys[start] != rows[0] or keys[start + size - 1] != rows[-1]:
            continue
        if keys[start : start + size] == rows:
            found.append(start)
            if len(found) >= most:
                break
    return found
