"""Pending proposals on the forge: each in a comment of its own, which shows the whole of it or says where to decide."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_workbench.api.forge.link import needs_local_person
from agent_workbench.views.reports.forge_comments import ProposalComment, proposal_comment

if TYPE_CHECKING:
    from agent_workbench.api.forge.link import ForgeLink
    from agent_workbench.core.inbox import InboxItem
    from agent_workbench.core.ports.forge import ForgeComment
    from agent_workbench.core.state.session_state import SessionState


MOST_SHOWN = 5
"""Comments about one proposal: it is shown again if somebody changed the comment."""


def proposal_key(item: "InboxItem") -> str:
    """Return the key of the comment that shows a proposal as it is now."""
    return f"proposal:{item.reference or item.id}"


def comments_about(comments: "Sequence[ForgeComment]", key: str) -> "list[ForgeComment]":
    """Return the agent's own comments about a proposal, the repeated ones included."""
    return [each for each in comments if each.own and (each.key == key or each.key.startswith(f"{key}:"))]


def as_written(comments: "Sequence[ForgeComment]", key: str, text: str) -> "list[ForgeComment]":
    """Return those of them that nobody changed: who reads one of these sees what is decided."""
    return [each for each in comments_about(comments, key) if not each.edited and each.text == text.strip()]


def shown_proposal(link: "ForgeLink", item: "InboxItem", state: "SessionState") -> ProposalComment:
    """Return the comment about a proposal as it stands on the forge.

    Where a secret of the environment had to be left out, the comment does not show everything and nothing is decided.
    """
    comment = proposal_comment(item, state, needs_local_person(state, link.all_settings))
    if link.redact(comment.text) != comment.text:
        comment = proposal_comment(item, state, "it contains a secret of the worker's environment")
    return comment


async def show_proposal(
    link: "ForgeLink", issue: int, item: "InboxItem", state: "SessionState", comments: "Sequence[ForgeComment]"
) -> None:
    """Write a comment about a proposal, unless one of `comments` shows it; raise `ForgeError`.

    A comment that somebody changed is not written over: what was decided below it counts for nothing.
    """
    key, text = proposal_key(item), link.redact(shown_proposal(link, item, state).text)
    about = comments_about(comments, key)
    if not as_written(comments, key, text) and len(about) < MOST_SHOWN:
        await link.comment(issue, f"{key}:{len(about)}" if about else key, text)
