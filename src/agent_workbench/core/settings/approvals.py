"""Settings of approvals: the kinds of proposals, the decision for each, and rules."""

from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue


class Permission(StrEnum):
    """Permission that a proposal needs; the keys of `approvals` in `.agent.yml` (`core.proposal_kinds`)."""

    READ = "read"
    DIFF = "diff"
    CHECK = "check"
    COMMAND = "command"
    COMMIT = "commit"
    MERGE = "merge"
    SUMMARY = "summary"
    FINISH = "finish"
    PLAN = "plan"
    KNOWLEDGE = "knowledge"
    SCRIPT = "script"
    EXTERNAL = "external"
    INFRASTRUCTURE = "infrastructure"


class Approval(StrEnum):
    """Decision about proposals with a permission: automatic approval, a question to the user, or denial.

    `once`, for checks only: a question for each list of commands in a task, as long as the user approves every diff.
    """

    AUTO = "auto"
    ASK = "ask"
    ONCE = "once"
    DENY = "deny"


class Rule(RecordedValue, frozen=True):
    """An approval rule. Exactly one field besides `kind` says what it matches (`core.approval_rules`).

    `any`: all proposals of the kind. `commands`: these lines and no others. `program`: this one with any arguments.
    `paths`: globs, one of which each file must match. `tool`: calls of this tool; `NAME@DIGEST` if a source brings it.
    """

    kind: Permission
    any: bool = False
    commands: tuple[str, ...] = ()
    program: str = ""
    paths: tuple[str, ...] = ()
    tool: str = ""


class Approvals(RecordedValue, frozen=True):
    """Approval of each kind, and rules for those that ask."""

    read: Approval = Approval.AUTO
    """Tools that only read, and `note`."""
    diff: Approval = Approval.ASK
    """Diffs; CI files, settings and similar files need a person even with `auto`."""
    check: Approval = Approval.ONCE
    """Running tests and lint; `once` asks for the first run of a task, and again only where the commands are others or
    a diff was not approved by you. An unattended task of your own runs the trusted `test_command` and `lint_command`
    in a sandbox without a question.
    """
    command: Approval = Approval.ASK
    """Other commands; without a sandbox they need a person even with `auto`."""
    commit: Approval = Approval.ASK
    """The commit on the task's branch."""
    merge: Approval = Approval.ASK
    """Merging into your branch; `auto` has the effect of `ask`."""
    summary: Approval = Approval.ASK
    """The summary that replaces older steps in a full context, or a long scratchpad."""
    finish: Approval = Approval.ASK
    """The end of a task without any change; `--yes` does not approve it."""
    plan: Approval = Approval.ASK
    """Plans that the model proposes, and changes of the plan by a tool of another source."""
    knowledge: Approval = Approval.ASK
    """Notes that outlive a task, shown as a diff of `memory/knowledge`; a change of an existing note needs a person
    even with `auto`. `deny`: the model has no tool `remember`, and none is offered.
    """
    script: Approval = Approval.ASK
    """Scripts of skills; without a sandbox they need a person even with `auto`."""
    external: Approval = Approval.ASK
    """Calls of external tools, such as those of a server; such a tool's own hints approve nothing."""
    infrastructure: Approval = Approval.ASK
    """Runs of playbooks; `auto` has the effect of `ask`, and no rule, mode or flag approves one. `deny`: no task has
    the tools of playbooks.
    """
    rules: tuple[Rule, ...] = ()
    """Rules that approve proposals without a question."""

    def of(self, kind: Permission) -> Approval:
        """Return the approval of `kind`."""
        approval: Approval = getattr(self, kind.value)
        return approval
