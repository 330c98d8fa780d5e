"""Every error a user can meet: what failed, with which value, and what to do about it.

WorkbenchError
├── UsageError            a command line or an answer that makes no sense          exit 2
├── ConfigError           `.agent.yml`, environment or flags                        exit 2
├── PlanError             the plan file                                             exit 2
├── RepoError             not a repository, bare, no commits                        exit 4
├── TrustError            the repo brings something that was not trusted            exit 4
├── WorkspaceError        worktree, branch, checkpoint, commit, merge               exit 4
│   └── TargetMoved       the branch of a merge is not as it was shown
├── PatchError            a diff that is refused                                    exit 1
├── ShellError            a command that could not be run                           exit 4
├── ToolError             a tool of a source that cannot be called                  exit 4
├── StorageError          disk full, read-only, a file moved under us               exit 4
├── JournalError          a journal that cannot be read or written                  exit 6
│   └── LockedError       somebody else is writing                                  exit 7
├── DecisionRefused       a decision about something that waits, which does not count  exit 1
├── ForgeError            the forge refuses or does not answer                      exit 4
└── ModelError            the model's server                                        exit 5
    ├── ModelUnavailable  nothing answers, or it died
    ├── ModelRefused      wrong key, unknown route, a request it will not take
    └── ContextOverflow   the prompt is longer than the context
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the `agent` process tells its caller; the table in docs/exit-codes.md is made from this."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PARKED = 3
    ENVIRONMENT = 4
    MODEL = 5
    JOURNAL = 6
    LOCKED = 7
    DIFFERS = 8
    BROKEN = 70
    INTERRUPTED = 130


class WorkbenchError(Exception):
    """The root: `str(error)` says what failed with which value, `advice` what to do (may be empty)."""

    exit_code = ExitCode.BROKEN

    def __init__(self, what: str, *, advice: str = "") -> None:
        super().__init__(what)
        self.advice = advice

    def __str__(self) -> str:
        return str(self.args[0])


class UsageError(WorkbenchError):
    """A command line or an answer that makes no sense."""

    exit_code = ExitCode.USAGE


class ConfigError(WorkbenchError):
    """`.agent.yml`, the environment or a flag holds something that cannot be used."""

    exit_code = ExitCode.USAGE


class PlanError(WorkbenchError):
    """The plan file cannot be read, or does not hold what was asked for."""

    exit_code = ExitCode.USAGE


class RepoError(WorkbenchError):
    """This is not a repository that can be worked in."""

    exit_code = ExitCode.ENVIRONMENT


class TrustError(WorkbenchError):
    """The repo brings something that would run and that the user has not trusted."""

    exit_code = ExitCode.ENVIRONMENT


class WorkspaceError(WorkbenchError):
    """A worktree, branch, checkpoint, commit or merge could not be made."""

    exit_code = ExitCode.ENVIRONMENT


class TargetMoved(WorkspaceError):
    """The checked-out branch, or its commit, is not the one that a merge was approved for; nothing was changed."""


class PatchError(WorkbenchError):
    """A diff that is refused; nothing of it was applied."""

    exit_code = ExitCode.FAILED


class ShellError(WorkbenchError):
    """A command could not be run at all (one that ran and failed is an outcome, not an error)."""

    exit_code = ExitCode.ENVIRONMENT


class ToolError(WorkbenchError):
    """A tool that a source brings cannot be listed or called (a call that failed is a result, not an error)."""

    exit_code = ExitCode.ENVIRONMENT


class StorageError(WorkbenchError):
    """The disk is full or read-only, or a file was changed by somebody else."""

    exit_code = ExitCode.ENVIRONMENT


class JournalError(WorkbenchError):
    """A journal cannot be read, written or proved."""

    exit_code = ExitCode.JOURNAL


class LockedError(JournalError):
    """Somebody else holds the session or the task; `holder` says who."""

    exit_code = ExitCode.LOCKED

    def __init__(self, what: str, *, holder: str = "", advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.holder = holder


class DecisionRefused(WorkbenchError):
    """A decision does not count: the proposal was decided before, is another one now, or does not wait."""

    exit_code = ExitCode.FAILED


class ForgeError(WorkbenchError):
    """The forge refuses a request, or does not answer."""

    exit_code = ExitCode.ENVIRONMENT


def task_locked(task: str, holder: str) -> LockedError:
    """Return the error for a task that another session works on."""
    advice = "wait until it has ended, or end it; the lock is free as soon as that process is gone"
    return LockedError(f"{task} is being worked on by {holder}", holder=holder, advice=advice)


class ModelError(WorkbenchError):
    """The model's server could not give an answer; `another` says that the next of its role's endpoints may.

    `retry_after_seconds` is when the server itself will be able to (0: it did not say that it will), `dollars` what
    came of the answer has cost. `lasting`: it stays so until the workbench is started with other settings.
    """

    exit_code = ExitCode.MODEL
    another = False
    retry_after_seconds = 0.0
    dollars = 0.0
    lasting = False


class ModelUnavailable(ModelError):
    """Nothing answers at the address, or the server died; `partial` is what had come by then."""

    def __init__(self, what: str, *, advice: str = "", partial: str = "") -> None:
        super().__init__(what, advice=advice)
        self.partial = partial


class ModelRefused(ModelError):
    """The server answered, and will not take the request (key, route, parameter)."""


class ContextOverflow(ModelError):
    """The prompt does not fit: `prompt_tokens` against `context_tokens` (0 where the server did not say)."""

    def __init__(self, what: str, *, prompt_tokens: int = 0, context_tokens: int = 0, advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.prompt_tokens = prompt_tokens
        self.context_tokens = context_tokens
