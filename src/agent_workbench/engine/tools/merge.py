"""Bringing a task's commit into the user's branch; the only thing that touches the user's checkout."""

from asyncio import to_thread

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import TaskMerged
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch import render_changes
from agent_workbench.core.proposals import MERGE, Preimage, Proposal
from agent_workbench.core.settings import GateKind
from agent_workbench.engine.arguments import Arguments
from agent_workbench.engine.bench import Bench
from agent_workbench.engine.tools.tool import Draft, Outcome, ToolFace


class Merge(ToolFace):
    """Merges what was committed."""

    async def draft(self, bench: Bench, arguments: Arguments, text: str) -> Draft:
        """Return what would be merged into what, and what stands in the way."""
        commit = _commit(bench)
        facts = await bench.ports.workspaces.inspect()
        into = facts.branch or "a detached HEAD"
        brings = await bench.ports.workspaces.merge_brings(commit)
        changes = brings.changes or await bench.workspace.changes(bench.run.tree)
        return Draft(
            text=text or f"Merge {bench.workspace.facts.branch} ({commit[:10]}) into {into}",
            diff=await to_thread(render_changes, changes),
            paths=tuple(change.path for change in changes),
            brings=brings.commits,
            special=await bench.ports.workspaces.merge_obstacles(commit),
            preimages=await merged_into(bench),
        )

    async def run(self, bench: Bench, proposal: Proposal) -> Outcome:
        """Merge, or raise with nothing changed."""
        outcome = await bench.ports.workspaces.merge(_commit(bench), proposal.text)
        done = f"{outcome.into} is at {outcome.commit[:10]} ({outcome.how})"
        return Outcome(done, effects=(TaskMerged(bench.task.id, outcome),))


async def merged_into(bench: Bench) -> tuple[Preimage, ...]:
    """Return what a merge starts from: the user's branch (`HEAD` when detached) and its commit."""
    facts = await bench.ports.workspaces.inspect()
    return (Preimage(facts.branch or "HEAD", facts.head),)


def _commit(bench: Bench) -> CommitId:
    if bench.run.commit is None:
        raise WorkspaceError(f"task {bench.task.id} has no commit to merge")
    return bench.run.commit


TOOL = Merge(name=MERGE, summary="merge the task into the user's branch", kind=GateKind.MERGE, offered=False)
