"""The kinds of proposals: each type owns the facts, fields and words of its kind."""

import re
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TypeAlias, get_args

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.playbooks import PlaybookRun
from agent_workbench.core.proposed_action import (
    ANSWER_SERVER,
    KEEP_CHANGES,
    OFFER_NOTES,
    FileChanges,
    ProposedAction,
    Risk,
    SimilarNote,
    SummaryEstimate,
    TaskChange,
    ToolCall,
    UnattendedRule,
)
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.text.amounts import counted_text

_GAP = re.compile(r'^ *"(?:[^"\\]|\\.)*": null,?$', re.MULTILINE)


class ReadProposal(ToolCall, frozen=True):
    """A call of a tool that only reads, or writes a note of the task."""

    kind = Permission.READ
    plural = "reads"
    tool_words = "tool"
    changes_nothing = in_chat = True
    tool_kind = "read"


class DiffProposal(FileChanges, frozen=True):
    """A change of files in the workspace."""

    kind = Permission.DIFF
    plural = "diffs"
    words, doing = "diff of {0.named_paths}", "applying the diff"
    rule_fields = ("paths",)
    opened_by = "--yes"
    edits, suffix = "diff", ".diff"
    special_reason, special_effect = "these files need a person's approval", "this changes"
    changes_code = about_work = True

    @property
    def searchable(self) -> tuple[tuple[str, str], ...]:
        """The diff that a command left; any other is in the model's answer."""
        return (("diff", self.diff),) if self.tool == KEEP_CHANGES else ()

    @property
    def editable(self) -> bool:
        """True unless a command made the change."""
        return self.tool != KEEP_CHANGES


class KnowledgeProposal(FileChanges, frozen=True):
    """Notes that outlive a task. `similar`: notes that these repeat; `origins` say where these come from."""

    kind = Permission.KNOWLEDGE
    plural = "knowledge changes"
    words, doing = "notes {0.named_paths}", "writing a note"
    rule_fields = ("any",)
    edits, suffix = "note", ".md"
    special_reason = "these notes exist already"
    skips = in_chat = True

    similar: tuple[SimilarNote, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """The similar notes and the origins."""
        similar = (part for each in self.similar for part in ("similar", each.path, each.existing, each.text))
        return (*similar, *(part for each in self.origins for part in ("origin", each)))

    @property
    def searchable(self) -> tuple[tuple[str, str], ...]:
        """The notes."""
        return (("knowledge", self.diff),)

    @property
    def ends_task(self) -> bool:
        """True for a note of a task that runs."""
        return self.tool != OFFER_NOTES


class CheckProposal(ProposedAction, frozen=True):
    """A run of tests and lint, and its `purpose`."""

    kind = Permission.CHECK
    plural = "checks"
    rule_fields = ("commands", "any")
    opened_by = "--yes"
    skips = runs_commands = stoppable = stops_itself = changes_nothing = True
    risks = (Risk.LOW, Risk.HIGH)
    tool_kind = "execute"

    purpose: CheckPurpose | None = None

    @property
    def described(self) -> str:
        """The purpose and the commands."""
        return f"{self.purpose.label if self.purpose else 'checks'}: {self.subject()}"

    @property
    def activity(self) -> str:
        """The number of commands."""
        return f"running {counted_text(len(self.commands), 'check')}"

    def subject(self, between: str = ", ") -> str:
        """Return the commands."""
        return "; ".join(self.commands)

    @property
    def searchable(self) -> tuple[tuple[str, str], ...]:
        """The commands."""
        return (("checks", "\n".join(self.commands)),)


class CommandProposal(ProposedAction, frozen=True):
    """A command line in the workspace."""

    kind = Permission.COMMAND
    plural = "commands"
    words, doing = "command {0.text}", "running {0.text}"
    rule_fields = ("commands", "program")
    unattended = UnattendedRule.SANDBOX
    opened_by = "--commands"
    edits, suffix = "command", ".sh"
    skips = runs_programs = runs_commands = stoppable = stops_itself = about_work = True
    risks = (Risk.MEDIUM, Risk.HIGH)
    tool_kind = "execute"

    @property
    def rule_lines(self) -> tuple[str, ...]:
        """The command line."""
        return (self.text,)


class CommitProposal(TaskChange, frozen=True):
    """The commit of a task on its branch."""

    kind = Permission.COMMIT
    plural = "commits"
    doing = "committing"
    rule_fields = ("any",)
    opened_by = "--yes"
    of_files = about_work = True


class MergeProposal(TaskChange, frozen=True):
    """The merge of a task into the user's branch.

    `brings`: its commits, one line each; `method` is one of its `methods` (None in journals of 0.1: a fast-forward
    where possible, else a merge commit).
    """

    kind = Permission.MERGE
    plural = "merges"
    doing = "merging"
    unattended = UnattendedRule.PARKED
    skips = True
    local_only = "a merge is approved at this machine"
    risks = (Risk.HIGH, Risk.HIGH)

    brings: tuple[str, ...] = ()
    method: MergeMethod | None = None
    methods: tuple[MergeMethod, ...] = ()

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """The commits, the method, and the parts of the change."""
        return (*self.brings, *(("method", self.method) if self.method is not None else ()), *super().shown_parts)

    @property
    def editable(self) -> bool:
        """True for a method that makes a commit with a message."""
        return self.method in {MergeMethod.MERGE, MergeMethod.SQUASH}

    @property
    def ends_task(self) -> bool:
        """False: the task is over."""
        return False


class SummaryProposal(ProposedAction, frozen=True):
    """A summary in place of older steps in a full context, or of a long scratchpad.

    `fallback`: the workbench wrote the text because the model could not. `outlook`: the estimated effect.
    """

    kind = Permission.SUMMARY
    plural = "summaries"
    words, doing = "summary: {0.text}", "making room in the context"
    rule_fields = ("any",)
    unattended = UnattendedRule.WORKBENCH
    edits, suffix = "summary", ".md"
    has_own_text = True
    tool_kind = "think"

    fallback: bool = False
    outlook: SummaryEstimate | None = None


class FinishProposal(ProposedAction, frozen=True):
    """The end of a task without any change."""

    kind = Permission.FINISH
    plural = "finishes"
    doing = "ending the task"
    rule_fields = ("any",)
    changes_nothing = about_work = True

    @property
    def described(self) -> str:
        """The model's reason."""
        return f"finish with nothing changed: {self.text or 'no reason given'}"


class SourceCall(ToolCall, frozen=True):
    """The call of a source's tool that does more than read."""

    words, doing = "{0.tool} of {0.source}: {0.text}", "calling {0.tool}"
    digest_chars = 16
    skips = calls = runs_programs = runs_commands = True

    @property
    def rule_tool(self) -> str:
        """The tool with the digest of its spec, so that a changed one needs approval."""
        return f"{self.tool}@{self.spec}"


class PlanProposal(SourceCall, frozen=True):
    """Tasks that the model proposes, or a change of the plan by the tool of a source.

    `plan` has the proposed tasks; `text` is the YAML of the taken ones.
    """

    kind = Permission.PLAN
    plural = "plan changes"
    tool_words = "plan tool"
    edits, suffix = "proposed plan", ".yaml"
    special_reason, between = "these acceptance commands need a person's approval", "; "
    special_effect = "tasks must pass"
    risks = (Risk.MEDIUM, Risk.MEDIUM)

    plan: ProposedPlan | None = None

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """The source, and what becomes of the old plan."""
        if self.plan is None:
            return super().shown_parts
        effect = "replace" if self.plan.replaces else "rest" if self.plan.rest else "append"
        return (*super().shown_parts, "plan", effect)

    @property
    def described(self) -> str:
        """The taken tasks and the goal, or the call."""
        if self.plan is None:
            return super().described
        return f"plan of {', '.join(task.id for task in self.plan.taken)} for: {self.plan.goal}"

    @property
    def second_look(self) -> tuple[str, ...]:
        """The acceptance commands of a proposed plan."""
        return super().second_look if self.plan is not None else ()

    @property
    def needs_person(self) -> str:
        """The reason for a proposed plan; the call of a tool has none."""
        return super().needs_person if self.plan is not None else ""

    @property
    def editable(self) -> bool:
        """True for a proposed plan."""
        return self.plan is not None

    @property
    def ends_task(self) -> bool:
        """False for a proposed plan, which belongs to no task."""
        return self.plan is None


class ScriptProposal(SourceCall, frozen=True):
    """A script of a skill."""

    kind = Permission.SCRIPT
    plural = "scripts"
    tool_words = "one script,"
    digest_chars = 32
    unattended = UnattendedRule.SANDBOX
    in_chat = True
    risks = (Risk.MEDIUM, Risk.HIGH)
    tool_kind = "execute"

    @property
    def rule_tool(self) -> str:
        """The tool with a digest that covers the call too: a rule approves this script again, and no other one.

        It has 128 bits, because whoever writes a skill may look for two scripts with the same digest.
        """
        call = f"{self.spec}:{self.text}".encode("utf-8", "surrogatepass")
        return f"{self.tool}@{sha256(call).hexdigest()[: self.digest_chars]}"


class ExternalProposal(SourceCall, frozen=True):
    """The call of an external tool, such as one of an MCP server, or the answer to a question of that server."""

    kind = Permission.EXTERNAL
    plural = "external calls"
    tool_words = "external tool"
    edits, suffix = "answer", ".json"
    in_chat = True
    risks = (Risk.HIGH, Risk.HIGH)

    @property
    def is_question(self) -> bool:
        """True for the answer to a question: its text is the values of a form as JSON, its `hints` are the question."""
        return self.tool == ANSWER_SERVER

    @property
    def has_gaps(self) -> bool:
        """True if a person has to fill in a value: `null` stands for it, and no form of the protocol takes that."""
        return self.is_question and bool(_GAP.search(self.text))

    @property
    def editable(self) -> bool:
        """True for an answer with values."""
        return self.is_question and self.text != "{}"

    @property
    def rule_tool(self) -> str:
        """The tool of a call; none for an answer, which no rule approves."""
        return "" if self.is_question else super().rule_tool


class InfrastructureProposal(ProposedAction, frozen=True):
    """A run of a playbook, with what it may use."""

    kind = Permission.INFRASTRUCTURE
    plural = "playbook runs"
    doing = "running {0.described}"
    unattended = UnattendedRule.PARKED
    skips = runs_programs = runs_commands = stoppable = has_arguments = True
    local_only = "a run of a playbook is approved at this machine"
    risks = (Risk.HIGH, Risk.HIGH)
    tool_kind = "execute"

    playbook: PlaybookRun | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The call, and what the run reads and may use."""
        return (self.text, *(self.playbook.shown if self.playbook is not None else ()))

    @property
    def shown_parts(self) -> tuple[str, ...]:
        """The run as its gate shows it: call, playbook, access, loaded files, and the hosts of its check."""
        return ("playbook", *self.playbook.shown) if self.playbook is not None else ()

    @property
    def described(self) -> str:
        """The run."""
        return self.playbook.request.text if self.playbook else self.text


Proposal: TypeAlias = (
    ReadProposal
    | DiffProposal
    | CheckProposal
    | CommandProposal
    | CommitProposal
    | MergeProposal
    | SummaryProposal
    | FinishProposal
    | PlanProposal
    | KnowledgeProposal
    | ScriptProposal
    | ExternalProposal
    | InfrastructureProposal
)
"""An action at the gate; `kind` tells the kinds apart in a journal."""

KINDS: Mapping[Permission, type[Proposal]] = MappingProxyType({each.kind: each for each in get_args(Proposal)})
"""The type of each kind: it has the facts that are the same for all proposals of the kind."""


def opened_by(flag: str) -> dict[str, str]:
    """Return the settings that a flag of `agent run` overrides."""
    return {f"approvals.{name}": Approval.AUTO.value for name, kind in KINDS.items() if kind.opened_by == flag}
