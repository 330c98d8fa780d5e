"""Files of a change that the user has reviewed: their content is that of the diffs which the user approved."""

from collections.abc import Sequence

from agent_workbench.core.errors import PatchError
from agent_workbench.core.events import Recorded
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.values import FileChange, FileContent, FilePatch, Patch
from agent_workbench.core.proposals import Verdict, is_person
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.steps import newest_steps


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
