"""Files that a workspace lacks, such as a generated `_version.py`, and packages that are not installed."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath

_CODE = {
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp"),
    *(".java", ".kt", ".scala", ".cs", ".swift", ".rb", ".php", ".ex", ".hs", ".zig", ".dart", ".lua"),
}
_COMPILED = {".so": ".py", ".pyd": ".py"}
# Folders of installed programs, of builds and of reports.
_NOT_SOURCES = {
    *("node_modules", "bower_components", "site-packages", "vendor", "venv", "env", "virtualenv", "__pycache__"),
    *("build", "dist", "target", "out", "bin", "obj", "coverage", "htmlcov", "logs", "log", "tmp", "temp", "cache"),
}
# What an interpreter, a bundler or a compiler says that it lacks; the group is the module or file. The first two tell
# of packages too.
_MISSING = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"\bno module named ['\"]?([\w.]+)",
        r"\b(?:find|resolve) (?:module|import|package) ['\"`]?([^\s'\"`]+)",
        r"\bcannot import name ['\"](\w+)",
        r"\bunresolved import ['\"`]?([\w:]+)",
        r"\bfile not found for module ['\"`]?(\w+)",
        r"\bfatal error: ['\"]?([^\s'\":]+)['\"]?:? (?:no such file|file not found)",
        r"\b(?:provides package|package) ([\w./-]+)(?: is not in std|;)",
    )
)
_MOST_LINE_CHARS = 2_000
_MOST_PACKAGES = 10
_NAMES_PACKAGES = re.compile(
    r"(?:.*/)?(?:pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|package\.json|.*requirements.*\.txt)"
)
# Files that are named by their folder.
_OF_FOLDER = {"__init__", "index", "mod"}


def ignored_sources(
    tracked: Iterable[str], ignored: Iterable[str], content: Callable[[str], Iterable[str]]
) -> tuple[str, ...]:
    """Return the ignored files beside tracked files of their kind, and the ignored folders of such files.

    In `ignored` a folder ends with a slash, as in the result it does not; `content` returns the paths in one. A name
    with control characters is left out: no setting can hold it.
    """
    beside: dict[str, set[str]] = defaultdict(set)
    below: dict[str, set[str]] = defaultdict(set)
    for path in map(PurePosixPath, tracked):
        if path.suffix in _CODE:
            beside[str(path.parent)].add(path.suffix)
            for folder in path.parents:
                below[str(folder)].add(path.suffix)
    found = []
    for name in filter(str.isprintable, ignored):
        path = PurePosixPath(name)
        kinds = (below if name.endswith("/") else beside).get(str(path.parent))
        if not kinds or any(_is_no_source(part) for part in path.parts):
            continue
        inside = map(PurePosixPath, content(str(path)) if name.endswith("/") else (name,))
        if any(_COMPILED.get(each.suffix, each.suffix) in kinds for each in inside):
            found.append(str(path))
    return tuple(sorted(found))


def _is_no_source(part: str) -> bool:
    return part.startswith(".") or part in _NOT_SOURCES or part.endswith(".egg-info")


def unlinked(wanted: Sequence[str], linked: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that are neither linked nor in a linked folder."""
    folders = tuple(f"{each.removesuffix('/')}/" for each in linked)
    return tuple(path for path in wanted if not f"{path.removesuffix('/')}/".startswith(folders))


def missed_sources(output: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return those of the paths that the output of a failed command names as missing, by the name of their module."""
    missing = {part for module in _missing(output, _MISSING) for part in re.split(r"[./\\:]+", module)}
    return tuple(path for path in paths if _module(path) in missing)


def names_packages(path: str) -> bool:
    """Return True for a file of a repository that lists the packages which its code needs (Python, JavaScript)."""
    return _NAMES_PACKAGES.fullmatch(path) is not None


def missing_packages(output: str, lists: Mapping[str, str], paths: Iterable[str]) -> dict[str, str]:
    """Return the packages that a failed command could not import, each with the file that lists it.

    `lists` are the texts of such files by their paths. A package is not found if its name is not that of its module,
    or that of a file or folder among the repository's `paths`.
    """
    found, own = {}, {part.partition(".")[0] for path in paths for part in path.split("/")}
    for module in islice(dict.fromkeys(_missing(output, _MISSING[:2])), _MOST_PACKAGES):
        # `yaml.nodes`, `lodash/get`, `@scope/name/part`; a path such as `./cart` is no package.
        name = re.match(r"@[\w.-]+/[\w-]+|\w[\w-]*", module)
        if name is None or name[0] in own:
            continue
        words = re.escape(name[0]).replace("_", "[-_.]")
        listed = re.compile(rf"(?<![\w/.-]){words}(?![\w/-])", re.IGNORECASE)
        if place := next((path for path, text in lists.items() if listed.search(text)), ""):
            found[name[0]] = place
    return found


def _missing(output: str, said: Iterable[re.Pattern[str]]) -> Iterator[str]:
    lines = [line for line in output.splitlines() if len(line) <= _MOST_LINE_CHARS]
    return (found[1] for line in lines for words in said if (found := words.search(line)))


def _module(path: str) -> str:
    parts = PurePosixPath(path)
    name = parts.name.split(".", 1)[0]
    return parts.parent.name if name in _OF_FOLDER else name
