"""Runner of git commands. Its environment and settings keep git from running programs that a repository configures."""

import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import NamedTuple

from msgspec import Struct

from agent_workbench.core.errors import RepoError, StorageError, WorkbenchError, WorkspaceError, partial_clone
from agent_workbench.core.patch.paths import shown
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.programs import find_program

# Since this version git takes settings from the environment, the only way to name every driver exactly.
OLDEST_GIT = (2, 31)
_INSTALL = "install git 2.31 or newer and see that it is on the PATH"

# Variables that git gets from our environment: the location of the user's settings, and the user's identity.
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
    # This file does not exist, so the parents of a commit are those that it names.
    "GIT_GRAFT_FILE": "/dev/null/grafts",
    "GIT_ATTR_NOSYSTEM": "1",
    # Overrides `protocol.*`: a partial clone would fetch missing objects with a command that the repository names.
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
    # A checkpoint that the journal names must survive a power cut as the journal does.
    ("core.fsync", "committed"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
)
# These settings disable a filter; with `required` a disabled filter would be a failure.
_BLANKS = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
# The slowest command takes some ten seconds in the largest repositories. A pipe in place of a file blocks forever.
DEADLINE_SECONDS = 120.0
_GRACE_SECONDS = 2.0
# A crafted pack makes git allocate without end: a delta that is its own base.
_MIN_MEMORY_BYTES, _MEMORY_SHARE = 2 << 30, 4
_STORAGE = re.compile(
    r"no space left|disk quota|read-only file system|file too large|permission denied|input/output error"
    r"|insufficient permission|unable to write|write error|too many open files",
    re.IGNORECASE,
)
# Commands that change nothing that anybody looks at: they read, write objects that no ref leads to, or an index of
# their own. Whatever else git does is held to the bounds of a command of the agent.
_READING = {
    *("cat-file", "check-attr", "check-ignore", "diff-files", "diff-index", "diff-tree", "for-each-ref", "log"),
    *("ls-files", "ls-tree", "merge-base", "rev-list", "rev-parse", "show-index", "status", "var"),
    *("commit-tree", "hash-object", "merge-tree", "write-tree"),
}
_WITH_OWN_INDEX = {"read-tree", "update-index"}
# Commands that look at no file of a checkout, so that no filter can run in them.
_UNFILTERED = {
    *("cat-file", "commit-tree", "config", "diff-tree", "for-each-ref", "log", "ls-tree", "merge-base", "rev-list"),
    *("rev-parse", "symbolic-ref", "update-ref", "var", "write-tree"),
}
_ASKING_CONFIG = {"--list", "--get", "--get-all", "--get-regexp"}
_MOST_PATH_BYTES = 10_000
_NAME = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_LOCKED = re.compile(r"unable to create '(.*\.lock)': file exists", re.IGNORECASE)


class GitResult(NamedTuple):
    """Result of a git command; `status` is negative if a signal ended it."""

    status: int
    out: bytes
    err: str


class GitProgram(Struct, frozen=True):
    """The installed git by its absolute path, and its version."""

    path: str
    version: tuple[int, ...]

    def run(
        self,
        arguments: Collection[str],
        *,
        environment: Mapping[str, str],
        stdin: bytes | None = None,
        seconds: float = DEADLINE_SECONDS,
    ) -> GitResult:
        """Run git with exactly this environment and return the result.

        Raises `RepoError` if git cannot be started, `StorageError` if it does not end within `seconds`.
        """
        try:
            # `subprocess.run` would kill git on Ctrl-C.
            with subprocess.Popen(
                [self.path, *arguments],
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in the terminal must not end git in the middle of a command.
                start_new_session=True,
                # Python ignores SIGXFSZ. If git ignores it too, it gets an error and removes its lock files.
                restore_signals=False,
            ) as process:
                limit_memory(process.pid)
                try:
                    out, err = process.communicate(stdin, timeout=seconds)
                except subprocess.TimeoutExpired:
                    _end(process)
                    raise _timeout_error(arguments, seconds) from None
        except OSError as error:
            raise RepoError(f"git could not be started ({self.path}): {error}", advice=_INSTALL) from error
        return GitResult(process.returncode, out, os.fsdecode(err))


def limit_memory(pid: int) -> None:
    """Limit the memory that git may allocate to a quarter of the machine's, at least 2 GiB (Linux)."""
    if sys.platform == "linux":
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = max(_MIN_MEMORY_BYTES, machine // _MEMORY_SHARE)
        with suppress(OSError, ValueError):  # git has ended, or a lower limit is in force
            resource.prlimit(pid, resource.RLIMIT_DATA, (limit, limit))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git and its child processes, after a moment in which git can remove its lock files."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _timeout_error(arguments: Collection[str], seconds: float) -> StorageError:
    command = next((each for each in arguments if not each.startswith("-") and "/" not in each), "")
    return StorageError(
        f"git {shown(command)} did not end within {seconds:g} s",
        advice="look for a named pipe in place of a file, or a file system that does not respond; then try again",
    )


def find_git(untrusted: str) -> GitProgram:
    """Return the git on the PATH, never one inside the folder `untrusted`; raise `RepoError` if none is usable."""
    path = find_program("git", os.environ.get("PATH", ""), untrusted)
    if path is None:
        raise RepoError("git was not found on the PATH", advice=_INSTALL)
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
    """Return the whole environment of a git process; `settings` override the configuration of the repository."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The commands used here need no other program; a name without a slash must not be found inside the repository.
    environment |= {"PATH": "/usr/bin:/bin"} | _FIXED
    # The last of a name counts, so those of the user come first.
    given = (*_given_settings(), *settings)
    environment["GIT_CONFIG_COUNT"] = str(len(given))
    for number, (name, value) in enumerate(given):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environment


def _given_settings() -> Iterator[tuple[str, str]]:
    """Yield the settings in the user's environment, which git obeys like those in the user's home."""
    count, words = os.environ.get("GIT_CONFIG_COUNT") or "0", os.environ.get("GIT_CONFIG_PARAMETERS", "")
    try:
        for number in range(int(count)):
            yield os.environ[f"GIT_CONFIG_KEY_{number}"], os.environ[f"GIT_CONFIG_VALUE_{number}"]
        for name, is_set, value in (word.partition("=") for word in shlex.split(words)):
            yield name, value if is_set else "true"
    except (KeyError, ValueError) as error:
        # The values may be secrets, such as headers with a token.
        why = f"{error.args[0]} is not set" if isinstance(error, KeyError) else f"{len(words)} bytes of parameters"
        raise RepoError(
            f"the git settings in the environment cannot be read: GIT_CONFIG_COUNT is {shown(count, 50)}, {why}",
            advice="correct GIT_CONFIG_COUNT and GIT_CONFIG_PARAMETERS, or unset them",
        ) from None


class Plumbing:
    """Git commands in one git directory; every filter is disabled that was configured when the first could run."""

    def __init__(self, program: GitProgram, git_dir: str) -> None:
        self.program = program
        self.git_dir = git_dir

    @cached_property
    def configured(self) -> tuple[tuple[str, str | None], ...]:
        """Names and values of the user's own settings and the repository's, read once. The last of a name counts."""
        where = ("-C", "/", f"--git-dir={self.git_dir}", "config", "--includes", "--list", "-z")
        result = self.program.run(where, environment=git_environment(()))
        if result.status:
            raise failure("config", result)
        records = (record.partition("\n") for record in os.fsdecode(result.out).split("\0")[:-1])
        return tuple((name, value if line_break else None) for name, line_break, value in records)

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """Names of the configured filters. Diff drivers do not matter: no command here uses one."""
        parts = (name.partition(".")[2].rpartition(".") for name, _ in self.configured if name.startswith("filter."))
        return tuple(dict.fromkeys(driver for driver, dot, _ in parts if dot))

    def attempt(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        git_dir: str = "",
        work_tree: str = "/",
        index: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> GitResult:
        """Run a git command and return its result, whatever its status.

        Commands that read files need `work_tree`; `index` replaces the index file of `git_dir`. Raises `TrustError` for
        one that changes a repository for a command of the agent which does not own it.
        """
        words = arguments[2:] if arguments[:1] == ("-c",) else arguments
        if _has_effect(words, index):
            self._check_record(git_dir or self.git_dir)
        filters = () if words[0] in _UNFILTERED else self.filters
        blanks = ((f"filter.{name}.{key}", value) for name in filters for key, value in _BLANKS)
        variables = git_environment((*_SETTINGS, *blanks)) | dict(environment or {})
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
        result = self.attempt(
            *arguments, stdin=stdin, git_dir=git_dir, work_tree=work_tree, index=index, environment=environment
        )
        if result.status:
            raise failure(arguments[0], result)
        return result.out

    @staticmethod
    def _check_record(git_dir: str) -> None:
        """Raise `TrustError` in a command of the agent unless the repository, with all its worktrees, is its own."""
        check_record(git_dir)
        with suppress(OSError):  # the git directory of the user's checkout has no such file
            shared = read_regular(f"{git_dir}/commondir", _MOST_PATH_BYTES)
            check_record(os.path.join(git_dir, os.fsdecode(shared.strip())))  # noqa: PTH118 - as git joins them

    def resolve(self, *revisions: str) -> list[str | None]:
        """Return the object id of each revision, None for an unknown one; one process resolves all of them."""
        if not revisions:
            return []
        # A line break would end the request, and no valid revision contains one.
        asked = "".join(f"{'' if chr(10) in revision else revision}\n" for revision in revisions)
        out = self.run("cat-file", "--batch-check=%(objectname)", stdin=os.fsencode(asked))
        # For an unknown revision git repeats the name and adds a word.
        return [os.fsdecode(line) if _NAME.fullmatch(line) else None for line in out.split(b"\n")[:-1]]

    def line(self, *arguments: str, git_dir: str = "") -> str:
        """Return the one line that a command prints, without the line break."""
        return os.fsdecode(self.run(*arguments, git_dir=git_dir)).removesuffix("\n")


def _has_effect(words: Sequence[str], index: str) -> bool:
    """Return True unless a git command is known to change nothing that anybody looks at."""
    command, named = words[0], [each for each in words[1:] if not each.startswith("-")]
    if command == "symbolic-ref":
        return len(named) > 1
    if command == "config":
        return _ASKING_CONFIG.isdisjoint(words)
    changes_files = "-u" in words and "--dry-run" not in words
    return command not in _READING and not (index and command in _WITH_OWN_INDEX and not changes_files)


def failure(command: str, result: GitResult) -> WorkbenchError:
    """Return the error for a git command that failed."""
    said = shown(result.err.strip().removeprefix("fatal: ") or f"status {result.status}", 500)
    if locked := _LOCKED.search(result.err):
        return WorkspaceError(
            f"git {command} failed: the lock file {shown(locked[1])} exists",
            advice="wait for the other git command; if none runs, remove the file",
        )
    if "promisor remote" in result.err:
        return partial_clone()
    if _STORAGE.search(result.err) or result.status == -signal.SIGXFSZ:
        return StorageError(f"git {command} failed: {said}", advice="check that the disk has space and is writable")
    return WorkspaceError(f"git {command} failed: {said}")
