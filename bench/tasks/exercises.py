"""Exercises of Exercism's Python track and of the polyglot benchmark, which are stubs with instructions and tests."""

import json
import shutil
from collections.abc import Iterator, Mapping

from msgspec import Struct

from bench.tasks.cases import IGNORED, Clone, TaskCase

_HIDDEN = (".meta/", ".docs/", ".approaches/", ".articles/")
_INSTRUCTIONS = (".docs/introduction.md", ".docs/instructions.md", ".docs/instructions.append.md")


class Runner(Struct, frozen=True):
    """How the tests of a language run: the programs that it takes, and a command line with `{tests}` and `{name}`.

    `nested`: the exercise is in a folder of its name, as its build file wants it.
    """

    programs: tuple[str, ...]
    check: str
    ignored: bytes = b""
    nested: bool = False


_PYTHON = Runner((), "{python} -m pytest -q {tests}")
# Languages whose exercises need nothing from a package index.
_RUNNERS: Mapping[str, Runner] = {
    "python": _PYTHON,
    "go": Runner(("go",), "go test ./..."),
    "cpp": Runner(
        ("cmake", "make", "c++"),
        "cmake -S {name} -B build -DEXERCISM_RUN_ALL_TESTS=1 >build.log 2>&1 && cmake --build build",
        b"build/\nbuild.log\n",
        nested=True,
    ),
}


def exercism_cases(clone: Clone) -> Iterator[TaskCase]:
    """Give the practice exercises of a track, without deprecated ones."""
    listed = json.loads(clone.files("config.json")["config.json"])["exercises"]["practice"]
    names = {each["slug"] for each in listed if each.get("status") != "deprecated"}
    for name, files in _by_exercise(clone, "exercises/practice/"):
        if name in names:
            yield _case(name, name, files, _PYTHON)


def polyglot_cases(clone: Clone) -> Iterator[TaskCase]:
    """Give the exercises of the languages whose programs are installed here."""
    for language, runner in _RUNNERS.items():
        if all(map(shutil.which, runner.programs)):
            for name, files in _by_exercise(clone, f"{language}/exercises/practice/"):
                yield _case(f"{language}/{name}", name, files, runner)


def _by_exercise(clone: Clone, folder: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    found: dict[str, dict[str, bytes]] = {}
    for path, content in clone.files(folder).items():
        name, _, rest = path.removeprefix(folder).partition("/")
        found.setdefault(name, {})[rest] = content
    yield from found.items()


def _case(task: str, name: str, files: Mapping[str, bytes], runner: Runner) -> TaskCase:
    known = json.loads(files[".meta/config.json"])["files"]
    at = f"{name}/" if runner.nested else ""
    edits, tests = (tuple(at + path for path in known[kind]) for kind in ("solution", "test"))
    told = [files[path].decode().strip() for path in _INSTRUCTIONS if path in files]
    work = (
        f"Implement this in {' and '.join(edits)}, so that the tests in {' and '.join(tests)} pass. The tests call "
        "what is there, so keep the names of its functions and classes. Use the standard library alone, and leave the "
        "tests as they are."
    )
    return TaskCase(
        id=task,
        words="\n\n".join([*told, work]),
        files={at + path: text for path, text in files.items() if not path.startswith(_HIDDEN)}
        | {".gitignore": IGNORED + runner.ignored},
        edits=edits,
        tests=(*tests, *(at + path for path in files if path == "CMakeLists.txt" or path.startswith("test/"))),
        check=runner.check.replace("{tests}", " ".join(tests)).replace("{name}", name),
        solution={
            target: files[path] for target, path in zip(edits, known.get("example", ()), strict=False) if path in files
        },
    )
