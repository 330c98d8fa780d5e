"""Files that most likely answer a query, found before there is an index: those that contain its words."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence

from agent_workbench.core.ports.workspace import Sources

MAX_FILES = 1_000
_SHORTEST_WORD = 3
_MAX_WORDS = 40
# A word in a path says more than one in a text.
_PATH_SHARE = 2.0
_MAX_LOOKED_AT, _LOOKED_AT_ONCE = 40_000, 500


async def find_likely(sources: Sources, paths: Sequence[str], words: Iterable[str]) -> Sequence[str]:
    """Return those of the files that have the most and rarest words, best first. Raises what `sources` raises."""
    likely, looked_at = LikelyFiles(words), paths[:_MAX_LOOKED_AT]
    for start in range(0, len(looked_at), _LOOKED_AT_ONCE):
        read = await sources.read_files(looked_at[start : start + _LOOKED_AT_ONCE])
        await asyncio.to_thread(likely.add, read)
    return await asyncio.to_thread(likely.best)


class LikelyFiles:
    """Counts of a query's words in files. Methods block."""

    def __init__(self, words: Iterable[str]) -> None:
        distinct = dict.fromkeys(word for word in words if len(word) >= _SHORTEST_WORD)
        self._words = [word.encode("utf-8", "surrogatepass") for word in list(distinct)[:_MAX_WORDS]]
        self._found: dict[str, tuple[list[int], list[int]]] = {}
        self._files_with = [0] * len(self._words)

    def add(self, files: Mapping[str, bytes]) -> None:
        """Look for the words in these files (path to content) and their paths."""
        for path, data in files.items():
            text, name = data.lower(), path.lower().encode("utf-8", "surrogatepass")
            inside = [number for number, word in enumerate(self._words) if word in text]
            named = [number for number, word in enumerate(self._words) if word in name]
            for number in inside:
                self._files_with[number] += 1
            if inside or named:
                self._found[path] = inside, named

    def best(self) -> Sequence[str]:
        """Return the files that have the most and rarest words, best first."""
        count = len(self._found) + 1
        weights = [math.log(count / (files or 1)) + 0.1 for files in self._files_with]
        scores = {
            path: sum(weights[number] for number in inside) + _PATH_SHARE * sum(weights[number] for number in named)
            for path, (inside, named) in self._found.items()
        }
        return sorted(scores, key=lambda path: (-scores[path], path))[:MAX_FILES]
