"""Fields, facts and words of all kinds of proposals, and the values in their fields."""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Literal, TypeVar

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.patch.values import OWN_BOUNDS, HunkFate, Patch
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line


class Preimage(RecordedValue, frozen=True):
    """Content of a file when the proposal was shown: SHA-256 of its bytes, empty if it did not exist."""

    path: str
    sha: str


class SummaryEstimate(RecordedValue, frozen=True):
    """Estimated effect of a summary: tokens of the prompt `before` (0: unknown) and `after` it.

    The summary replaces the steps up to event `through_seq`; later ones stay as they are.
    """

    before: int
    after: int
    through_seq: int


class HunkVerdict(RecordedValue, frozen=True):
    """Decision about one hunk of a diff, and its position: path and number of its first line.

    `left` are the lines, with their signs, that were left out of a partly taken hunk.
    """

    id: str
    fate: HunkFate
    reason: str = ""
    path: str = ""
    line: int = 0
    left: tuple[str, ...] = ()


class SimilarNote(RecordedValue, frozen=True):
    """An existing note that a proposed one (`path`) repeats: its path and the beginning of its text."""

    path: str
    existing: str
    text: str


class UnattendedRule(StrEnum):
    """Decision about a proposal in an unattended run."""

    POLICY = "policy"
    """`auto` and rules approve it; otherwise the task is parked."""
    SANDBOX = "sandbox"
    """`auto` and rules approve it where a sandbox confines commands; without one it is rejected."""
    WORKBENCH = "workbench"
    """The workbench approves it: the task cannot continue without it."""
    PARKED = "parked"
    """It always waits for a person."""


class Risk(StrEnum):
    """Risk of a proposal, the highest first: it orders the inbox and decides nothing."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """Position in the order of the inbox, from 0."""
        return tuple(Risk).index(self)


KEEP_CHANGES = "keep_changes"
OFFER_NOTES = "offer_notes"
ANSWER_SERVER = "answer_server"
"""Tools with which the workbench proposes what a command changed, notes after a task, and the answer to a server."""
ProposalT = TypeVar("ProposalT", bound="ProposedAction")


def _tag(name: str) -> str:
    """Return the recorded kind of a class such as `DiffProposal`."""
    return name.removesuffix("Proposal").lower()


class ProposedAction(RecordedValue, frozen=True, dict=True, tag_field="kind", tag=_tag):
    """An action at the gate, of any kind; as a draft, it has no `id`, `tool` and `step` yet.

    `text` is the model's request, verbatim: a diff, a command, a commit message, or JSON arguments. `diff` is what
    would be applied or committed, computed by the workbench and shown; only it is carried out. `commands` are those of
    a check. `special` lists paths that need a second look (CI, settings, deletions, renames). `repaired` says, one
    sentence each, what was repaired in the model's diff.
    """

    kind: ClassVar[Permission]
    plural: ClassVar[str]
    """Name of several proposals of the kind."""
    words: ClassVar[str] = "{0.tool} {0.text}"
    """Format of a proposal in a few words."""
    doing: ClassVar[str] = ""
    """Format of the text about a running action; empty: the name of the tool."""
    rule_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that a rule may name, exactly one of them; none: no rule matches."""
    tool_words: ClassVar[str] = ""
    """Words before the tool that a rule names."""
    digest_chars: ClassVar[int] = 0
    """Length of the digest with which a rule names the tool of a source."""
    unattended: ClassVar[UnattendedRule] = UnattendedRule.POLICY
    opened_by: ClassVar[str] = ""
    """Flag of `agent run` that approves it."""
    edits: ClassVar[str] = ""
    """Name of the text that the user may edit before approving; empty: nothing."""
    suffix: ClassVar[str] = ""
    """Suffix of a file with that text."""
    has_own_text: ClassVar[bool] = False
    """True if the text is no part of the model's answer."""
    has_arguments: ClassVar[bool] = False
    """True if the text is the JSON arguments of a call."""
    special_reason: ClassVar[str] = ""
    """Reason why `special` needs a person's approval; empty: it does not."""
    between: ClassVar[str] = ", "
    """Text between two parts of `special`."""
    special_effect: ClassVar[str] = ""
    """Effect of `special`, which an approval of all of it also has to name; empty: it does not."""
    skips: ClassVar[bool] = False
    """True if the task can go on without it."""
    calls: ClassVar[bool] = False
    """True for the call of a source's tool: its arguments are shown in full, and a rule names the tool's spec."""
    runs_programs: ClassVar[bool] = False
    """True if it runs foreign programs: files that these change are put back and proposed."""
    runs_commands: ClassVar[bool] = False
    """True if it runs a command, now or as the acceptance command of a planned task; first, all files are reset."""
    stoppable: ClassVar[bool] = False
    """True if the user may stop it while it runs; any other is brought to its end."""
    stops_itself: ClassVar[bool] = False
    """True if a stop ends its processes alone, and the files are restored after it."""
    by_hunk: ClassVar[bool] = False
    """True for a diff of files of which the user may leave hunks out."""
    of_files: ClassVar[bool] = False
    """True if its diff is of files in the repository."""
    changes_code: ClassVar[bool] = False
    """True if its diff is a change of code: a consultant can review it, and exports always show it."""
    changes_nothing: ClassVar[bool] = False
    """True if a task that changes no files may have its tools."""
    about_work: ClassVar[bool] = False
    """True if its rejection says something about the work."""
    in_chat: ClassVar[bool] = False
    """True if a chat may have its tools."""
    local_only: ClassVar[str] = ""
    """Reason why only a person at this machine approves it; empty: others may."""
    risks: ClassVar[tuple[Risk, Risk]] = (Risk.LOW, Risk.LOW)
    """Risk in a sandbox, and without one."""
    tool_kind: ClassVar[Literal["read", "edit", "execute", "think", "other"]] = "other"
    """Kind of a tool call in the words of the Agent Client Protocol."""

    id: ProposalId = ProposalId("")
    tool: str = ""
    text: str = ""
    step: int = 0
    diff: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    edited: bool = False
    repaired: tuple[str, ...] = ()

    @cached_property
    def patch(self) -> Patch:
        """The parsed `diff`. It is not recorded: parsed once after a journal is read, and given by `with_patch` else.

        Raises `PatchError` if `diff` is not a diff, as in a proposal of another kind.
        """
        from agent_workbench.core.patch.patch_reader import parse_patch  # not every start needs it

        return parse_patch(self.diff, OWN_BOUNDS)

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """What a gate shows of the fields of its kind: an approval counts for nothing else."""
        return ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that are carried out."""
        return (self.text,)

    @property
    def described(self) -> str:
        """The proposal in a few words, for a log."""
        return self.words.format(self)

    @property
    def activity(self) -> str:
        """Text about the running action."""
        return self.doing.format(self) if self.doing else self.tool.replace("_", " ")

    def subject(self, between: str = ", ") -> str:
        """Return its subject for a list, with `between` two paths."""
        return self.text.strip().split("\n")[0]

    @property
    def named_paths(self) -> str:
        """The paths as a text."""
        return ", ".join(self.paths)

    @property
    def searchable(self) -> tuple[tuple[str, str], ...]:
        """Texts that a search in recordings finds, each with its label; none if they are in the model's answer."""
        return ((str(self.kind), self.text),) if self.has_own_text else ()

    @property
    def editable(self) -> bool:
        """True if its text can be edited, and has an effect."""
        return bool(self.edits)

    @property
    def is_question(self) -> bool:
        """True for a question of a server: only a person answers it, and a refusal is sent too."""
        return False

    @property
    def has_gaps(self) -> bool:
        """True if a value is missing in its text, so that it cannot be approved yet."""
        return False

    @property
    def ends_task(self) -> bool:
        """True if an abort ends its task."""
        return True

    @property
    def second_look(self) -> tuple[str, ...]:
        """Unusual files or commands that an approval of all of it also has to name."""
        return self.special if self.special_effect else ()

    def special_words(self, special: Sequence[str]) -> str:
        """Return the effect of an approval of these parts of `second_look`, as one line."""
        return f"{self.special_effect} {self.between.join(sanitize_line(each, 120) for each in special)}"

    @property
    def needs_person(self) -> str:
        """Reason why no rule or setting approves it, empty if there is none."""
        parts = self.between.join(self.special)
        return f"{self.special_reason}: {parts}" if self.special_reason and parts else ""

    @property
    def rule_tool(self) -> str:
        """The tool as a rule names it."""
        return self.tool

    @property
    def rule_lines(self) -> tuple[str, ...]:
        """The commands as a rule names them."""
        return self.commands

    @property
    def hunks(self) -> tuple[HunkVerdict, ...]:
        """The outcome of each hunk of another diff, of which this one is the user's selection."""
        return ()

    @property
    def plan(self) -> ProposedPlan | None:
        """The tasks that the model proposed."""
        return None

    @property
    def purpose(self) -> CheckPurpose | None:
        """Reason why checks are run."""
        return None

    @property
    def unreviewed_paths(self) -> tuple[str, ...]:
        """The paths of a commit or merge that are not exactly as the user approved them; none if unknown."""
        return ()

    def risk(self, *, foreign: bool, confined: bool) -> Risk:
        """Return the risk: what an approval without a close look could cost.

        A task from outside (`foreign`) makes it one level higher. `confined`: a sandbox holds for what it runs.
        """
        own = Risk.HIGH if self.special else self.risks[not confined]
        if own is Risk.LOW and (self.tool == KEEP_CHANGES or self.unreviewed_paths):
            own = Risk.MEDIUM
        return tuple(Risk)[max(0, own.rank - 1)] if foreign else own


class ToolCall(ProposedAction, frozen=True):
    """A call of a tool that a source may bring.

    `source` names it, `spec` is the digest of its spec, and `hints` are what the source says of the tool, which nobody
    verified.
    """

    rule_fields = ("tool",)
    stoppable = has_arguments = True

    source: str = ""
    spec: str = ""
    hints: tuple[str, ...] = ()

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """The source, if there is one."""
        return ("source", self.source, self.spec, *self.hints) if self.source else ()

    def subject(self, between: str = ", ") -> str:
        """Return the tool and its arguments."""
        return f"{self.tool} {self.text}"


class FileChanges(ProposedAction, frozen=True):
    """A change of files, of which hunks can be left out.

    `hunks`: the diff is the user's selection from another one, with the outcome of each of its hunks.
    """

    by_hunk = of_files = True
    tool_kind = "edit"

    hunks: tuple[HunkVerdict, ...] = ()

    def subject(self, between: str = ", ") -> str:
        """Return the changed files."""
        return between.join(self.paths)


class TaskChange(ProposedAction, frozen=True):
    """The whole change of a task, with a message.

    `reviewed`: the paths whose change is exactly what the user approved before (`core.state.reviewed_files`); None:
    unknown. `left_out`: what the user's own git would do, and the workbench does not.
    """

    edits, suffix = "message", ".txt"
    changes_code = has_own_text = True

    reviewed: tuple[str, ...] | None = None
    left_out: str = ""

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """What is left out, and the reviewed paths if they are known."""
        left_out = ("left out", self.left_out) if self.left_out else ()
        return left_out if self.reviewed is None else (*left_out, "reviewed", *self.reviewed)

    @property
    def described(self) -> str:
        """The first line of the message."""
        return f"{self.kind}: {self.text.splitlines()[0] if self.text else ''}"

    @property
    def unreviewed_paths(self) -> tuple[str, ...]:
        """The paths that are not exactly as the user approved them; none if unknown."""
        reviewed = frozenset(self.paths if self.reviewed is None else self.reviewed)
        return tuple(path for path in self.paths if path not in reviewed)


def with_patch(proposal: ProposalT, patch: Patch) -> ProposalT:
    """Return the proposal with the parsed `patch`; its text becomes the `diff` and is not parsed again."""
    proposal.__dict__["patch"] = patch
    return proposal
