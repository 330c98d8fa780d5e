"""Folder of one attempt: the repository of the task, snapshots of it, and the grading of these elsewhere."""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import psutil
from msgspec import Struct
from unidiff.patch import PatchSet

from bench.tasks.cases import IGNORED, TaskCase

# With these files a change could decide for itself whether it passes.
JUDGES = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "sitecustomize.py",
    "usercustomize.py",
)
SHOWN_LINES = 50
_MARK = "BENCH_ATTEMPT"
_IMPORT = re.compile(r"\s*(?:(?:import|from|#include|(?:const|let|var)\b.*\brequire\().*\s*)?")
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Bench",
    "GIT_AUTHOR_EMAIL": "bench@example.org",
    "GIT_COMMITTER_NAME": "Bench",
    "GIT_COMMITTER_EMAIL": "bench@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


class Ended(Struct, frozen=True):
    """A program that has ended: its exit code, output and duration, and whether its time was over."""

    code: int
    output: str
    seconds: float
    timed_out: bool


class Check(Struct, frozen=True):
    """How checks run: the interpreter, and the seconds after which one is aborted with a traceback."""

    python: str = sys.executable
    seconds: int = 30

    def plain(self, case: TaskCase) -> str:
        """Return the command line of a task."""
        packages = Path(self.python).parent.parent / "lib/node_modules"
        command = case.check.replace("{python}", shlex.quote(self.python))
        return command.replace("{node_modules}", shlex.quote(str(packages)))

    def bounded(self, case: TaskCase) -> str:
        """Return the same with the time limit, for programs that have none of their own."""
        return f"timeout -s ABRT -k 5 {self.seconds} env PYTHONFAULTHANDLER=1 {self.plain(case)}"

    def failing_output(self, case: TaskCase, folder: Path) -> str:
        """Return the beginning of the check's output in a folder."""
        return first_lines(self._run(self.bounded(case), folder, self.seconds + 15).output)

    def passes(self, case: TaskCase, folder: Path) -> bool:
        """Return True if the check passes in a folder; its limit is processor time, whatever else the machine does."""
        return self._run(f"ulimit -t {self.seconds}; {self.plain(case)}", folder, 10 * self.seconds).code == 0

    def _run(self, command: str, folder: Path, seconds: int) -> Ended:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.devnull,
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return run_program(("/bin/sh", "-c", command), folder, environment, seconds)


class Bed:
    """One attempt's folder: `repo`, and beside it `home` with everything that an agent writes for itself."""

    def __init__(self, folder: Path, case: TaskCase) -> None:
        self.folder, self.repo, self.home = folder, folder / "repo", folder / "home"
        self.case = case
        self.home.mkdir(parents=True)
        write_files(self.repo, {".gitignore": IGNORED, **case.files})
        self._git("init", "--quiet", "--initial-branch=main", ".")
        self._git("add", "--all", "--force")
        self._git("commit", "--quiet", "--message", "Begin")
        (self.home / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.org\n")
        (self.repo / ".git" / "info" / "exclude").write_text(".aider*\n/memory/\n/.agent.yml\n")
        self.base = self.snapshot()

    def environment(self, check: Check) -> dict[str, str]:
        """Return what an agent's process gets: no address but loopback, and nothing of the user's."""
        nowhere = "http://127.0.0.1:9"
        return {
            "PATH": os.pathsep.join([str(Path(check.python).parent), os.environ["PATH"]]),
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), nowhere),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        }

    def snapshot(self) -> str:
        """Return the tree of the files as they are now."""
        index = self.folder / f"index-{uuid.uuid4().hex}"
        try:
            self._git("add", "--all", index=index)
            return self._git("write-tree", index=index).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def difference(self, tree: str) -> bytes:
        """Return the diff from the base to a tree."""
        return self._git("diff", self.base, tree)

    @cached_property
    def solution(self) -> str:
        """The tree of the known solution. It is in no work tree and no commit."""
        index = self.folder / "index-solution"
        self._git("read-tree", self.base, index=index)
        for path, content in self.case.solution.items():
            blob = self._git("hash-object", "-w", "--stdin", content=content).decode().strip()
            self._git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", index=index)
        return self._git("write-tree", index=index).decode().strip()

    def places(self, tree: str) -> set[tuple[str, str]]:
        """Return the changed files outside of the tests, each with the heading of the function, as git finds it."""
        said = self._git("diff", "-U0", "--no-color", "--no-prefix", self.base, tree).decode(errors="replace")
        found, path = set(), ""
        for line in said.splitlines():
            if line.startswith(("--- ", "+++ ")):
                path = line[4:] if line[4:] != os.devnull else path
            elif line.startswith("@@ "):
                found.add((path, line.split("@@", 2)[2].strip()))
        return {place for place in found if place[0] not in self.case.tests}

    def stands_in(self, prompt: str) -> bool:
        """Return True if a place that the known solution changes, besides imports, is in a prompt with a line around.

        One line before and after is enough to tell the place, and a piece that is shown may end there.
        """
        said = self._git("diff", "-U1", "--no-color", self.base, self.solution).decode(errors="replace")
        for hunk in (hunk for file in PatchSet(said) for hunk in file):
            old = "".join(line.value for line in hunk.source_lines()).rstrip("\n")
            changed = (line.value for line in hunk if not line.is_context)
            if old.strip() and old in prompt and not all(map(_IMPORT.fullmatch, changed)):
                return True
        return False

    def touched_tests(self, tree: str) -> list[str]:
        """Return which tests, and files that configure them, differ in a tree from the base."""
        names = self._git("diff", "--name-only", "-z", self.base, tree).decode(errors="replace").split("\0")
        return [name for name in names if name in self.case.tests or name.rpartition("/")[2] in JUDGES]

    def grade(self, tree: str, check: Check) -> bool:
        """Return if a tree passes, in a folder of its own, with the tests and their configuration of the base."""
        packed = self._git("archive", "--format=tar", tree)
        with tempfile.TemporaryDirectory(prefix="grade-") as name:
            folder = Path(name)
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                archive.extractall(folder, filter="data")
            for path in [*folder.rglob("*")]:
                if path.name in JUDGES and path.is_file():
                    path.unlink()
            put_back = {
                path: text
                for path, text in self.case.files.items()
                if path in self.case.tests or path.rpartition("/")[2] in JUDGES
            }
            write_files(folder, put_back)
            return check.passes(self.case, folder)

    def _git(self, *arguments: str, index: Path | None = None, content: bytes = b"") -> bytes:
        environment = {"PATH": os.environ["PATH"], **_GIT, **({"GIT_INDEX_FILE": str(index)} if index else {})}
        return subprocess.run(
            ["git", *arguments], cwd=self.repo, env=environment, input=content, capture_output=True, check=True
        ).stdout


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by path, in place of what is there."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)


def first_lines(output: str) -> str:
    """Return the beginning of a check's output, as much as is shown to a model."""
    return "\n".join(output.splitlines()[:SHOWN_LINES])


def run_program(argv: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Ended:
    """Run a program to its end, or until its time is over; end all processes that it leaves behind."""
    mark = uuid.uuid4().hex
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env={**environment, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            timed_out = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        finally:
            _end_all(process.pid, mark)
            process.wait()
        took = time.perf_counter() - began
        output.seek(0)
        return Ended(process.returncode, output.read().decode(errors="replace"), took, timed_out)


def _end_all(group: int, mark: str) -> None:
    """Kill the process group, and processes outside of it that inherited the mark in their environment."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    killed = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(_MARK) == mark:
                process.kill()
                killed.append(process)
    psutil.wait_procs(killed, timeout=10)
