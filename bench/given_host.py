"""A session host that opens one given session, for the figures of the screen."""

from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import SessionRequest


class GivenHost:
    """Implements `core.ports.session_host.SessionHost`."""

    def __init__(self, session: SessionHandle) -> None:
        self._session = session

    async def open(self, request: SessionRequest) -> SessionHandle:
        """Return the session."""
        del request
        return self._session
