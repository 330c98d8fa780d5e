"""Parser of queries: words, places and symbols in a query, and whether it is about tests or documents."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.history.commit_message import plain
from agent_workbench.core.retrieval import CodeQuery
from agent_workbench.ranking.stems import stem
from agent_workbench.ranking.tokens import split_identifiers

# A query holds a description and the output of failing tests; repetition there does not mean importance.
_MOST_CHARS = 40_000
_MOST_WORDS = 300
_MOST_WORDS_OF_FAILING = 60
_MOST_REPEATS = 2
_MOST_PLACES = 40
_MOST_NAMES = 40
# Only the beginning tells if tests are wanted: the output of failing tests after it always mentions tests.
_SAID_CHARS = 400
# A path, and after it a line number as in Python tracebacks, compilers, .NET and shells.
_PLACE = re.compile(r"([\w.@+~/\\-]+)(?:\"?,? line (\d{1,7})|:(\d{1,7})|\((\d{1,7})\b)?")
_LONGEST_PATH = 1_000
# Lines with an error in the output of a failed command.
_TELLING = re.compile(
    r"error|exception|assert|fail|panic|expected|undefined|unknown|cannot|not found|^E\s", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,79}")
_CODE = re.compile(r"`{1,2}([^`\n]{1,80})`{1,2}|(?<!\w)([A-Za-z_]\w{2,79})\(")
_MIXED = re.compile(r"[a-z0-9][A-Z]")
_TEST_WORDS = frozenset({"test", "tests", "testing", "tested", "pytest", "unittest", "fixture", "fixtures", "spec"})
_DOCUMENT_WORDS = frozenset({"doc", "docs", "documentation", "document", "readme", "changelog", "guide", "tutorial"})
_INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules", "lib", ".cargo", "vendor"})
# A path that matches more files is ignored.
_MOST_NAMESAKES = 3


class MentionedPlace(Struct, frozen=True):
    """File and line (from 1; 0 for none) that a query mentions."""

    path: str
    line: int = 0


class ParsedQuery(Struct, frozen=True):
    """Parsed query: the `stems` of its words, repeated by weight, with the words as `written`, and what it mentions.

    `title` are the stems of its `first_line`; `names` are the words written as symbols.
    """

    stems: tuple[str, ...]
    written: Mapping[str, str]
    places: tuple[MentionedPlace, ...]
    of_tests: bool
    of_documents: bool
    title: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    first_line: str = ""


class PathLookup:
    """Lookup of paths by their last parts."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)

    def has(self, path: str) -> bool:
        """Return True if there is a file at exactly this path."""
        return path in self._paths

    def called(self, name: str) -> Sequence[str]:
        """Return the files whose path ends in this name."""
        return self._by_name.get(name, ())

    def meant_by(self, written: str) -> list[str]:
        """Return the files that a path in a text may mean, none if too many match.

        The path may be absolute, outside the repo, or the end of a path in it.
        """
        parts = [part for part in written.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
        # Below a folder of installed packages `setup.py` is foreign, and `flask/app.py` may be ours.
        least = 2 if len(parts) > 1 and _INSTALLED.intersection(parts) else 1
        for start in range(len(parts) - least + 1):
            if self.has(end := "/".join(parts[start:])):
                return [end]
        end = "/" + "/".join(parts)
        found = [path for path in self.called(parts[-1] if parts else "") if f"/{path}".endswith(end)]
        return sorted(found) if len(found) <= _MOST_NAMESAKES else []


def read_query(query: CodeQuery | str, names: PathLookup) -> ParsedQuery:
    """Return the parsed query; places are looked up in `names`."""
    asked = CodeQuery(query) if isinstance(query, str) else query
    text, failing = plain(_bounded(asked.text)).strip(), _bounded(asked.failing)
    written: dict[str, str] = {}
    words = _counted(text, written, _MOST_WORDS)
    for root, times in _counted(_telling(failing), written, _MOST_WORDS_OF_FAILING).items():
        words.setdefault(root, times)
    said = split_identifiers(text[:_SAID_CHARS])
    title = text.partition("\n")[0] or _telling(failing)[:_SAID_CHARS]
    return ParsedQuery(
        _repeated(words),
        written,
        tuple(_places(f"{_bounded(asked.text)}\n{failing}", names)),
        not _TEST_WORDS.isdisjoint(said),
        not _DOCUMENT_WORDS.isdisjoint(said),
        _repeated(_counted(title, written, _MOST_WORDS)),
        tuple(_names(f"{text}\n{_telling(failing)}")),
        title,
    )


def wanted_words(query: CodeQuery) -> tuple[str, ...]:
    """Return the stems that are looked for, as often as they count."""
    return read_query(query, PathLookup(())).stems


def _bounded(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS // 2] + "\n" + text[-_MOST_CHARS // 2 :]


def _telling(failing: str) -> str:
    """Return the lines with an error, the last ones first, because tools end with the summary."""
    lines = [line for line in failing.splitlines() if _TELLING.search(line[:_LONGEST_PATH])]
    return "\n".join(reversed(lines))


def _counted(text: str, written: dict[str, str], most: int) -> dict[str, int]:
    """Return the weights of the first `most` stems of a text; add to `written` how they were written."""
    counts: Counter[str] = Counter()
    for word, times in Counter(split_identifiers(text)).items():
        root = stem(word)
        if root in counts or len(counts) < most:
            counts[root] += times
            written.setdefault(root, word)
    return {root: min(times, _MOST_REPEATS) for root, times in counts.items()}


def _repeated(words: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(root for root, times in words.items() for _ in range(times))


def _names(text: str) -> Sequence[str]:
    """Return the words written as symbols: with inner underscores or capitals, called, or in backticks."""
    marked = {name for match in _CODE.finditer(text) for name in _IDENTIFIER.findall(match[1] or match[2])}
    found: dict[str, None] = {}
    for name in _IDENTIFIER.findall(text):
        if name in marked or "_" in name.strip("_") or _MIXED.search(name):
            found.setdefault(name)
    return list(found)[:_MOST_NAMES]


def _places(text: str, names: PathLookup) -> Iterator[MentionedPlace]:
    found: dict[MentionedPlace, None] = {}
    for match in _PLACE.finditer(text):
        written = match[1].rstrip(".")
        if len(written) > _LONGEST_PATH or not _looks_like_a_file(written):
            continue
        line = next((int(number) for number in match.group(2, 3, 4) if number), 0)
        for path in names.meant_by(written):
            found.setdefault(MentionedPlace(path, line))
        if len(found) >= _MOST_PLACES:
            break
    yield from found


def _looks_like_a_file(written: str) -> bool:
    """Return True for a word that looks like a file: `src/app`, `app.py`, `Makefile`, but not `app`."""
    return "/" in written or "\\" in written or "." in written or written[:1].isupper()
