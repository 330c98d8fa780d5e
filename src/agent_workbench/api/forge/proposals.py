"""Pending proposals on the forge: each in a comment of its own, which shows the whole of it or says where to decide."""

from typing import TYPE_CHECKING

from agent_workbench.api.forge.link import needs_local_person
from agent_workbench.views.reports.forge_comments import ProposalComment, proposal_comment

if TYPE_CHECKING:
    from agent_workbench.api.forge.link import ForgeLink
    from agent_workbench.core.inbox import InboxItem
    from agent_workbench.core.state.session_state import SessionState


def proposal_key(item: "InboxItem") -> str:
    """Return the key of the comment that shows a proposal as it is now."""
    return f"proposal:{item.reference or item.id}"


def shown_proposal(link: "ForgeLink", item: "InboxItem", state: "SessionState") -> ProposalComment:
    """Return the comment about a proposal as it stands on the forge.

    Where a secret of the environment had to be left out, the comment does not show everything and nothing is decided.
    """
    comment = proposal_comment(item, state, needs_local_person(state, link.all_settings))
    if link.redact(comment.text) != comment.text:
        comment = proposal_comment(item, state, "it contains a secret of the worker's environment")
    return comment


async def show_proposal(link: "ForgeLink", issue: int, item: "InboxItem", state: "SessionState") -> None:
    """Write the comment about a proposal, unless it is there; raise `ForgeError`."""
    await link.comment(issue, proposal_key(item), shown_proposal(link, item, state).text)
