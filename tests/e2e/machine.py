"""A user's machine: a home of its own, a clean environment, and the real command in real processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil
from msgspec import Struct, field

from tests.adapters.git.user import GIT_CONFIG, REFRESH, copy_repo
from tests.documented_json import assert_documented
from tests.e2e.zygote import Forked, Zygote, can_fork

LAUNCHER = Path(__file__).with_name("launcher.py")
CHECKOUT = Path(__file__).parents[2]
# How long what hangs is waited for, on a machine that has much else to do.
WAIT_SECONDS = 300.0
# Exit codes of `agent sessions verify` where nothing is wrong: green, or no commit names an event of it yet.
WHOLE = {0, 1}
# Safety promise G8: nothing of ours lives longer than this after us.
SURVIVAL_SECONDS = 1.0
POLL_SECONDS = 0.01
# Polls and not a clock: where the machine is busy, a poll waits for its turn as the processes that end do.
SURVIVAL_POLLS = round(SURVIVAL_SECONDS / POLL_SECONDS)
# Variables that Python reads when it starts; a fork of it would not notice them.
READ_AT_START = ("PYTHON", "LANG", "LC_")
# What a worker of the tests starts its commands with.
ZYGOTE = Zygote()


class Done(Struct, frozen=True):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """What `--json` printed, a value for each line; fails where a line is none."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the bodies of the printed events of a kind."""
        return [event["body"] for event in self.events if event["kind"] == kind]

    @property
    def said(self) -> str:
        return self.out + self.err


class Running(Struct):
    """A command that runs; what it prints goes to files, so that no pipe fills up."""

    process: subprocess.Popen[bytes] | Forked
    out: Path
    err: Path
    mark: Path
    family: set[psutil.Process] = field(default_factory=set)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until something holds; fail when the command ends before."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert self.process.poll() is None, f"it ended before {what}: {self.out.read_text()}{self.err.read_text()}"
            assert time.monotonic() < deadline, f"never: {what}"
            time.sleep(0.01)  # polled: another process sets no event here

    def until_halted(self) -> None:
        """Wait until the launcher stands at its halt."""
        self.until(self.mark.exists, "the halt")

    def release(self) -> None:
        """Let the launcher go on from its halt."""
        self.mark.unlink()

    def send(self, number: int) -> Done:
        """Send a signal and return how the command ended; its family is remembered for `survivors`.

        A fork that ended by itself was waited for by its zygote, so there is no process of that number any more.
        """
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            self.family = {*psutil.Process(self.process.pid).children(recursive=True)}
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> Done:
        """Return how the command ended."""
        code = self.process.wait(WAIT_SECONDS)
        return Done(code, self.out.read_text(), self.err.read_text())

    def survivors(self) -> list[psutil.Process]:
        """Return which of the processes below the command still live after the second they have."""
        for _ in range(SURVIVAL_POLLS):
            if not any(map(_lives, self.family)):
                break
            time.sleep(POLL_SECONDS)  # polled: processes that are not our children set no event here
        return [each for each in self.family if _lives(each)]


class Machine:
    """Somebody's home in `folder`; `environ` is what is set there besides the usual.

    Where the tests run there may be no sandbox, and few of them are about it: every `agent run` is `--unconfined`,
    which says nothing where one holds, unless the machine is `strict`. Where it `forks`, `agent` is not imported anew
    for each command.
    """

    def __init__(
        self, folder: Path, environ: Mapping[str, str] | None = None, *, strict: bool = False, forks: bool = False
    ) -> None:
        self.folder = folder
        self._strict = strict
        self._forks = forks and can_fork()
        self.home = folder / "home"
        self.state = folder / "state" / "agent-workbench"
        self.home.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(GIT_CONFIG)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "LANG": "C.UTF-8",
            # So that a repository need not say it, and has nothing that must be trusted first.
            "AGENT_PYTHON": sys.executable,
            # Beside that interpreter is ruff, which few tests are about, and which takes time to start.
            "AGENT_LANGUAGE_SERVERS": "[]",
            # Set where another copy of the package than the installed one is tried.
            **({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}),
            **(environ or {}),
        }
        self._started: list[subprocess.Popen[bytes] | Forked] = []

    def end(self) -> None:
        """End what was started and still runs."""
        for process in self._started:
            process.kill()
            process.wait(WAIT_SECONDS)

    def agent(self, *arguments: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Done:
        """Run `agent` to its end; what it prints as JSON has to be documented."""
        done = self._agent(arguments, cwd, environ)
        assert_documented(arguments, done.out)
        return done

    def _agent(self, arguments: Sequence[str], cwd: Path, environ: Mapping[str, str] | None) -> Done:
        if self._forks and not any(name.startswith(READ_AT_START) for name in environ or {}):
            folder = self._new_folder()
            with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
                process = self._fork(arguments, "", cwd, environ, out, err)
            return Running(process, folder / "out", folder / "err", folder / "halted").wait()
        # Warnings are shown, so that a test that looks at standard error sees what was not closed.
        command = [sys.executable, "-P", "-W", "default", "-m", "agent_workbench", *self._said(arguments)]
        return self.run(command, cwd, environ)

    def _new_folder(self) -> Path:
        folder = self.folder / f"run-{len(self._started)}"
        folder.mkdir()
        return folder

    def _fork(
        self,
        arguments: Sequence[str],
        plan: str,
        cwd: Path,
        environ: Mapping[str, str] | None,
        out: IO[bytes],
        err: IO[bytes],
    ) -> Forked:
        environ = {**self.environ, **(environ or {})}
        process = ZYGOTE.start(self._said(arguments), plan=plan, cwd=cwd, environ=environ, out=out, err=err)
        self._started.append(process)
        return process

    def _said(self, arguments: Sequence[str]) -> Sequence[str]:
        runs = arguments[:1] == ("run",) and len(arguments) > 1 and not self._strict
        return (*arguments, "--unconfined") if runs else arguments

    def run(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str] | None = None) -> Done:
        """Run any command to its end, with standard input empty."""
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(
        self,
        *arguments: str,
        cwd: Path,
        scripts: Mapping[str, Sequence[str]] | None = None,
        halt: str = "",
        environ: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        lease_seconds: float = 0.0,
    ) -> Running:
        """Start `agent` with a model that says `scripts`, and stays at `halt`; `prefix` is a command that starts it.

        `lease_seconds` is the lease of shared tasks (0: the usual one).
        """
        folder = self._new_folder()
        plan = folder / "plan.json"
        mark = folder / "halted"
        plan.write_text(
            json.dumps({"scripts": scripts or {}, "halt": halt, "mark": str(mark), "lease_seconds": lease_seconds})
        )
        paths = [str(CHECKOUT), self.environ.get("PYTHONPATH")]
        environ = {**(environ or {}), "PYTHONPATH": ":".join(filter(None, paths))}
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            if self._forks and not prefix:
                return Running(
                    self._fork(arguments, str(plan), cwd, environ, out, err), folder / "out", folder / "err", mark
                )
            process = subprocess.Popen(
                [*prefix, sys.executable, "-P", str(LAUNCHER), str(plan), *self._said(arguments)],
                cwd=cwd,
                env={**self.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self._started.append(process)
        return Running(process, folder / "out", folder / "err", mark)

    def scripted(
        self,
        scripts: Mapping[str, Sequence[str]],
        *arguments: str,
        cwd: Path,
        environ: Mapping[str, str] | None = None,
    ) -> Done:
        """Run `agent` to its end with a model that says `scripts`."""
        done = self.start(*arguments, cwd=cwd, scripts=scripts, environ=environ).wait()
        assert_documented(arguments, done.out)
        return done

    def git(self, repo: Path, *arguments: str) -> str:
        """Run git as the user would and return what it prints."""
        done = self.run(["git", *arguments], repo)
        assert done.code == 0, done.err
        return done.out.removesuffix("\n")

    def new_repo(self, name: str, files: Mapping[str, str]) -> Path:
        """Make a repository with one commit of these files."""
        repo = self.folder / name
        copy_repo(repo, files)
        self.git(repo, *REFRESH)
        return repo


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files with their folders."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def journal_lines(repo: Path, session: str = "") -> list[dict[str, Any]]:
    """Return the lines of a session's journal, of the only one when none is named."""
    path = journal_path(repo, session)
    return [json.loads(line) for line in path.read_text().splitlines()]


def journal_path(repo: Path, session: str = "") -> Path:
    """Return where a session's journal is."""
    (path,) = (repo / "memory/sessions").glob(f"{session or '*'}/journal.jsonl")
    return path


def bodies(lines: Iterable[Mapping[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the bodies of one kind."""
    return [line["body"] for line in lines if line["kind"] == kind]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
