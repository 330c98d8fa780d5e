"""Map of a repository for the first prompt: its languages, folders and tests, and the files nearest to a task."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.path_kinds import is_document, is_test

LEAST_PATHS, MOST_PATHS = 20, 40
PATHS_CHARS = 1_600
"""More than `LEAST_PATHS` are listed while they have no more characters than this."""
MAX_PATH_CHARS = 120
MAX_FOLDERS, MAX_LANGUAGES, MAX_TEST_FOLDERS = 10, 4, 3

LANGUAGES = {
    **dict.fromkeys((".py", ".pyi"), "Python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "JavaScript"),
    **dict.fromkeys((".ts", ".tsx", ".mts"), "TypeScript"),
    **dict.fromkeys((".c", ".h"), "C"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "C++"),
    **dict.fromkeys((".kt", ".kts"), "Kotlin"),
    **dict.fromkeys((".ex", ".exs"), "Elixir"),
    **dict.fromkeys((".sh", ".bash"), "shell"),
    ".go": "Go",
    ".rs": "Rust",
    ".java": "Java",
    ".cs": "C#",
    ".rb": "Ruby",
    ".php": "PHP",
    ".swift": "Swift",
    ".scala": "Scala",
    ".lua": "Lua",
    ".hs": "Haskell",
    ".pl": "Perl",
    ".r": "R",
    ".jl": "Julia",
    ".dart": "Dart",
}
# Files that no step reads.
_UNREAD = re.compile(
    r".*\.(png|jpe?g|gif|ico|webp|svg|pdf|zip|gz|xz|bz2|whl|jar|woff2?|ttf|otf|eot|mo|pyc|so|bin|lock|snap|min\.\w+|map)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LEAST_WORD = 3


class RepoMap(RecordedValue, frozen=True):
    """Layout of a repository, and the paths `near` a task, the nearest first.

    `languages` and `folders` are names with their numbers of files, the largest first; `tests` are folders of tests,
    and `test_command` runs them (empty: none is set).
    """

    files: int
    languages: tuple[tuple[str, int], ...] = ()
    folders: tuple[tuple[str, int], ...] = ()
    tests: tuple[str, ...] = ()
    test_command: str = ""
    near: tuple[str, ...] = ()


def map_repo(
    paths: Sequence[str], found: Sequence[str], words: str, test_command: str = "", *, most: int = MOST_PATHS
) -> RepoMap:
    """Return the map of a repository with these files.

    `found` are the files that the code search found for the task, the best first; `words` is the task's text. At
    most so many paths are listed, and none that cannot be shown on one line.
    """
    suffixes = (PurePosixPath(path).suffix.lower() for path in paths)
    languages = Counter(LANGUAGES[suffix] for suffix in suffixes if suffix in LANGUAGES)
    tests = Counter(_test_folder(path) for path in paths if is_test(path) and "/" in path and not is_document(path))
    shown = [path for path in paths if path.isprintable() and len(path) <= MAX_PATH_CHARS]
    return RepoMap(
        len(paths),
        tuple(languages.most_common(MAX_LANGUAGES)),
        tuple(_layout(shown)),
        tuple(folder for folder, _ in tests.most_common(MAX_TEST_FOLDERS) if folder.isprintable()),
        test_command,
        tuple(_bounded(_nearest(shown, found, words), most)),
    )


def _test_folder(path: str) -> str:
    """Return the outermost folder of a test that is one for tests, else the one that it is in."""
    folders = path.split("/")[:-1]
    named = (at for at, name in enumerate(folders) if is_test(f"{name}/x"))
    return "/".join(folders[: next(named, len(folders) - 1) + 1])


def _layout(paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the largest top folders with their numbers of files; one that holds a single folder is opened."""
    below: dict[str, list[str]] = {}
    for path in paths:
        top, slash, rest = path.partition("/")
        if slash:
            below.setdefault(top, []).append(rest)
    for top, rests in sorted(below.items(), key=lambda each: (-len(each[1]), each[0]))[:MAX_FOLDERS]:
        name, inside = top, rests
        while len({rest.partition("/")[0] for rest in inside}) == 1 and "/" in inside[0]:
            name = f"{name}/{inside[0].partition('/')[0]}"
            inside = [rest.partition("/")[2] for rest in inside]
        yield name, len(rests)


def _nearest(paths: Iterable[str], found: Sequence[str], words: str) -> list[str]:
    """Return the readable paths in the order of their distance to the task."""
    order = {path: at for at, path in enumerate(dict.fromkeys(found))}
    folders = {path.rpartition("/")[0] for path in order}
    stems = {_stem(path) for path in order}
    wanted = _words_of(words)

    def distance(path: str) -> tuple[int, int, int, str]:
        if path in order:
            return (order[path] - len(order), 0, 0, path)
        named = min(len(wanted & _words_of(path)), 3)
        document = is_document(path)
        near = 3 * (_stem(path) in stems) + 2 * named + (path.rpartition("/")[0] in folders) - 2 * document
        return (0, -near, document + path.count("/"), path)

    return sorted((path for path in paths if not _UNREAD.fullmatch(path)), key=distance)


def _stem(path: str) -> str:
    """Return the name of a file without suffix and without what makes it the name of a test."""
    stem = PurePosixPath(path).name.partition(".")[0]
    return re.sub(r"^(test_|tests_)|(_tests?|Tests?|Spec|_spec)$", "", stem) or stem


def _words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) >= _LEAST_WORD}


def _bounded(paths: Iterable[str], most: int) -> Iterator[str]:
    left = PATHS_CHARS
    for number, path in zip(range(most), paths, strict=False):
        left -= len(path) + 1
        if left < 0 and number >= LEAST_PATHS:
            return
        yield path
