"""Decisions in comments of an issue: who may decide, about what they were shown, once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.forge.link import needs_local_person
from agent_workbench.api.forge.proposals import as_written, comments_about, proposal_key, shown_proposal
from agent_workbench.core.errors import DecisionRefused, WorkbenchError, error_text
from agent_workbench.core.forge.commands import CommandVerb, CommentCommand, read_command
from agent_workbench.core.inbox import InboxChoice, Reference
from agent_workbench.core.proposals import Verdict

if TYPE_CHECKING:
    from agent_workbench.api.forge.link import ForgeLink
    from agent_workbench.api.sessions.inbox import RepoInbox, WaitingSession
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.ports.forge import ForgeComment

VERDICTS = {CommandVerb.APPROVE: Verdict.APPROVE, CommandVerb.REJECT: Verdict.REJECT}
NOT_SHOWN = "no comment of the agent before this one shows that reference on this issue"


class CommentAnswer(Struct, frozen=True):
    """Answer to a comment of an allowed user that was meant to decide."""

    comment: int
    outcome: str
    accepted: bool = False


def answer_key(comment: int) -> str:
    """Return the key of the answer to a comment; one that has it was dealt with."""
    return f"answer:{comment}"


def new_comments(link: "ForgeLink", comments: "Sequence[ForgeComment]") -> "list[ForgeComment]":
    """Return the comments of allowed users that begin with a command and were not answered, by id.

    Nothing counts that the agent's own account or a program wrote, or that is older than the agent's first comment.
    """
    own = [each for each in comments if each.own]
    answered = {each.key for each in own}
    first = min((each.id for each in own), default=None)
    return [
        each
        for each in comments
        if first is not None
        and each.id > first
        and not each.own
        and not each.bot
        and link.settings.allows(each.author)
        and each.text.startswith("/")
        and answer_key(each.id) not in answered
    ]


class CommentDecisions:
    """Decisions about the proposals that wait, made in the comments of one issue.

    `inbox_of` gives the inbox in which a named person decides. `retry` queues the issue's failed task again for the
    comment with this id, and says so or why not.
    """

    def __init__(
        self,
        link: "ForgeLink",
        waiting: "Mapping[SessionId, WaitingSession]",
        inbox_of: "Callable[[str], RepoInbox]",
        retry: Callable[[int], Awaitable[CommentAnswer]],
    ) -> None:
        self._link = link
        self._waiting = waiting
        self._inbox_of = inbox_of
        self._retry = retry

    async def answer(self, comment: "ForgeComment", comments: "Sequence[ForgeComment]") -> CommentAnswer | None:
        """Carry out the command in a comment; None if it is an ordinary one after all."""
        refused = partial(CommentAnswer, comment.id)
        try:
            command = read_command(comment.text)
            if command is None:
                return None
            if comment.edited:
                return refused("an edited comment does not decide; write a new one")
            if command.reference is None:
                return await self._retry(comment.id)
            before = [each for each in comments if each.id < comment.id]
            if not comments_about(before, f"proposal:{command.reference}"):
                return refused(NOT_SHOWN)
            objection = partial(self._objection, comment=comment, comments=comments)
            done = await self._decide(command, command.reference, comment, objection)
            return CommentAnswer(comment.id, done, accepted=True)
        except WorkbenchError as error:
            return refused(error_text(error))

    def _objection(self, waiting: "WaitingSession", comment: "ForgeComment", comments: "Sequence[ForgeComment]") -> str:
        """Return why a comment does not decide what waits now, empty if it does."""
        if waiting.item.session not in self._waiting:
            return f"{waiting.item.id} waits in a task that is not of this issue and queue"
        if why := needs_local_person(waiting.state, self._link.all_settings):
            return why
        before = [each for each in comments if each.id < comment.id]
        whole = shown_proposal(self._link, waiting.item, waiting.state)
        if not whole.decidable or not as_written(before, proposal_key(waiting.item), whole.text):
            return "the comment that shows the proposal is not as the agent wrote it"
        return ""

    async def _decide(
        self,
        command: CommentCommand,
        reference: Reference,
        comment: "ForgeComment",
        objection: "Callable[[WaitingSession], str]",
    ) -> str:
        person = f"{comment.author} on {self._link.host} (comment {comment.id})"
        inbox = self._inbox_of(person)
        waiting = self._waiting.get(reference.session)
        kept = waiting.item.decided if waiting is not None else None
        if kept is not None and kept.made_by == person:
            return f"{kept.verdict.past} {reference.proposal}"  # the answer was lost in a crash
        try:
            receipt = await inbox.decide(reference, InboxChoice(VERDICTS[command.verb], command.reason), objection)
        except DecisionRefused as refused:
            if person in str(refused):
                return str(refused)  # recorded before a crash
            raise
        return f"{receipt.decision.verdict.past} {reference.proposal}"
