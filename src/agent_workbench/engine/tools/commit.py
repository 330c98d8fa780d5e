"""The task's commit: approved changes only, on the task's branch, naming the journal's hash of its approval."""

from asyncio import to_thread

from agent_workbench.core.errors import UsageError, WorkspaceError
from agent_workbench.core.events import ActionDecided, TaskCommitted
from agent_workbench.core.patch import render_changes
from agent_workbench.core.proposals import COMMIT, TRAILER, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.engine.runtime.tool_context import Bench
from agent_workbench.engine.tools.arguments import Arguments
from agent_workbench.engine.tools.finish import finish_summary
from agent_workbench.engine.tools.tool import Draft, Outcome, ToolFace

TITLE_CHARS = 72


class Commit(ToolFace, frozen=True):
    """Commits the tree that the approvals amount to."""

    async def draft(self, bench: Bench, arguments: Arguments, text: str) -> Draft:
        """Return the message (`text` if it was edited) and the whole change of the task."""
        if text and not text.strip():
            raise UsageError("a commit needs a message")
        changes = await bench.workspace.changes(bench.run.tree)
        return Draft(
            text=text or _message(bench),
            diff=await to_thread(render_changes, changes),
            paths=tuple(change.path for change in changes),
        )

    async def run(self, bench: Bench, proposal: Proposal) -> Outcome:
        """Make the commit and move the branch."""
        message = f"{proposal.text.strip()}\n\n{TRAILER}: {_approval(bench)}\n"
        commit = await bench.workspace.commit(bench.run.tree, message)
        branch = bench.workspace.facts.branch
        committed = TaskCommitted(bench.task.id, commit, branch, message)
        return Outcome(f"committed {commit[:10]} on {branch}", effects=(committed,))


def _approval(bench: Bench) -> str:
    """Return `session:seq:hash` of the decision that lets this commit through."""
    for recorded in reversed(bench.run.history):
        if isinstance(recorded.event, ActionDecided):
            return f"{bench.state.session}:{recorded.seq}:{recorded.hash}"
    raise WorkspaceError("a commit needs an approval in the journal")


def _message(bench: Bench) -> str:
    description = bench.task.description.strip()
    title = f"[Agent] Complete {bench.task.id}: {description.splitlines()[0]}"
    whole = description if len(title) > TITLE_CHARS or "\n" in description else ""
    return "\n\n".join(filter(None, (_cut(title), whole, finish_summary(bench.run)))) + "\n"


def _cut(title: str) -> str:
    """Return the title, cut behind its last whole word that fits; a word that has no end there is cut itself."""
    if len(title) <= TITLE_CHARS:
        return title
    words = title[:TITLE_CHARS].rpartition(" ")[0].rstrip(" ,;:.")
    kept = words if len(words) > TITLE_CHARS // 2 else title[: TITLE_CHARS - 1]
    return f"{kept}…"


TOOL = Commit(name=COMMIT, summary="commit the task", kind=Permission.COMMIT, offered=False)
