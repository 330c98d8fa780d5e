"""The view of each kind of proposal: its line at the gate bar, and its notes and diff in the diff pane."""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.command_lines import left_running
from agent_workbench.core.events import ContextFilled, ModelAnswered, PromptBuilt
from agent_workbench.core.knowledge import is_reason
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposal_kinds import (
    CheckProposal,
    CommandProposal,
    CommitProposal,
    DiffProposal,
    ExternalProposal,
    FinishProposal,
    InfrastructureProposal,
    KnowledgeProposal,
    MergeProposal,
    PlanProposal,
    Proposal,
    ReadProposal,
    ScriptProposal,
    SummaryProposal,
)
from agent_workbench.core.proposals import KEEP_CHANGES, Verdict, is_person, shown_sha
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.state.applied_diffs import checks_reviewed, checks_trusted, lacks_test
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.core.text.amounts import counted_text, span_text
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole
from agent_workbench.core.tools.skill_tools import script_call
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.consultations import review_notes
from agent_workbench.views.diff_document import diff_stat
from agent_workbench.views.event_entries import PURPOSES
from agent_workbench.views.gate.notes import (
    call_notes,
    commit_notes,
    finish_notes,
    folded_files,
    merge_notes,
    note_notes,
    plan_notes,
    playbook_diff,
    playbook_notes,
    script_diff,
    script_notes,
    script_size,
)

WHY_CHECKED = {
    CheckPurpose.BASELINE: "as the baseline before any change",
    CheckPurpose.AFTER_DIFF: "to check the diff",
    CheckPurpose.ASKED: "because the model asked",
    CheckPurpose.FINAL: "as the last check before the commit",
}
LEFT_RUNNING_CHARS = 30
"""Maximum length of a command that is left running, so that a line of 80 cells says that it is."""
LEFT_RUNNING_NOTE = """\
It is left running in the sandbox until the task ends. It sees each change of the workspace and can change nothing \
there."""


class DiffView(Struct, frozen=True):
    """Content of the pane: notes above a diff. `key` identifies it; `proposal` is empty if nothing waits.

    `special` are files that need a second look. `by_hunk`: parts of the diff can be left out. `partial`: it is the
    user's selection from another diff. `source` is the proposal with the parsed diff. `grows`: text is appended while
    it is shown. `folded` are the numbers of files, from 0, that are folded first: the user has reviewed them.
    """

    title: str
    key: str
    notes: tuple[Block, ...] = ()
    diff: str = ""
    proposal: str = ""
    by_hunk: bool = False
    partial: bool = False
    special: tuple[str, ...] = ()
    grows: bool = False
    empty: str = ""
    source: Proposal | None = None
    folded: frozenset[int] = frozenset()


def headline(state: SessionState, proposal: Proposal) -> tuple[str, str, str]:
    """Return the words of `describe`, with what the state of the session adds to them."""
    word, text, more = describe(proposal)
    run = state.run_at_gate
    if run is None:
        return word, text, more
    match proposal:
        case SummaryProposal():
            text = "of the scratchpad" if proposal.paths else f"of {summarized_steps(run, proposal)}"
            more = more if proposal.paths else frees_text(proposal)
        case FinishProposal():
            text = f"{text}, {run.checks_text}"
        case CommandProposal() if more:
            text = sanitize_line(text, LEFT_RUNNING_CHARS)
        case CommitProposal() if doubt := _doubt(run):
            more = f"{more} · {doubt}"
        case DiffProposal() if _checks_follow(state, run):
            more = f"{more} · then the checks run"
        case _:
            pass
    return word, text, more


def describe(proposal: Proposal) -> tuple[str, str, str]:
    """Return the kind of a proposal, its subject, and its size or purpose."""
    paths = sanitize_line(" ".join(proposal.paths), 300)
    match proposal:
        case DiffProposal():
            word = "keep what the command changed" if proposal.tool == KEEP_CHANGES else "diff"
            return word, paths, " · ".join(filter(None, (str(diff_stat(proposal.diff)), repairs(proposal))))
        case CheckProposal():
            about = PURPOSES[proposal.purpose] if proposal.purpose is not None else "checks"
            return "checks", sanitize_line("; ".join(proposal.commands) or proposal.text), about
        case CommandProposal():
            left = "left running until the task ends" if left_running(proposal.text) else ""
            return "command", sanitize_line(proposal.text), left
        case CommitProposal():
            return "commit", sanitize_line(proposal.text.strip().split("\n")[0]), str(diff_stat(proposal.diff))
        case MergeProposal():
            more = "it cannot be merged now" if proposal.special else str(diff_stat(proposal.diff))
            return proposal.method or "merge", sanitize_line(proposal.text.strip().split("\n")[0]), more
        case SummaryProposal():
            return "summary", "of the older steps", ""
        case FinishProposal():
            return "finish", "nothing changed", sanitize_line(proposal.text) or "no reason given"
        case ReadProposal():
            return proposal.tool.replace("_", " "), sanitize_line(proposal.text), ""
        case PlanProposal() if proposal.plan is not None:
            plan = proposal.plan
            if plan.checks:
                commands = "; ".join(line for task in plan.taken for line in task.accept_tests)
                return "check to add", sanitize_line(commands), "nothing runs yet"
            added = "replaces open tasks" if plan.rest else "appended to the plan"
            effect = "replaces the plan, which is archived" if plan.replaces else added
            count = f"{len(plan.taken)} of {counted_text(len(plan.tasks), 'task')}"
            return "plan", f"{count} for: {sanitize_line(plan.goal, 200)}", effect
        case ScriptProposal() if (script := script_call(proposal)) is not None:
            return "script", f"with the skill {sanitize_line(script.skill, 80)}", script_size(script)
        case KnowledgeProposal():
            many = counted_text(len(proposal.paths), "note")
            return "knowledge", paths, f"{many} · {diff_stat(proposal.diff)}"
        case ExternalProposal() if proposal.is_question:
            question = sanitize_line(" ".join(proposal.hints[1:2]), 300)
            return "question", question, f"from {sanitize_line(proposal.source, 80)}"
        case PlanProposal() | ScriptProposal() | ExternalProposal():
            called = sanitize_line(f"{proposal.tool} {proposal.text}")
            return f"{proposal.kind} tool", called, f"from {sanitize_line(proposal.source, 80)}"
        case InfrastructureProposal():
            run = proposal.playbook
            access = sanitize_line(run.access.text, 200) if run is not None else ""
            return "playbook", sanitize_line(run.request.text if run is not None else proposal.text), access


def _doubt(run: TaskRun) -> str:
    """Return why only a person may approve the commit, empty if there is no reason."""
    if lacks_test(run):
        return "the task asks for a test, and none is changed"
    return sanitize_line(run.checks_text) if run.old_failures else ""


def _checks_follow(state: SessionState, run: TaskRun) -> bool:
    """Return True if the checks after this diff run without another question: trusted, or approved before."""
    once = state.config is not None and state.config.approvals.check is Approval.ONCE
    return once and (checks_reviewed(run, run.checks) or checks_trusted(state, run.checks))


def proposal_key(proposal: Proposal) -> str:
    """Return a key that is different for each content of a proposal."""
    return f"{proposal.id}:{shown_sha(proposal)}"


def _can_keep(state: SessionState, run: TaskRun) -> bool:
    """Return True if a person rejected something in the task, and notes of it may be kept."""
    denied = state.config is not None and state.config.approvals.of(Permission.KNOWLEDGE) is Approval.DENY
    decided = (each.event for each in decisions_of(run.history))
    return not denied and any(
        each.verdict is Verdict.REJECT and is_person(each.by) and is_reason(each.reason) for each in decided
    )


def view_proposal(state: SessionState, proposal: Proposal) -> DiffView:
    """Return the content of the diff pane for a proposal that waits."""
    key, run = proposal_key(proposal), state.run
    match proposal:
        case KnowledgeProposal():
            return _notes_view(proposal)
        case PlanProposal() if proposal.plan is not None:
            return DiffView("Plan · waits", key, plan_notes(proposal, proposal.plan), "", key, source=proposal)
        case _ if run is None:
            return _call_view(state, proposal)
        case DiffProposal():
            about = "Changed by the command" if proposal.tool == KEEP_CHANGES else "Diff"
            edited = " · edited" if proposal.edited else ""
            title = f"{about}{edited} · waits"
            special = tuple(sanitize_whole(path, keep_returns=True) for path in proposal.special)
            by_hunk = proposal.tool != KEEP_CHANGES
            view = DiffView(title, key, _remarks(proposal), proposal.diff, key, by_hunk=by_hunk, special=special)
            return replace(view, partial=bool(proposal.hunks), source=proposal)
        case CommitProposal():
            notes = (*commit_notes(state.session, proposal), *review_notes(state, proposal), *_remarks(proposal))
            return _of_whole_task("Commit · waits", notes, proposal)
        case MergeProposal():
            return _of_whole_task("Merge · waits", merge_notes(proposal, rejected=_can_keep(state, run)), proposal)
        case CheckProposal():
            return DiffView("Checks · wait", key, _check_notes(proposal), proposal.diff, key)
        case SummaryProposal():
            edited = " · edited" if proposal.edited else ""
            return DiffView(f"Summary{edited} · waits", key, _summary_notes(run, proposal), proposal.diff, key)
        case FinishProposal():
            return DiffView("Finish · waits", key, finish_notes(run, proposal), proposal.diff, key)
        case (
            CommandProposal()
            | ReadProposal()
            | PlanProposal()
            | ScriptProposal()
            | ExternalProposal()
            | InfrastructureProposal()
        ):
            return _call_view(state, proposal)
    assert_never(proposal)


def _call_view(state: SessionState, proposal: Proposal) -> DiffView:
    """Return the view of a command, or of the call of a tool: of a task, or of a chat."""
    key, sandbox = proposal_key(proposal), state.config.sandbox if state.config else None
    if isinstance(proposal, InfrastructureProposal) and (run := proposal.playbook):
        notes = (*playbook_notes(run, sandbox), *_remarks(proposal))
        return DiffView("Playbook · waits", key, notes, playbook_diff(run), key)
    if script := script_call(proposal):
        notes = (*script_notes(script, sandbox), *_remarks(proposal))
        return DiffView("Script · waits", key, notes, script_diff(script), key)
    if isinstance(proposal, CommandProposal | ReadProposal):
        return _asked(proposal, key)
    notes = call_notes(state.specs, proposal)
    title = "Question" if proposal.is_question else f"{proposal.kind.capitalize()} tool"
    return DiffView(f"{title} · waits", key, notes, "", key)


def _notes_view(proposal: KnowledgeProposal) -> DiffView:
    """Return the view of proposed notes: a diff of their files, of which each can be left out."""
    key, edited = proposal_key(proposal), " · edited" if proposal.edited else ""
    notes = (*note_notes(proposal), *_remarks(replace(proposal, special=())))
    view = DiffView(f"Knowledge{edited} · waits", key, notes, proposal.diff, key, by_hunk=True)
    return replace(view, partial=bool(proposal.hunks), source=proposal)


def _of_whole_task(title: str, notes: tuple[Block, ...], proposal: CommitProposal | MergeProposal) -> DiffView:
    """Return the view of a commit or merge: reviewed files are folded, and beside these the others are marked."""
    key = proposal_key(proposal)
    special = tuple(sanitize_whole(path, keep_returns=True) for path in proposal.unreviewed_paths)
    return DiffView(title, key, notes, proposal.diff, key, special=special, folded=folded_files(proposal))


def _summary_notes(run: TaskRun, proposal: SummaryProposal) -> tuple[Block, ...]:
    said = Block(sanitize_whole(proposal.text.strip()), space_before=True)
    if proposal.paths:
        about = f"This replaces the scratchpad, {sanitize_line(proposal.paths[0], 200)}."
        stays = "Its current text is archived beside it. If you reject this, the scratchpad stays as it is."
        return (Block(about, Tone.STRONG), Block(stays, Tone.DIM), said, *_remarks(proposal))
    by = " The model could not write it, so the workbench did." if proposal.fallback and not proposal.edited else ""
    about = f"In the prompt this replaces {summarized_steps(run, proposal)}.{by}"
    stays = "Rules, task, notes, your messages, pinned code, the change so far and the failing output stay as they are."
    if kept := steps_kept(run, proposal):
        stays += f" Verbatim: {kept}."
    return (Block(about, Tone.STRONG), Block(stays, Tone.DIM), said, *_remarks(proposal))


def _asked(proposal: Proposal, key: str) -> DiffView:
    what = "Command" if isinstance(proposal, CommandProposal) else proposal.tool.replace("_", " ").capitalize()
    asked = Block(sanitize_whole(proposal.text.strip()), Tone.STRONG)
    left = isinstance(proposal, CommandProposal) and left_running(proposal.text)
    told = (Block(LEFT_RUNNING_NOTE, space_before=True),) if left else ()
    return DiffView(f"{what} · waits", key, (asked, *told, *_remarks(proposal)), proposal.diff, key)


def _remarks(proposal: Proposal) -> tuple[Block, ...]:
    """Return the remarks above a diff: paths that need a second look, and repairs."""
    paths = ", ".join(sanitize_line(path, 200) for path in proposal.special)
    mended = "\n".join(sanitize_line(each, 400) for each in proposal.repaired)
    return (
        *((Block(f"Needs a second look: {paths}", Tone.WARN, "!", Tone.WARN),) if paths else ()),
        *(
            (Block(f"{repairs(proposal)}; exactly what is shown would be applied", Tone.WARN, "~", Tone.WARN),)
            if mended
            else ()
        ),
        *((Block(mended),) if mended else ()),
    )


def repairs(proposal: Proposal) -> str:
    """Return the number of repairs in a diff as text, empty if there is none."""
    many = len(proposal.repaired)
    return counted_text(many, "repair") if many else ""


def _check_notes(proposal: CheckProposal) -> tuple[Block, ...]:
    why = WHY_CHECKED[proposal.purpose] if proposal.purpose is not None else WHY_CHECKED[CheckPurpose.ASKED]
    commands = "\n".join(f"$ {sanitize_whole(command)}" for command in proposal.commands)
    return (
        Block(f"These run in the workspace, {why}:", Tone.DIM),
        Block(commands or sanitize_whole(proposal.text), Tone.STRONG, space_before=True),
    )


def summarized_steps(run: TaskRun, proposal: SummaryProposal) -> str:
    """Return the steps that a summary replaces, in words."""
    steps = [step for seq, step in _steps(run) if not 0 <= _through(run, proposal) < seq]
    return span_text(min(steps), max(steps)) if steps else "what was before"


def steps_kept(run: TaskRun, proposal: SummaryProposal) -> str:
    """Return the steps that stay verbatim beside a summary, in words; empty for none."""
    steps = [step for seq, step in _steps(run) if 0 <= _through(run, proposal) < seq]
    return span_text(min(steps), max(steps)) if steps and proposal.outlook is not None else ""


def frees_text(proposal: SummaryProposal) -> str:
    """Return the number of freed tokens, empty if unknown."""
    outlook = proposal.outlook
    if outlook is None or not outlook.before:
        return ""
    frees = outlook.before - outlook.after
    return f"frees {frees:,} of {outlook.before:,} tokens" if frees > 0 else "frees nothing"


def _through(run: TaskRun, proposal: SummaryProposal) -> int:
    """Return the last event that a summary covers, -1 for all."""
    if proposal.outlook is not None:
        return proposal.outlook.through_seq
    filled = [each.event.through_seq for each in run.history if isinstance(each.event, ContextFilled)]
    return filled[-1] if filled else -1


def _steps(run: TaskRun) -> list[tuple[int, int]]:
    """Return the event and number of each step."""
    purpose, steps = Purpose.EXECUTOR, []
    for recorded in run.history:
        event = recorded.event
        if isinstance(event, PromptBuilt):
            purpose = event.purpose
        elif isinstance(event, ModelAnswered) and purpose is Purpose.EXECUTOR:
            steps.append((recorded.seq, event.step))
    return steps
