"""Runs every git command, in an environment and a configuration in which nothing that a repository brings is run."""

import os
import re
import signal
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from agent_workbench.core.errors import RepoError, StorageError, WorkbenchError, WorkspaceError
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.programs import find_program

# Settings can be handed over in the environment since then, which is the only way to name any driver exactly.
OLDEST_GIT = (2, 31)
_INSTALL = "install git 2.31 or newer and see that it is on the PATH"

# What git may know of the environment: where to look for the user's own settings, and who the user is.
_PASSED_ON = (
    *("HOME", "XDG_CONFIG_HOME", "TMPDIR", "TZ", "USER", "LOGNAME", "SUDO_UID", "EMAIL"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"),
)
_FIXED = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # No such file: parents are those that the commits name.
    "GIT_GRAFT_FILE": "/dev/null/grafts",
    "GIT_ATTR_NOSYSTEM": "1",
    # In a partial clone a missing object would be fetched with the command the repo names. It beats `protocol.*`.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.safecrlf", "false"),
    ("core.pager", "cat"),
    # A checkpoint that the journal names has to outlive a power cut as the journal does.
    ("core.fsync", "committed"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
)
# What makes a filter do nothing; `required` would turn its doing nothing into a failure.
_BLANKS = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
# The largest repositories take some ten seconds for the slowest command; a pipe in place of a file takes for ever.
DEADLINE_SECONDS = 120.0
_GRACE_SECONDS = 2.0
_STORAGE = re.compile(
    r"no space left|disk quota|read-only file system|file too large|permission denied|input/output error"
    r"|insufficient permission|unable to write|write error|too many open files",
    re.IGNORECASE,
)
_NAME = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_LOCKED = re.compile(r"unable to create '(.*\.lock)': file exists", re.IGNORECASE)


class Outcome(NamedTuple):
    """A git command that has ended; `status` is negative when a signal ended it."""

    status: int
    out: bytes
    err: str


class GitProgram(Struct, frozen=True):
    """The git that is run, by its absolute path."""

    path: str
    version: tuple[int, ...]

    def run(
        self,
        arguments: Collection[str],
        *,
        environment: Mapping[str, str],
        stdin: bytes | None = None,
        seconds: float = DEADLINE_SECONDS,
    ) -> Outcome:
        """Run git with these arguments in exactly `environment`, return what came.

        Raises `RepoError` if it cannot be started, `StorageError` when it does not end within `seconds`.
        """
        try:
            # Not `subprocess.run`, which kills what it started when a Ctrl-C comes.
            with subprocess.Popen(
                [self.path, *arguments],
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A Ctrl-C meant for us must not end git in the middle of something.
                start_new_session=True,
                # Python has SIGXFSZ ignored: so git sees an error, and takes its lock files away.
                restore_signals=False,
            ) as process:
                try:
                    out, err = process.communicate(stdin, timeout=seconds)
                except subprocess.TimeoutExpired:
                    _end(process)
                    raise _endless(arguments, seconds) from None
        except OSError as error:
            raise RepoError(f"git could not be started ({self.path}): {error}", advice=_INSTALL) from error
        return Outcome(process.returncode, out, os.fsdecode(err))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git and whatever it started; it has a moment to take its lock files away."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _endless(arguments: Collection[str], seconds: float) -> StorageError:
    command = next((each for each in arguments if not each.startswith("-") and "/" not in each), "")
    return StorageError(
        f"git {shown(command)} did not end within {seconds:g} s",
        advice="look for a named pipe in place of a file, or for a file system that does not answer; then try again",
    )


def find_git(untrusted: str) -> GitProgram:
    """Return the git on the PATH, never one from inside the folder `untrusted`; raise `RepoError` if none will do."""
    path = find_program("git", os.environ.get("PATH", ""), untrusted)
    if path is None:
        raise RepoError("git was not found", advice=_INSTALL)
    return _known_git(path)


@cache
def _known_git(path: str) -> GitProgram:
    said = GitProgram(path, ()).run(["version"], environment=git_environment()).out.decode(errors="replace")
    match = re.search(r"\d+(?:\.\d+)+", said)
    version = tuple(map(int, match[0].split("."))) if match else (0,)
    if version < OLDEST_GIT:
        raise RepoError(f"{path} is too old: {shown(said.strip())}", advice=_INSTALL)
    return GitProgram(path, version)


def git_environment(settings: Collection[tuple[str, str]] = _SETTINGS) -> dict[str, str]:
    """Return the whole environment git runs in, with `settings` over whatever the repo is configured to."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # git looks on the PATH for nothing that we ask of it; a name without a slash must not lead into the repo.
    environment |= {"PATH": "/usr/bin:/bin"} | _FIXED
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


class Plumbing:
    """Git commands on one git directory, with every filter blanked that was configured when this was made."""

    def __init__(self, program: GitProgram, git_dir: str) -> None:
        self.program = program
        self.git_dir = git_dir
        self._settings: tuple[tuple[str, str], ...] = _SETTINGS
        self.filters = _filters(self.run("config", "--includes", "--list", "--name-only", "-z"))
        self._settings += tuple((f"filter.{name}.{key}", value) for name in self.filters for key, value in _BLANKS)

    def attempt(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        git_dir: str = "",
        work_tree: str = "/",
        index: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Run a git command and return what came of it, whatever its status.

        `work_tree` matters to commands that look at files, `index` replaces the index file of `git_dir`.
        """
        variables = git_environment(self._settings) | dict(environment or {})
        if index:
            variables["GIT_INDEX_FILE"] = index
        where = ("-C", work_tree, f"--git-dir={git_dir or self.git_dir}", f"--work-tree={work_tree}")
        return self.program.run([*where, *arguments], environment=variables, stdin=stdin)

    def run(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        git_dir: str = "",
        work_tree: str = "/",
        index: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a git command as `attempt` does; raise `StorageError` or `WorkspaceError` when it fails."""
        outcome = self.attempt(
            *arguments, stdin=stdin, git_dir=git_dir, work_tree=work_tree, index=index, environment=environment
        )
        if outcome.status:
            raise failure(arguments[0], outcome)
        return outcome.out

    def resolve(self, *revisions: str) -> list[str | None]:
        """Return the object that each revision stands for, None where there is none; one process for all of them."""
        if not revisions:
            return []
        # A line would end where a revision has an end of line, and no such thing is there.
        asked = "".join(f"{'' if chr(10) in revision else revision}\n" for revision in revisions)
        out = self.run("cat-file", "--batch-check=%(objectname)", stdin=os.fsencode(asked))
        # What is not there is named again, with a word behind it.
        return [os.fsdecode(line) if _NAME.fullmatch(line) else None for line in out.split(b"\n")[:-1]]

    def line(self, *arguments: str, git_dir: str = "") -> str:
        """Return the one line a command answers with, without its end."""
        return os.fsdecode(self.run(*arguments, git_dir=git_dir)).removesuffix("\n")


def _filters(names: bytes) -> tuple[str, ...]:
    """Return the configured filters. Drivers of diffs do not matter: no diff is asked for in a form that needs one."""
    found: dict[str, None] = {}
    for name in os.fsdecode(names).split("\0"):
        kind, _, rest = name.partition(".")
        driver, dot, _ = rest.rpartition(".")
        if kind == "filter" and dot:
            found[driver] = None
    return tuple(found)


def failure(command: str, outcome: Outcome) -> WorkbenchError:
    """Return the error that says why a git command failed."""
    said = shown(outcome.err.strip().removeprefix("fatal: ") or f"status {outcome.status}", 500)
    if locked := _LOCKED.search(outcome.err):
        return WorkspaceError(
            f"git {command} failed: {shown(locked[1])} exists",
            advice="another git command runs there; wait for it, or remove the file if none does",
        )
    if _STORAGE.search(outcome.err) or outcome.status == -signal.SIGXFSZ:
        return StorageError(f"git {command} failed: {said}", advice="see that the disk has space and can be written")
    return WorkspaceError(f"git {command} failed: {said}")
