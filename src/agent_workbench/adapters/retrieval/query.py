"""What a query asks for: words, places that it names, and whether it speaks of tests or documents."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from agent_workbench.ranking.stems import stem
from agent_workbench.ranking.tokens import split_identifiers

# A query holds a description and the output of failing tests; what is said again and again there is not more wanted.
_MOST_CHARS = 40_000
_MOST_WORDS = 300
_MOST_REPEATS = 2
_MOST_PLACES = 40
# What somebody asks for stands first; the output of failing tests behind it speaks of tests whatever is wanted.
_SAID_CHARS = 400
# A run of what paths are made of, and behind it a line as Python, compilers and .NET or shells write it.
_PLACE = re.compile(r"([\w.@+~/\\-]+)(?:\"?,? line (\d{1,7})|:(\d{1,7})|\((\d{1,7})\b)?")
_LONGEST_PATH = 1_000
_TEST_WORDS = frozenset({"test", "tests", "testing", "tested", "pytest", "unittest", "fixture", "fixtures", "spec"})
_DOCUMENT_WORDS = frozenset({"doc", "docs", "documentation", "document", "readme", "changelog", "guide", "tutorial"})
_INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules", "lib", ".cargo", "vendor"})
# By how many names a path of the query may be found: one that fits everything says nothing.
_MOST_NAMESAKES = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A file that the query names, and the line in it (from 1), 0 where it names none."""

    path: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """`stems` of its words, as often as they count, each with the word as it was `written`, and what else it says."""

    stems: tuple[str, ...]
    written: Mapping[str, str]
    places: tuple[Place, ...]
    of_tests: bool
    of_documents: bool


class Names:
    """The files there are, found by their path's end."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)

    def meant_by(self, written: str) -> list[str]:
        """Return the files that a path in a text means; none where too many would fit.

        It may be absolute, begin anywhere outside the repo, or be the end of a path in it.
        """
        parts = [part for part in written.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
        # In the folders of an installed package every `setup.py` is somebody else's, and `flask/app.py` may be ours.
        least = 2 if len(parts) > 1 and _INSTALLED.intersection(parts) else 1
        for start in range(len(parts) - least + 1):
            if (end := "/".join(parts[start:])) in self._paths:
                return [end]
        end = "/" + "/".join(parts)
        found = [path for path in self._by_name.get(parts[-1] if parts else "", ()) if f"/{path}".endswith(end)]
        return sorted(found) if len(found) <= _MOST_NAMESAKES else []


def read_query(text: str, names: Names) -> Query:
    """Return what `text` asks for, of the files in `names`."""
    text = text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS // 2] + "\n" + text[-_MOST_CHARS // 2 :]
    words = Counter(split_identifiers(text))
    said = split_identifiers(text[:_SAID_CHARS])
    stems: Counter[str] = Counter()
    written: dict[str, str] = {}
    for word, times in words.items():
        stems[stem(word)] += times
        written.setdefault(stem(word), word)
    wanted = list(stems.items())[:_MOST_WORDS]
    return Query(
        tuple(root for root, times in wanted for _ in range(min(times, _MOST_REPEATS))),
        written,
        tuple(_places(text, names)),
        not _TEST_WORDS.isdisjoint(said),
        not _DOCUMENT_WORDS.isdisjoint(said),
    )


def _places(text: str, names: Names) -> Iterator[Place]:
    found: dict[Place, None] = {}
    for match in _PLACE.finditer(text):
        written = match[1].rstrip(".")
        if len(written) > _LONGEST_PATH or not _looks_like_a_file(written):
            continue
        line = next((int(number) for number in match.group(2, 3, 4) if number), 0)
        for path in names.meant_by(written):
            found.setdefault(Place(path, line))
        if len(found) >= _MOST_PLACES:
            break
    yield from found


def _looks_like_a_file(written: str) -> bool:
    """Return whether a word may be meant as a file: `src/app`, `app.py`, `Makefile`, but not `app`."""
    return "/" in written or "\\" in written or "." in written or written[:1].isupper()
