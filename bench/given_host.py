"""A session host that opens one given session, for the figures of the screen."""

from collections.abc import Sequence

from agent_workbench.core.inbox import InboxChoice, InboxFilter, InboxItem, InboxReceipt, Reference
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.core.state.session_state import SessionState


class GivenHost:
    """Implements `core.ports.session_host.SessionHost`."""

    def __init__(self, session: SessionHandle) -> None:
        self._session = session

    async def open(self, request: SessionRequest) -> SessionHandle:
        """Return the session."""
        del request
        return self._session

    async def inbox(self, wanted: InboxFilter) -> Sequence[InboxItem]:
        """Return nothing: no proposal waits elsewhere."""
        del wanted
        return ()

    async def pending_state(self, item: InboxItem) -> SessionState:
        """Fail: nothing waits."""
        raise AssertionError(f"{item.id} does not wait")

    async def decide(self, reference: Reference, choice: InboxChoice) -> InboxReceipt:
        """Fail: there is nothing to decide."""
        raise AssertionError(f"{reference} is not pending, so {choice} cannot be made")
