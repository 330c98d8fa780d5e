"""Tool `find_playbook`: the playbook that fits some words, or the nearest ones. Nothing is run."""

from agent_workbench.core.events import ActionResult
from agent_workbench.core.playbooks import Playbook, PlaybookSearch
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.tools.arguments import Argument, ArgumentKind
from agent_workbench.engine.runtime.tool import ToolResult
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.builtin_tool import BuiltinTool
from agent_workbench.engine.tools.playbook_runs import playbooks_of


class FindPlaybook(BuiltinTool, frozen=True):
    """Tool that finds a playbook by its name, its words or its meaning."""

    async def run(self, context: ToolContext, proposal: Proposal) -> ToolResult:
        """Return the playbook; it is a failure if none fits."""
        words = self.read(proposal.text).text("words")
        found = await playbooks_of(context).search(context.workspace, words)
        return ToolResult(describe_search(found, words), ActionResult.OK if found.found else ActionResult.FAILED)


def describe_search(search: PlaybookSearch, words: str) -> str:
    """Return the answer of a search for the model."""
    if search.found is not None:
        return f"{_line(search.found)}\nfound by {search.reason}"
    near = [
        f"{_line(each)}{f' (similarity {alike:.2f})' if alike is not None else ''}" for each, alike in search.nearest
    ]
    told = ["The nearest, none of which fits for certain:", *near] if near else ["The repository has no playbooks."]
    return "\n".join([f"no playbook fits {words!r}", *told])


def _line(playbook: Playbook) -> str:
    about = "; ".join((*(f"service {each}" for each in playbook.services), *playbook.plays[:3]))
    return f"{playbook.path}{f': {about}' if about else ''}"


TOOL = FindPlaybook(
    name="find_playbook",
    summary="find the Ansible playbook for a service or a purpose",
    arguments=(Argument("words", ArgumentKind.STRING, "such as deploy kuma", max_length=200),),
)
