"""Files that code needs and a workspace lacks, such as a generated `_version.py` or the output of protoc."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
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
# What a compiler, an interpreter or a bundler says that it lacks; the group is the module or file.
_MISSING = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"\bno module named ['\"]?([\w.]+)",
        r"\bcannot import name ['\"](\w+)",
        r"\b(?:find|resolve) (?:module|import|package) ['\"`]?([^\s'\"`]+)",
        r"\bunresolved import ['\"`]?([\w:]+)",
        r"\bfile not found for module ['\"`]?(\w+)",
        r"\bfatal error: ['\"]?([^\s'\":]+)['\"]?:? (?:no such file|file not found)",
        r"\b(?:provides package|package) ([\w./-]+)(?: is not in std|;)",
    )
)
_MOST_LINE_CHARS = 2_000
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
    lines = [line for line in output.splitlines() if len(line) <= _MOST_LINE_CHARS]
    said = (found[1] for line in lines for words in _MISSING if (found := words.search(line)))
    missing = {part for module in said for part in re.split(r"[./\\:]+", module)}
    return tuple(path for path in paths if _module(path) in missing)


def _module(path: str) -> str:
    parts = PurePosixPath(path)
    name = parts.name.split(".", 1)[0]
    return parts.parent.name if name in _OF_FOLDER else name
