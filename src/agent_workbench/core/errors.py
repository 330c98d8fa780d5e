"""Errors that a user can meet: what failed, with which value, and what to do about it.

WorkbenchError
├── UsageError            an invalid command line or answer                         exit 2
├── ConfigError           an invalid setting, variable or flag                      exit 2
│   └── SkillError        a skill that is not there, or invalid                     exit 2
├── PlanError             the plan file                                             exit 2
├── ExtraMissing          an extra of the package, or one of its parts              exit 4
├── RepoError             not a repository, bare, no commits                        exit 4
├── TrustError            the repo brings something that is not trusted             exit 4
├── WorkspaceError        worktree, branch, checkpoint, commit, merge               exit 4
│   └── TargetMoved       the target branch of a merge changed since it was shown   exit 4
├── PatchError            a refused diff                                            exit 1
│   ├── VainChange        a change of nothing, or one that failed before            exit 1
│   ├── PartialRewrite    a rewriting that leaves out a part of its piece           exit 1
│   └── JudgeTouched      a diff of files that decide whether its task is done      exit 1
├── ShellError            a command that could not be started                       exit 4
│   └── SandboxError      no sandbox holds                                          exit 4
├── ToolError             a tool of a source that cannot be called                  exit 4
├── StorageError          disk full, read-only, a file changed by another process   exit 4
│   └── DatabaseDownError  the shared database does not answer                      exit 4
├── SigningError          ssh-keygen, the signing key, or the list of signers       exit 4
├── JournalError          a journal that cannot be read or written                  exit 6
│   └── LockedError       another process is writing                                exit 7
├── DecisionRefused       a decision about a proposal that changed or is decided    exit 1
├── ForgeError            the forge refuses or does not answer                      exit 4
└── ModelError            a model server                                            exit 5
    ├── ModelUnavailable  no server answers, or it died                             exit 5
    ├── ModelRefused      wrong key, unknown route, a refused request               exit 5
    └── ContextOverflow   the prompt is longer than the context                     exit 5
"""

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the `agent` process; docs/reference/exit-codes.md lists them."""

    DONE = 0
    """The request was carried out."""
    FAILED = 1
    """It was tried, and failed or found nothing."""
    USAGE = 2
    """The command line, a setting, the plan or a queue file is invalid."""
    PARKED = 3
    """A person is needed."""
    ENVIRONMENT = 4
    """The repository, its trust, the workspace, a command, the disk or a service is at fault."""
    MODEL = 5
    """There is no model, no answer, or a prompt that does not fit its context."""
    JOURNAL = 6
    """A session's journal cannot be read, written or verified."""
    LOCKED = 7
    """Another process holds the session or the task."""
    DIFFERS = 8
    """A repeated session differs from its record."""
    BROKEN = 70
    """A defect of the workbench; a traceback is on standard error."""
    INTERRUPTED = 130
    """Ctrl-C or a signal ended it; the same command continues a run."""


class WorkbenchError(Exception):
    """Root of all errors: `str(error)` says what failed, with the value; `advice` says what to do (or is empty).

    `page` is the page that helps, in the folder of the documentation (empty: none does). A class has one; an error
    that needs another one names it.
    """

    exit_code = ExitCode.BROKEN
    page = "how-to/troubleshooting.md"

    def __init__(self, what: str, *, advice: str = "", page: str = "") -> None:
        super().__init__(what)
        self.advice = advice
        self.page = page or type(self).page

    def __str__(self) -> str:
        return str(self.args[0])


def error_text(error: WorkbenchError) -> str:
    """Return an error as one text: what failed, and what to do."""
    return f"{error} ({error.advice})" if error.advice else str(error)


class UsageError(WorkbenchError):
    """A command line, or an answer, is invalid."""

    exit_code = ExitCode.USAGE
    page = ""


class ConfigError(WorkbenchError):
    """`.agent.yml`, the environment or a flag has an invalid value."""

    exit_code = ExitCode.USAGE
    page = "reference/settings.md"


class SkillError(ConfigError):
    """A skill is not there, or its files are invalid."""

    page = "how-to/skills.md"


class PlanError(WorkbenchError):
    """The plan file cannot be read, or lacks the requested task."""

    exit_code = ExitCode.USAGE
    page = "how-to/plans.md"


class ExtraMissing(WorkbenchError):
    """The libraries of an extra of the package, or the folder of a subject, are not installed."""

    exit_code = ExitCode.ENVIRONMENT
    page = "how-to/install.md"


class RepoError(WorkbenchError):
    """The folder is not a repository that can be worked in."""

    exit_code = ExitCode.ENVIRONMENT


class TrustError(WorkbenchError):
    """The repo has code or settings that would take effect and that the user has not trusted."""

    exit_code = ExitCode.ENVIRONMENT
    page = "how-to/trust.md"


class WorkspaceError(WorkbenchError):
    """A worktree, branch, checkpoint, commit or merge failed."""

    exit_code = ExitCode.ENVIRONMENT


class TargetMoved(WorkspaceError):
    """The target branch of a merge, or its commit, is not the approved one; nothing was changed."""


class PatchError(WorkbenchError):
    """A diff was refused; nothing of it was applied."""

    exit_code = ExitCode.FAILED
    page = ""


class VainChange(PatchError):
    """A change that leaves everything as it is, or that failed before on the same files."""


class PartialRewrite(PatchError):
    """A rewriting that leaves out a part of its piece."""


class JudgeTouched(PatchError):
    """A diff changes `paths`, which decide whether the task is done."""

    def __init__(self, paths: Sequence[str], part: str = "") -> None:
        which = ", ".join(path if path.isprintable() else ascii(path) for path in paths)
        decide = "decide" if len(paths) > 1 else "decides"
        super().__init__(
            f"{part}{which} {decide} whether this task is done, so it is read-only",
            advice="Leave it as it is and change the code that it checks. New tests go into a new file.",
        )
        self.paths = tuple(paths)


class ShellError(WorkbenchError):
    """A command could not be started. A command that failed is an outcome, not an error."""

    exit_code = ExitCode.ENVIRONMENT


class SandboxError(ShellError):
    """No sandbox holds, and nobody said to go on without one."""

    page = "how-to/sandbox.md"


class ToolError(WorkbenchError):
    """A tool that a source brings cannot be listed or called (a call that failed is a result, not an error)."""

    exit_code = ExitCode.ENVIRONMENT


class StorageError(WorkbenchError):
    """The disk is full or read-only, or another process changed a file."""

    exit_code = ExitCode.ENVIRONMENT


class SigningError(WorkbenchError):
    """Nothing can be signed or judged: `ssh-keygen`, the signing key, or the file of allowed signers."""

    exit_code = ExitCode.ENVIRONMENT
    page = "how-to/database.md"


class DatabaseDownError(StorageError):
    """The shared database cannot be reached; what was asked for may be tried again."""

    page = "how-to/database.md"


class JournalError(WorkbenchError):
    """A journal cannot be read, written or proved."""

    exit_code = ExitCode.JOURNAL


class LockedError(JournalError):
    """Another process holds the session or the task; `holder` names it."""

    exit_code = ExitCode.LOCKED
    page = "how-to/locked-sessions.md"

    def __init__(self, what: str, *, holder: str = "", advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.holder = holder


class DecisionRefused(WorkbenchError):
    """A decision does not count: the proposal was decided before, is another one now, or does not wait."""

    exit_code = ExitCode.FAILED


class ForgeError(WorkbenchError):
    """The forge refuses a request, or does not answer."""

    exit_code = ExitCode.ENVIRONMENT
    page = "how-to/forge.md"


def task_locked(task: str, holder: str) -> LockedError:
    """Return the error for a task that another session holds."""
    advice = "wait until it has ended, or end it; the lock is free as soon as that process is gone"
    return LockedError(f"{task} is being worked on by {holder}", holder=holder, advice=advice)


def nameless_author() -> RepoError:
    """Return the error for a commit that git has no author for."""
    return RepoError(
        "git would refuse to commit here: it knows no name and e-mail of yours",
        advice='git config --global user.name "Your Name" && git config --global user.email you@example.org',
    )


def partial_clone() -> RepoError:
    """Return the error for content that a partial clone has not fetched; the workbench fetches nothing."""
    return RepoError(
        "this is a partial clone, and objects that are needed were not fetched",
        advice="fetch all of them (git 2.36 or newer): git fetch --refetch --no-filter",
    )


class ModelError(WorkbenchError):
    """A model server gave no answer; `another`: the next endpoint of the role may.

    `retry_after_seconds` is when the server expects to be able to answer (0: it did not say). `dollars` is the cost of
    the partial answer. `lasting`: only a restart with other settings can help.
    """

    exit_code = ExitCode.MODEL
    page = "how-to/models.md"
    another = False
    retry_after_seconds = 0.0
    dollars = 0.0
    lasting = False


class ModelUnavailable(ModelError):
    """No server answers at the address, or it died; `partial` is the text received until then."""

    def __init__(self, what: str, *, advice: str = "", partial: str = "") -> None:
        super().__init__(what, advice=advice)
        self.partial = partial


class ModelRefused(ModelError):
    """The server answered and refused the request (key, route, parameter)."""


class ContextOverflow(ModelError):
    """The prompt is too long: `prompt_tokens` against `context_tokens` (0: not reported).

    `cut`: the server did not refuse it, but answered a part of it.
    """

    def __init__(
        self, what: str, *, prompt_tokens: int = 0, context_tokens: int = 0, cut: bool = False, advice: str = ""
    ) -> None:
        super().__init__(what, advice=advice)
        self.prompt_tokens = prompt_tokens
        self.context_tokens = context_tokens
        self.cut = cut
