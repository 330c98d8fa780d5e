"""Commit of a task: approved changes only, with the approval's journal hash and the files that were reviewed."""

import textwrap
from asyncio import to_thread
from collections.abc import Sequence
from pathlib import PurePosixPath

from agent_workbench.core.errors import PatchError, UsageError, WorkspaceError
from agent_workbench.core.events import Recorded, TaskCommitted
from agent_workbench.core.history.journal_proof import without_anchors
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange, FileContent, FilePatch, Patch
from agent_workbench.core.proposal_kinds import CommitProposal, FinishProposal
from agent_workbench.core.proposals import COMMIT, END_UNCHANGED, TRAILER, Proposal, Verdict, is_person
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import decisions_of, newest_steps
from agent_workbench.core.text.commit_subjects import SUBJECT_CHARS, CommitConvention, subject_problem
from agent_workbench.core.tools.arguments import Arguments
from agent_workbench.core.tools.spec import FINISH
from agent_workbench.engine.runtime.tool import BuiltinTool, ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.finish_tool import commit_subject, finish_summary


class Commit(BuiltinTool, frozen=True):
    """Tool of the workbench that commits the tree of all approved diffs."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the message (`text` if it was edited) and the complete diff of the task."""
        if text and not text.strip():
            raise UsageError("a commit needs a message")
        if text != without_anchors(text):
            raise UsageError(
                f"a line of the message begins with {TRAILER}", advice="remove it; the workbench adds its own"
            )
        changes = await context.workspace.changes(context.run.tree)
        checkout = await context.ports.workspaces.checkout_files()
        return CommitProposal(
            text=text or _message(context),
            diff=await to_thread(render_changes, changes),
            paths=tuple(change.path for change in changes),
            reviewed=await to_thread(reviewed_paths, context.run.history, changes),
            left_out=(await checkout.own_git()).left_out,
        )

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Create the commit and move the branch."""
        message = f"{proposal.text.strip()}\n\n{approval_trailer(context)}\n"
        commit = await context.workspace.commit(context.run.tree, message)
        branch = context.workspace.facts.branch
        committed = TaskCommitted(context.task.id, commit, branch, message)
        return ToolResult(f"committed {commit[:10]} on {branch}", effects=(committed,))


def approval_trailer(context: ToolContext) -> str:
    """Return the trailer with `session:seq:hash` of the decision that approved what is made now."""
    decisions = tuple(decisions_of(context.run.history))
    if not decisions:
        raise WorkspaceError("a commit needs an approval in the journal")
    return f"{TRAILER}: {context.state.session}:{decisions[-1].seq}:{decisions[-1].hash}"


def _message(context: ToolContext) -> str:
    """Return the message, without lines that would be read as a trailer of the workbench."""
    summary = finish_summary(context.run)
    if subject := commit_subject(context.run) or _template_subject(context.run):
        return without_anchors("\n\n".join(filter(None, (subject, _wrapped(summary)))) + "\n")
    description = context.task.description.strip()
    title = f"[Agent] Complete {context.task.id}: {description.splitlines()[0]}"
    whole = description if len(title) > SUBJECT_CHARS or "\n" in description else ""
    return without_anchors("\n\n".join(filter(None, (_cut(title), whole, summary))) + "\n")


def _template_subject(run: TaskRun) -> str:
    """Return a subject in the repository's convention, made of the task's description. The model was not asked for one.

    Empty if the model was asked, if there is no convention, or if the description fits none.
    """
    if any(step.proposal.tool == FINISH for step in newest_steps(run.history)):
        return ""
    said = " ".join(run.definition.description.replace("@", "").split()).rstrip(".")
    first, low = said[:1].upper() + said[1:], said[:1].lower() + said[1:]
    paths = [path for diff in applied_diffs(run.history) for path in diff.proposal.paths]
    area = PurePosixPath(paths[0]).stem if paths else ""
    made = {
        CommitConvention.CONVENTIONAL: f"fix: {low}",
        CommitConvention.AREA: f"{area}: {low}",
        CommitConvention.IMPERATIVE: first,
    }.get(run.commit_convention, "")
    subject = _cut(made)
    return "" if subject_problem(subject, run.commit_convention) or not made else subject


def _wrapped(text: str) -> str:
    """Return the text with its lines wrapped at the width of a commit's message."""
    lines = (textwrap.fill(line, SUBJECT_CHARS, break_long_words=False) for line in text.splitlines())
    return "\n".join(lines)


def _cut(title: str) -> str:
    """Return the title, cut after the last word that fits; a single long word is cut inside."""
    if len(title) <= SUBJECT_CHARS:
        return title
    words = title[:SUBJECT_CHARS].rpartition(" ")[0].rstrip(" ,;:.")
    kept = words if len(words) > SUBJECT_CHARS // 2 else title[: SUBJECT_CHARS - 1]
    return f"{kept}…"


TOOL = Commit(name=COMMIT, summary="commit the task", permission=Permission.COMMIT)


class EndUnchanged(BuiltinTool, frozen=True):
    """Tool of the workbench that ends a task as done without a commit."""

    async def draft(self, context: ToolContext, arguments: Arguments, text: str) -> Proposal:
        """Return the model's reason; raise `UsageError` for an edited one, because nothing uses it."""
        if text:
            raise UsageError("the end of a task cannot be edited", advice="approve it, or reject it with a reason")
        return FinishProposal(text=finish_summary(context.run))

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the observation; the end is recorded when the task is closed."""
        return ToolResult("the task ends with nothing changed")


END_TOOL = EndUnchanged(name=END_UNCHANGED, summary="end the task with nothing changed", permission=Permission.FINISH)


def reviewed_paths(history: Sequence[Recorded], changes: Sequence[FileChange]) -> tuple[str, ...]:
    """Return the paths of `changes`, from a task's base to its tree, that are exactly what the user approved.

    The diffs in effect that the user approved are applied again in memory, to the base. A file that another diff
    touched, approved by a rule or a mode, does not count: nobody has seen all of it.
    """
    contents = {change.path: change.before for change in changes}
    touched: set[str] = set()
    unseen: set[str] = set()
    for diff in reversed(tuple(applied_diffs(history))):
        try:
            files = diff.proposal.patch.files
        except PatchError:  # a journal of 0.1 may hold a change that is not text
            unseen.update(diff.proposal.paths)
            continue
        for file in files:
            if is_person(diff.by) and _apply(file, contents):
                touched |= {file.old_path, file.path}
            else:
                unseen |= {file.old_path, file.path}
    seen = touched - unseen
    return tuple(each.path for each in changes if each.path in seen and contents[each.path] == each.after)


def commit_approved_by_user(history: Sequence[Recorded]) -> bool:
    """Return True if the user approved the task's commit: its whole diff was before them, folded or not."""
    commits = (step.decision for step in newest_steps(history) if step.proposal.kind is Permission.COMMIT)
    newest = next(filter(None, commits), None)
    return newest is not None and newest.event.verdict is Verdict.APPROVE and is_person(newest.event.by)


def _apply(file: FilePatch, contents: dict[str, FileContent | None]) -> bool:
    """Apply the patch of one file to `contents`; return False if it does not fit there."""
    try:
        applied = apply_patch(Patch((file,)), {path: contents.get(path) for path in (file.old_path, file.path)})
    except PatchError:
        return False
    contents.update((change.path, change.after) for change in applied)
    return True
