"""Parser of queries: words, places and symbols in a query, and whether it is about tests or documents."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from agent_workbench.adapters.retrieval.commit_index import without_trailers
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.ranking.tokens import STOP_WORDS, split_identifiers, stem

# A query holds a description and the output of failing tests; repetition there does not mean importance.
_MAX_CHARS = 40_000
_MAX_WORDS = 300
_MAX_WORDS_OF_FAILING = 60
_MAX_REPEATS = 2
_MAX_PLACES = 40
_MAX_NAMES = 40
_MAX_PAIRS = 80
# Only the beginning tells if tests are wanted: the output of failing tests after it always mentions tests.
_INTENT_CHARS = 400
# A path, and after it a line number as in Python tracebacks, compilers, .NET and shells.
_PLACE = re.compile(r"([\w.@+~/\\-]+)(?:\"?,? line (\d{1,7})|:(\d{1,7})|\((\d{1,7})\b)?")
_MAX_PATH_CHARS = 1_000
# Lines with an error in the output of a failed command.
_ERROR_LINE = re.compile(
    r"error|exception|assert|fail|panic|expected|undefined|unknown|cannot|not found|^E\s", re.IGNORECASE
)
# Lines in which a shell or a build tool, not the program, says that a command failed.
_SHELL_LINE = re.compile(
    r"\s*(\S*/)?(sh|bash|dash|zsh|ksh|fish|env|sudo|time|timeout|xargs|exec|make(\[\d{1,3}\])?)(\.exe)?: "
    r"|.{0,300}(: (command )?not found|: No such file or directory|: Permission denied)\s*$"
    r"|.{0,300}is not recognized as an internal or external command"
    r"|npm ERR!|\W*(error:?\s{1,9})?(command|process|script|task|recipe)\b.{0,200}"
    r"\b(exit(ed)?|failed|returned)\b.{0,40}\d{1,3}\W*$"
    r"|\W*exit(ed)?( with)?( code| status)?:? \d{1,3}\W*$",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,79}")
_CODE = re.compile(r"`{1,2}([^`\n]{1,80})`{1,2}|(?<!\w)([A-Za-z_]\w{2,79})\(")
# A name of a member, as `Cart.total` or `cart.total`.
_MEMBER = re.compile(r"(?<![\w.@/\\-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w@/\\-])")
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_MIXED = re.compile(r"[a-z0-9][A-Z]")
_TEST_WORDS = frozenset({"test", "tests", "testing", "tested", "pytest", "unittest", "fixture", "fixtures", "spec"})
_DOCUMENT_WORDS = frozenset({"doc", "docs", "documentation", "document", "readme", "changelog", "guide", "tutorial"})
_INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules", "lib", ".cargo", "vendor"})
# A path that matches more files is ignored.
_MAX_MATCHES = 3


class MentionedPlace(Struct, frozen=True):
    """File and line (from 1; 0 for none) that a query mentions."""

    path: str
    line: int = 0


class ParsedQuery(Struct, frozen=True):
    """Parsed query: the `stems` of its words, repeated by weight, with the words as `written`, and what it mentions.

    `title` are the stems of its `first_line`; `names` are the words written as symbols; `pairs` are the stems of names
    made of two neighbouring words.
    """

    stems: tuple[str, ...]
    written: Mapping[str, str]
    places: tuple[MentionedPlace, ...]
    of_tests: bool
    of_documents: bool
    title: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
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

    def with_name(self, name: str) -> Sequence[str]:
        """Return the files whose path ends in this name."""
        return self._by_name.get(name, ())

    def matching(self, written: str) -> list[str]:
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
        found = [path for path in self.with_name(parts[-1] if parts else "") if f"/{path}".endswith(end)]
        return sorted(found) if len(found) <= _MAX_MATCHES else []


def read_query(query: CodeQuery | str, names: PathLookup) -> ParsedQuery:
    """Return the parsed query; places are looked up in `names`."""
    asked = CodeQuery(query) if isinstance(query, str) else query
    failing = _without_shell_lines(_bounded(asked.failing))
    text = without_trailers(_bounded(asked.text)).strip() or failing
    written: dict[str, str] = {}
    words = _stem_weights(text, written, _MAX_WORDS)
    for stemmed, times in _stem_weights(_error_lines(failing), written, _MAX_WORDS_OF_FAILING).items():
        words.setdefault(stemmed, times)
    intent_words = split_identifiers(text[:_INTENT_CHARS])
    title = text.partition("\n")[0] or _error_lines(failing)[:_INTENT_CHARS]
    mentioned = tuple(_places(f"{_bounded(asked.text)}\n{failing}", names))
    return ParsedQuery(
        _repeated(words),
        written,
        tuple(dict.fromkeys((*_files(asked.files, names), *mentioned))),
        not _TEST_WORDS.isdisjoint(intent_words),
        not _DOCUMENT_WORDS.isdisjoint(intent_words),
        _repeated(_stem_weights(title, written, _MAX_WORDS)),
        tuple(_names(f"{text}\n{_error_lines(failing)}", {place.path.rpartition("/")[2] for place in mentioned})),
        _pairs(text),
        title,
    )


def query_words(query: CodeQuery) -> tuple[str, ...]:
    """Return the distinct stems of a query."""
    return tuple(dict.fromkeys(read_query(query, PathLookup(())).stems))


def _bounded(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS // 2] + "\n" + text[-_MAX_CHARS // 2 :]


def _without_shell_lines(failing: str) -> str:
    """Return the output without the words of the shell: it tells of a missing program, and never of code."""
    return "\n".join(line for line in failing.splitlines() if not _SHELL_LINE.match(line[:_MAX_PATH_CHARS]))


def _error_lines(failing: str) -> str:
    """Return the lines with an error, the last ones first, because tools end with the summary."""
    lines = [line for line in failing.splitlines() if _ERROR_LINE.search(line[:_MAX_PATH_CHARS])]
    return "\n".join(reversed(lines))


def _stem_weights(text: str, written: dict[str, str], limit: int) -> dict[str, int]:
    """Return the weights of the first `limit` stems of a text; add to `written` how they were written."""
    counts: Counter[str] = Counter()
    for word, times in Counter(split_identifiers(text)).items():
        stemmed = stem(word)
        if stemmed in counts or len(counts) < limit:
            counts[stemmed] += times
            written.setdefault(stemmed, word)
    return {stemmed: min(times, _MAX_REPEATS) for stemmed, times in counts.items()}


def _repeated(words: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(stemmed for stemmed, times in words.items() for _ in range(times))


def _names(text: str, files: Collection[str]) -> Sequence[str]:
    """Return the words written as symbols: with inner underscores or capitals, called, in backticks, or with a dot.

    `files` are names of files in the text, whose dots make no symbols.
    """
    marked = {name for match in _CODE.finditer(text) for name in _IDENTIFIER.findall(match[1] or match[2])}
    marked |= {name for each in _MEMBER.findall(text) if each not in files for name in _IDENTIFIER.findall(each)}
    found: dict[str, None] = {}
    for name in _IDENTIFIER.findall(text):
        if name in marked or "_" in name.strip("_") or _MIXED.search(name):
            found.setdefault(name)
    return list(found)[:_MAX_NAMES]


def _pairs(text: str) -> tuple[str, ...]:
    """Return the stems of the names that two neighbouring words may have as one."""
    found: dict[str, None] = {}
    for first, second in pairwise(_PLAIN.findall(text.lower())):
        if first not in STOP_WORDS and second not in STOP_WORDS:
            found.setdefault(stem(first + second))
            found.setdefault(f"{first}_{second}")
        if len(found) >= _MAX_PAIRS:
            break
    return tuple(found)[:_MAX_PAIRS]


def _files(paths: Sequence[str], names: PathLookup) -> Iterator[MentionedPlace]:
    for path in paths[:_MAX_PLACES]:
        if names.has(path):
            yield MentionedPlace(path)


def _places(text: str, names: PathLookup) -> Iterator[MentionedPlace]:
    found: dict[MentionedPlace, None] = {}
    for match in _PLACE.finditer(text):
        written = match[1].rstrip(".")
        if len(written) > _MAX_PATH_CHARS or not _looks_like_a_file(written):
            continue
        line = next((int(number) for number in match.group(2, 3, 4) if number), 0)
        for path in names.matching(written):
            found.setdefault(MentionedPlace(path, line))
        if len(found) >= _MAX_PLACES:
            break
    yield from found


def _looks_like_a_file(written: str) -> bool:
    """Return True for a word that looks like a file: `src/app`, `app.py`, `Makefile`, but not `app`."""
    return "/" in written or "\\" in written or "." in written or written[:1].isupper()
