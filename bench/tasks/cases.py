"""Tasks of public sets, read from a clone: a repository with a failing check, and a sentence."""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

IGNORED = b"__pycache__/\n*.pyc\n.pytest_cache/\n"


class TaskCase(Struct, frozen=True):
    """One task.

    `files` are the repository at its base, by path. `edits` are those that `words` name for the change; empty: none is
    named. `tests` decide, and are put back before each grading. `check` is a command line in which `{python}` stands
    for an interpreter. `solution` replaces files; it is never in the repository.
    """

    id: str
    words: str
    files: Mapping[str, bytes]
    edits: tuple[str, ...]
    tests: tuple[str, ...]
    check: str
    solution: Mapping[str, bytes]


class Clone:
    """A clone of a set, with a work tree or bare."""

    def __init__(self, folder: Path) -> None:
        self._git_dir = folder if (folder / "HEAD").is_file() else folder / ".git"
        self.commit = self.git("rev-parse", "HEAD").decode().strip()

    def git(self, *arguments: str) -> bytes:
        """Return the output of git; raise `SystemExit` where it fails."""
        done = subprocess.run(["git", f"--git-dir={self._git_dir}", *arguments], capture_output=True, check=False)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise SystemExit(f"git {arguments[0]} failed in {self._git_dir}: {said}")
        return done.stdout

    def files(self, *paths: str, commit: str = "HEAD") -> dict[str, bytes]:
        """Return the regular files below these paths, by path."""
        packed = io.BytesIO(self.git("archive", "--format=tar", commit, "--", *paths))
        found: dict[str, bytes] = {}
        with tarfile.open(fileobj=packed) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    found[member.name] = content.read()
        return found


_WRONG_OR_RIGHT = re.compile(r"if pytest\.use_correct:\n.*\nelse:\n    (.*)\n")


def quixbugs_cases(clone: Clone) -> Iterator[TaskCase]:
    """Give the Python programs of QuixBugs that have their cases as JSON."""
    files = clone.files("python_programs", "correct_python_programs", "python_testcases", "json_testcases")
    loader = "python_testcases/load_testdata.py"
    for cases in (path for path in files if path.startswith("json_testcases/")):
        name = Path(cases).stem
        program, test = f"python_programs/{name}.py", f"python_testcases/test_{name}.py"
        text = _WRONG_OR_RIGHT.sub(r"\1\n", files[test].decode()).replace("not pytest.run_slow and ", "")
        yield TaskCase(
            id=name,
            words=f"The test {test} fails because of a defect in {program}. "
            "Fix the program so that the test passes, and leave the test as it is.",
            files={
                program: files[program],
                test: text.encode(),
                cases: files[cases],
                loader: files[loader],
                ".gitignore": IGNORED,
            },
            edits=(program,),
            tests=(test, cases, loader),
            check=f"{{python}} -m pytest -q {test}",
            solution={program: files[f"correct_{program}"]},
        )
