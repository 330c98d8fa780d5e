"""Files by the lines that hold words of a query, as somebody with a plain text search would rank them."""

from collections.abc import Mapping, Sequence


class LineHits:
    """Texts in lower case by path; a word hits wherever it stands in a line."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {path: text.lower() for path, text in texts.items()}

    def ranked(self, words: Sequence[str], limit: int) -> list[str]:
        """Return the paths with the most different words, among these those with the most hits."""
        wanted = tuple(dict.fromkeys(word.lower() for word in words))
        found = []
        for path, text in self._texts.items():
            counts = [text.count(word) for word in wanted]
            if any(counts):
                found.append((-sum(map(bool, counts)), -sum(counts), path))
        return [path for _, _, path in sorted(found)[:limit]]
