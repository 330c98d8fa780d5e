"""Appliers of diffs: `git apply` and `patch` in temporary folders, and the workbench."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from msgspec import Struct

from bench.faults.change import GIT_ENVIRONMENT, Texts, read_texts, write_texts

_TIMEOUT_SECONDS = 60
OURS = (sys.executable, "-m", "bench.patch_adapter")
PROJECT = Path(__file__).resolve().parents[1]


class Attempt(Struct, frozen=True):
    """Result of applying one diff: the texts afterwards, the reported success, the duration, the output."""

    post: Texts
    succeeded: bool
    seconds: float
    said: str = ""


class Applier(Protocol):
    """Applier of diffs."""

    @property
    def name(self) -> str:
        """The name in reports."""
        ...

    def apply(self, patch: str, pre: Texts, paths: Sequence[str]) -> Attempt:
        """Apply the diff to these files; `paths` are all that are looked at afterwards."""
        ...


class Program(Struct, frozen=True):
    """A program that reads the diff from the file named last and changes the files of the folder it is started in."""

    name: str
    words: tuple[str, ...]

    def apply(self, patch: str, pre: Texts, paths: Sequence[str]) -> Attempt:
        """Write the files, run the program, and read them again."""
        with tempfile.TemporaryDirectory(prefix="peer-") as name:
            folder = Path(name) / "files"
            folder.mkdir()
            write_texts(folder, pre)
            diff = Path(name) / "damaged.diff"
            diff.write_bytes(patch.encode())
            started = time.perf_counter()
            # In a session of its own it finds no terminal, so that patch cannot ask there and takes its own defaults.
            done = subprocess.run(
                [*self.words, str(diff)],
                cwd=folder,
                env=GIT_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                start_new_session=True,
                check=False,
            )
            seconds = time.perf_counter() - started
            said = (done.stdout + done.stderr).decode(errors="replace").strip()
            return Attempt(read_texts(folder, dict.fromkeys(paths)), done.returncode == 0, seconds, said)


def programs() -> list[Program]:
    """Return the peers that are installed here."""
    known = [
        Program("git apply --recount", ("git", "apply", "--recount")),
        Program("git apply", ("git", "apply")),
        Program("patch -p1 --fuzz=3", ("patch", "-p1", "--fuzz=3", "--no-backup-if-mismatch", "-i")),
    ]
    return [program for program in known if shutil.which(program.words[0])]


class Adapter:
    """A program that answers lines of JSON: `{"id", "patch", "pre"}` with `{"id", "post", "repaired", "reason"}`.

    `pre` and `post` are texts by path, of files that exist; a file that `post` lacks was removed. `post` is null where
    the diff was refused. Close it, or use it as a context.
    """

    def __init__(self, words: Sequence[str] = OURS, name: str = "ours") -> None:
        self.name = name
        self._words = tuple(words)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])}
        self._process = subprocess.Popen(
            self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let the program end."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def apply(self, patch: str, pre: Texts, paths: Sequence[str]) -> Attempt:
        """Ask the program; raises RuntimeError where it gives no answer of this form."""
        present = {path: text for path, text in pre.items() if text is not None}
        started = time.perf_counter()
        question = json.dumps({"id": "1", "patch": patch, "pre": present})
        line = self._ask(question)
        seconds = time.perf_counter() - started
        try:
            answer = json.loads(line)
            post, reason, repaired = answer["post"], answer["reason"], answer["repaired"]
        except (ValueError, KeyError, TypeError) as error:
            raise RuntimeError(f"{' '.join(self._words)} answered {line[:200]!r}: {error}") from error
        if post is None:
            return Attempt(pre, False, seconds, str(reason))
        seen = {path: post.get(path) for path in {**dict.fromkeys(paths), **post}}
        return Attempt(seen, True, seconds, "; ".join(str(each) for each in repaired))

    def _ask(self, question: str) -> bytes:
        stdin, stdout = self._pipes()
        try:
            stdin.write(question.encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise RuntimeError(f"{' '.join(self._words)} ended without an answer (exit code {self._process.wait()})")
        return line

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the adapter's pipes are not open")
        return self._process.stdin, self._process.stdout
