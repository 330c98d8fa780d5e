"""Events of the work: effects of approved actions, checks, checkpoints, commits, and the end of a task."""

from enum import StrEnum
from typing import ClassVar

from agent_workbench.core.checks.language_servers import Diagnostic
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.ids import CommitId, ProposalId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.playbooks import HostRecap, LintReport, PlaybookRequest, is_clean
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.repo.workspace import Checkpoint, MergeOutcome, ResourceUse


class CodeEvent(RecordedValue, frozen=True):
    """An event with lines of files in its field `shown`, which the next prompt has."""


class ActionStarted(RecordedValue, frozen=True):
    """An approved action is about to take effect."""

    proposal_id: ProposalId


class ActionResult(StrEnum):
    """Result of an action. `stopped`: the user ended it."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    STOPPED = "stopped"


class ActionFinished(CodeEvent, frozen=True):
    """An action ended. `observation` is the bounded text for the model, `output` the rest of the output.

    `shown` are the lines of files that the observation shows, `resources` what the commands of the action used.
    `diagnostics` are those that language servers found in the files of an applied diff, and not before it; the
    observation tells the first.
    """

    proposal_id: ProposalId
    result: ActionResult
    observation: str
    seconds: float = 0.0
    output: str = ""
    cut_bytes: int = 0
    shown: tuple[Chunk, ...] = ()
    resources: ResourceUse | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


class PatchApplied(CodeEvent, frozen=True):
    """Approved changes were applied; `tree` is the tree of all approved content.

    `shown` are the changed lines with their context as they now are, for the prompt.
    """

    proposal_id: ProposalId
    paths: tuple[str, ...]
    patch_sha: str
    tree: str
    shown: tuple[Chunk, ...] = ()


class StepUndone(CodeEvent, frozen=True):
    """The newest diff was undone: the workspace is at `tree`, as before that diff.

    `step` and `paths` are the diff's; `shown` are its lines with their context as they are again, for the prompt.
    `afresh`: the next prompt is the first one again, without this attempt.
    """

    proposal_id: ProposalId
    step: int
    paths: tuple[str, ...]
    tree: str
    shown: tuple[Chunk, ...] = ()
    afresh: bool = False


class CheckpointTaken(RecordedValue, frozen=True):
    """The exact content of the workspace was saved."""

    step: int
    checkpoint: Checkpoint


class TestsFinished(RecordedValue, frozen=True):
    """All acceptance commands and lint ran, in order.

    `restored_paths` are approved files that were put back; `removed_paths` are others that were removed before or
    after.
    """

    __test__: ClassVar[bool] = False  # the name would make pytest collect it

    purpose: CheckPurpose
    results: tuple[CheckResult, ...]
    restored_paths: tuple[str, ...] = ()
    removed_paths: tuple[str, ...] = ()


class PlaybookFinished(RecordedValue, frozen=True):
    """A run of a playbook ended; `tree` is the approved content that it ran on, `exit_code` is None if it was ended.

    `lint` is what ansible-lint finds after a failure.
    """

    proposal_id: ProposalId
    request: PlaybookRequest
    tree: str
    exit_code: int | None
    hosts: tuple[HostRecap, ...] = ()
    seconds: float = 0.0
    lint: LintReport | None = None

    @property
    def failed(self) -> bool:
        """True if the run failed on a host, did not reach one, or did not come to its end."""
        return self.exit_code != 0 or not is_clean(self.hosts)


class TaskCommitted(RecordedValue, frozen=True):
    """The approved changes were committed on the task's branch."""

    task: TaskId
    commit: CommitId
    branch: str
    message: str


class TaskMerged(RecordedValue, frozen=True):
    """The task's commit was merged into the user's branch."""

    task: TaskId
    outcome: MergeOutcome


class TaskRolledBack(RecordedValue, frozen=True):
    """The workspace was reset to its base; the attempts stay under `refs/agent/`."""

    task: TaskId
    to: CommitId
    reason: str


class TaskFinished(RecordedValue, frozen=True):
    """The task ended in this session."""

    task: TaskId
    status: TaskStatus
    reason: str
