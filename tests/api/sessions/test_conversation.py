"""A conversation asks about a call only if a person has to decide it."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

from agent_workbench.api.sessions.conversation import Conversation
from agent_workbench.core.events import ActionProposed, ChatReplied, ChatStarted, Event, Recorded, UserSaid
from agent_workbench.core.fold import fold_all
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Permission
from tests.fakes import runs


class Updates:
    """The part of a session's handle that a conversation follows: an update after each of the last events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = tuple(events)

    async def live(self) -> AsyncIterator[SessionUpdate]:
        for end in range(len(self._events) - 2, len(self._events) + 1):
            happened = [Recorded(seq, "", event) for seq, event in enumerate(self._events[:end])]
            yield SessionUpdate(fold_all(happened))


async def reached(kind: Permission, tool: str) -> object:
    call = runs.proposed(kind, tool, "P-9", "{}", source="skill", spec="0" * 16)
    events = (*runs.opening(), ChatStarted(1), UserSaid("which skills are there?"), ActionProposed(call))
    handle = Updates((*events, ChatReplied(1, "these")))
    return await Conversation(cast("SessionHandle", handle)).proceed()


async def test_a_call_that_the_policy_approves_in_a_moment_is_asked_nobody() -> None:
    assert not isinstance(await reached(Permission.READ, "list_skills"), Proposal)


async def test_a_script_is_asked_about() -> None:
    found = await reached(Permission.SCRIPT, "run_python_script")
    assert isinstance(found, Proposal)
    assert found.tool == "run_python_script"
