"""The gate in the editor: a waiting proposal is asked about, and the answer becomes intents of the session."""

from enum import StrEnum
from typing import TYPE_CHECKING

from agent_workbench.acp.gate_question import (
    ALWAYS,
    APPROVE,
    BACK,
    EXPLAIN,
    REJECT,
    SKIP,
    GateQuestion,
    gate_question,
    special_question,
)
from agent_workbench.core.intents import ApproveProposal, ChangeRule, Intent, RejectProposal, SkipProposal
from agent_workbench.core.intents.outcomes import Refused
from agent_workbench.core.rules.matching import RuleScope
from agent_workbench.core.text.markdown import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_workbench.acp.editor import Editor
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.patch.values import FileChange
    from agent_workbench.core.ports.session_host import SessionHandle
    from agent_workbench.core.proposals import Proposal

NO_REASON = "the user rejected it and gave no reason"


class GateAnswer(StrEnum):
    """Result of a question."""

    DECIDED = "decided"
    EXPLAINED_NEXT = "explained next"
    """The next message of the user is the reason of the rejection."""
    UNDECIDED = "undecided"


class EditorGate:
    """Asks the client of a thread about the proposals of its session."""

    def __init__(self, editor: "Editor", handle: "SessionHandle", root: str) -> None:
        self._editor = editor
        self._handle = handle
        self._root = root

    async def ask(
        self, update: "SessionUpdate", proposal: "Proposal", changes: "Sequence[FileChange]" = ()
    ) -> GateAnswer:
        """Ask about the proposal that waits, until there is an answer; `changes` are its files if they are known."""
        session = update.state.session
        asked = gate_question(update, proposal, self._root, changes)
        while True:
            chosen = await self._editor.ask(session, asked.call, asked.options)
            if chosen == APPROVE and asked.special:
                again = special_question(asked)
                chosen = await self._editor.ask(session, again.call, again.options)
                if chosen == BACK:
                    continue
            return await self._carry_out(session, asked, chosen)

    async def _carry_out(self, session: str, asked: GateQuestion, chosen: str | None) -> GateAnswer:
        proposal = asked.proposal.id
        intents: tuple[Intent, ...]
        if chosen == APPROVE:
            intents = (ApproveProposal(proposal, asked.sha),)
        elif chosen is not None and chosen.startswith(ALWAYS):
            # The approval is of what was shown; the rule is for what comes after it.
            intents = (ApproveProposal(proposal, asked.sha), ChangeRule(asked.rules[chosen], RuleScope.SESSION))
        elif chosen == REJECT:
            intents = (RejectProposal(proposal, NO_REASON),)
        elif chosen == SKIP:
            intents = (SkipProposal(proposal),)
        else:
            return GateAnswer.EXPLAINED_NEXT if chosen == EXPLAIN else GateAnswer.UNDECIDED
        for intent in intents:
            outcome = await self._handle.submit(intent)
            if isinstance(outcome, Refused):
                await self._editor.say(session, f"That was not recorded: {literal(outcome.reason)}.")
                break
        return GateAnswer.DECIDED
