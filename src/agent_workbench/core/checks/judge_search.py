"""Search for the judges of a task: files of the base that its acceptance commands name, call or are configured by."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePosixPath
from posixpath import normpath

from agent_workbench.core.checks.judges import is_config, subject
from agent_workbench.core.repo.path_kinds import is_test

MOST_JUDGES = 2_000
MOST_READ, MOST_BYTES = 100, 200_000
MOST_DEPTH = 3
_PUNCTUATION = frozenset("();<>|&")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_HINT_LIST = """
test tests testing testcase testcases testdata spec specs check checks checker verify verification expected expect
golden snapshot snapshots judge grade grader accept acceptance fixture fixtures validate
"""
_HINTS = frozenset(_HINT_LIST.split())
_OF_TESTS = frozenset(
    {"test", "tests", "testing", "testcase", "testcases", "testdata", "expected", "golden", "fixture", "fixtures"}
)
"""Hints that tell what is for tests wherever it is; a program may be called by the others for what it does."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "source", ".", "exec", "command"})
_INTERPRETERS = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|tsx|ts-node|Rscript)[\d.]*")
_SCRIPTS = frozenset({"", ".sh", ".bash", ".zsh", ".mk", ".bats"})
_MAKES = frozenset({"make", "gmake", "just"})
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile", "justfile", "Justfile", ".justfile")
_NODE_RUNNERS = frozenset({"npm", "yarn", "pnpm", "bun"})
_READER_LIST = """
grep egrep rg test [ [[ ls find cat head tail wc stat echo printf rm mkdir touch cp mv ruff flake8 mypy pylint black
isort pyright basedpyright ty eslint prettier biome tsc shellcheck yamllint bandit pydocstyle
"""
_READERS = frozenset(_READER_LIST.split())
"""Programs whose files judge nothing: these are read, written or linted."""
_CONFIG_OPTIONS = frozenset({"-c", "--config", "--config-file", "--configuration", "-p"})
_LITERAL = re.compile(r"[\"']([^\"'\n]{1,200})[\"']")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([.\w]+)(?:[ \t]+import[ \t]+([\w, \t]+))?", re.MULTILINE)
_SUFFIXES = (".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx", ".py", ".json")
_DATA_LIST = """
.json .jsonl .ndjson .csv .tsv .txt .yaml .yml .xml .dat .in .out .golden .expected .snap .npy .npz .parquet .pkl .bin
.gz
"""
_DATA = frozenset(_DATA_LIST.split())
_COMPUTED = re.compile(r"[^/]*[{}%$*<].*", re.DOTALL)
"""The part of a path that a test computes: `{name}.json`, `%s.json`, `*.json`."""
_LEAST_KEYWORD = 3


def _is_data(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _DATA


def _files_below(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the files below each folder; "" is the top."""
    below: dict[str, list[str]] = {}
    for path in files:
        for folder in PurePosixPath(path).parents:
            below.setdefault("" if str(folder) == "." else str(folder), []).append(path)
    return below


class JudgeSearch:
    """Search in the files of a base. `links` are its symbolic links with the paths that they lead to.

    Contents are not read here: `unread` says which are wanted, `read` takes them.
    """

    def __init__(self, files: Iterable[str], links: Mapping[str, str], suites: Iterable[str] = ()) -> None:
        """Begin a search. `suites` are the repository's own test commands: the folders of their tests are no judges."""
        self._files = dict.fromkeys(files)
        self._links = links
        self._suites = frozenset(suites)
        self._below = _files_below(self._files)
        self._data_folders = {each for each, below in self._below.items() if each and all(map(_is_data, below))}
        self._found: dict[str, None] = {}
        self._wanted: dict[str, tuple[str, int]] = {}
        self._scripts: set[str] = set()
        self._asked_scripts: set[str] = set()
        self._read = 0

    @property
    def found(self) -> tuple[str, ...]:
        """The judges found so far, tests and scripts before configuration."""
        own = dict.fromkeys(path for path in self._files if is_config(path))
        resolved = (self._resolved(path) for path in (*self._found, *own))
        both = dict.fromkeys(path for pair in zip((*self._found, *own), resolved, strict=True) for path in pair)
        return tuple(path for path in both if path in self._files)[:MOST_JUDGES]

    @property
    def unread(self) -> tuple[str, ...]:
        """Paths of judges whose content may name others."""
        room = MOST_READ - self._read
        return tuple(self._wanted)[: max(0, room)]

    def command(self, line: str, folder: str = "", depth: int = 0) -> None:
        """Take a command line that runs in `folder`."""
        whole = line in self._suites
        here = folder
        for each in _simple_commands(line):
            words = list(dropwhile(_is_prefix, each))
            if words[:1] == ["cd"] and len(words) > 1:
                here = _joined(here, words[1])
            elif words:
                self._simple(words, here, depth, whole=whole)

    def read(self, contents: Mapping[str, bytes]) -> None:
        """Take the contents of the files that were `unread`; those that are missing are passed over."""
        for path in self.unread:
            folder, depth = self._wanted.pop(path)
            self._read += 1
            text = contents.get(path, b"")[:MOST_BYTES].decode("utf-8", "replace")
            if path.endswith("package.json"):
                self._package(text, folder, depth)
            elif path in self._scripts:
                for line in text.replace("\\\n", " ").splitlines():
                    for place in dict.fromkeys((folder, _folder(path))):
                        self.command(line.strip().lstrip("@-+"), place, depth)
            else:
                self._support(text, path, depth)

    def _simple(self, words: Sequence[str], folder: str, depth: int, *, whole: bool) -> None:
        program = words[0].rpartition("/")[2]
        module = words[2] if len(words) > 2 and words[1] == "-m" else ""
        if program in _READERS or module in _READERS:
            return
        if program in _MAKES:
            self._makefile(words, folder, depth)
            return
        if program in _NODE_RUNNERS:
            self._asked_scripts |= {*words[1:], "test"}
            self._want(_joined(folder, "package.json"), folder, depth)
        before = ""
        runs = True
        for word in words:
            if " " in word and before == "-c" and depth < MOST_DEPTH:
                self.command(word, folder, depth + 1)
            elif before == "-k":
                self._keyword(word)
            elif before == "-m" or (before in _CONFIG_OPTIONS and self._module(word, folder, sure=True)):
                self._module(word, folder)
            else:
                self._word(word, folder, depth, runs=runs or before in _CONFIG_OPTIONS, whole=whole)
            name = word.rpartition("/")[2]
            if not word.startswith("-"):
                # The word after an interpreter is a script, flags aside.
                runs = name in _SHELLS or bool(_INTERPRETERS.fullmatch(name))
            before = word

    def _word(self, word: str, folder: str, depth: int, *, runs: bool, whole: bool) -> None:
        """Take a word that may be a path, a test's id, or an option with a path."""
        bare = word.partition("=")[2] if word.startswith("-") and "=" in word else word
        path = _joined(folder, bare.partition("::")[0].removesuffix("/...").rstrip("/"))
        path = path if path in self._files or path in self._below else self._resolved(path)
        if path in self._files:
            script = runs and PurePosixPath(path).suffix in _SCRIPTS
            if script or is_test(path) or _is_hinted(path):
                self._judge(path, folder, depth, script=script)
        elif path and path in self._below and not whole:
            for each in self._below[path]:
                if is_test(each):
                    self._judge(each, folder, depth)
        elif "." in bare and "/" not in bare:
            self._module(bare, folder)

    def _module(self, dotted: str, folder: str, *, sure: bool = False) -> bool:
        """Take a module, or a test in one; return True if there is one. `sure`: it is a judge by any name."""
        names = dotted.split(".")
        for size in range(len(names), 0, -1):
            stem = _joined(folder, "/".join(names[:size]))
            for path in (f"{stem}.py", f"{stem}/__main__.py"):
                if path in self._files and (sure or is_test(path) or _is_hinted(path)):
                    self._judge(path, folder, 0)
                    return True
        return False

    def _keyword(self, expression: str) -> None:
        """Take the files of tests that pytest's `-k` selects by their names."""
        names = {each.casefold() for each in re.findall(r"\w+", expression)} - {"and", "or", "not"}
        for path in self._files:
            stem = PurePosixPath(path).stem.casefold()
            if is_test(path) and any(len(name) >= _LEAST_KEYWORD and name in stem for name in names):
                self._judge(path, "", 0)

    def _makefile(self, words: Sequence[str], folder: str, depth: int) -> None:
        for before, word in pairwise(words):
            if before in {"-C", "--directory"}:
                folder = _joined(folder, word)
            elif before in {"-f", "--file", "--makefile", "--justfile"}:
                self._judge(_joined(folder, word), folder, depth, script=True)
        for name in _MAKEFILES:
            self._judge(_joined(folder, name), folder, depth, script=True)

    def _package(self, text: str, folder: str, depth: int) -> None:
        """Take the scripts of a package.json that the commands run."""
        try:
            scripts = json.loads(text).get("scripts", {})
        except (ValueError, AttributeError, RecursionError):
            return
        for name, line in scripts.items() if isinstance(scripts, dict) else ():
            base = name.removeprefix("pre").removeprefix("post")
            if isinstance(line, str) and {name, base} & self._asked_scripts and depth < MOST_DEPTH:
                self.command(line, folder, depth + 1)

    def _support(self, text: str, path: str, depth: int) -> None:
        """Take what a test or a script in another language imports or names of the files that tests need."""
        here = _folder(path)
        modules = [f"{module}.{name.strip()}" for module, names in _IMPORT.findall(text) for name in names.split(",")]
        for module in modules:
            names = [name for name in module.split(".") if name]
            for folder in ("", here):
                self._first("/".join(names), folder, depth, path) or self._first(
                    "/".join(names[:-1]), folder, depth, path
                )
        for literal in dict.fromkeys(_LITERAL.findall(text)):
            for folder in ("", here):
                self._first(literal, folder, depth, path)
                self._data(_COMPUTED.sub("", literal), folder)

    def _first(self, name: str, folder: str, depth: int, test: str) -> bool:
        """Take the file that `test` names, with any suffix, or the data of a folder, if tests need it; True if so."""
        stem = _joined(folder, name) if name.strip("./") else ""
        if not stem:
            return False
        path = next((each for each in (stem, *(stem + suffix for suffix in _SUFFIXES)) if each in self._files), "")
        wanted = [path] if path else [each for each in self._below.get(stem, ()) if not each.endswith(".py")]
        needed = [each for each in wanted if is_test(each) or _supports(each, test)]
        for each in needed:
            self._judge(each, folder, depth)
        return bool(needed)

    def _data(self, name: str, folder: str) -> None:
        """Take the data in a folder that a test names, or the file in one, if nothing but data is there."""
        stem = _joined(folder, name)
        below = stem if stem in self._below else _folder(stem) if stem in self._files else ""
        if below in self._data_folders:
            self._found |= dict.fromkeys(self._below[below] if stem == below else (stem,))
            self._data_folders -= {stem}  # All of it is found, however often it is named.

    def _judge(self, path: str, folder: str, depth: int, *, script: bool = False) -> None:
        path = path if path in self._files else self._resolved(path)
        if path not in self._files or path in self._found:
            return
        self._found[path] = None
        self._want(path, folder, depth, script=script)

    def _want(self, path: str, folder: str, depth: int, *, script: bool = False) -> None:
        path = self._resolved(path)
        if depth >= MOST_DEPTH or path not in self._files:
            return
        if script:
            self._scripts.add(path)
        if path.endswith((".py", "package.json", *_SUFFIXES)) or script:
            self._wanted.setdefault(path, (folder, depth + 1))

    def _resolved(self, path: str) -> str:
        """Return where a path leads through links of the repository."""
        for _ in range(8):
            link = next((each for each in _prefixes(path) if each in self._links), None)
            if link is None:
                break
            path = normpath(f"{self._links[link]}{path[len(link) :]}")
        return path


def _simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        tokens = list(reader)
    except ValueError:  # an open quote
        tokens = line.split()
    words: list[str] = []
    for token in tokens:
        if token and set(token) <= _PUNCTUATION:
            yield words
            words = []
        else:
            words.append(token)
    yield words


def _is_prefix(word: str) -> bool:
    return _ASSIGNMENT.match(word) is not None or word in {"env", "time", "!"}


def _is_hinted(path: str) -> bool:
    """Return True if the words of a path say that it is for checks."""
    return any(word.casefold() in _HINTS for word in _WORDS.findall(path))


def _supports(path: str, test: str) -> bool:
    """Return True if the name of a file that a test names says that it is for tests, and is not what `test` is about.

    `src/validate.js` and `grade_school.py` are programs. Any hint is enough beside the test, and in the name of a
    folder at the top, such as `verify/`.
    """
    if not _is_hinted(path) or _is_data(path):
        return _is_hinted(path)
    words = {word.casefold() for word in _WORDS.findall(path)}
    top, below, _ = path.partition("/")
    beside = f"{_folder(path)}/".startswith(f"{_folder(test)}/") if _folder(test) else "/" not in path
    own = not words.isdisjoint(_OF_TESTS) or bool(below and _is_hinted(top))
    return own or (beside and subject(path) != subject(test))


def _joined(folder: str, path: str) -> str:
    """Return a path of a command in `folder`, relative to the repository; empty for its root and what is outside."""
    joined = normpath(f"{folder}/{path}" if folder else path)
    return "" if joined == "." or joined.startswith(("..", "/")) else joined


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _prefixes(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:size]) for size in range(1, len(parts) + 1))
