"""Retry pauses for a server that is loading or busy: they grow until the deadline, and each is reported."""

import asyncio
from collections.abc import Callable

from agent_workbench.adapters.llama_cpp.http_client.server_errors import ServerError, model_error

OnStatus = Callable[[str], None]

_FIRST_SECONDS = 0.25
_LOADING_SECONDS = 2.0
_BUSY_SECONDS = 30.0


class Backoff:
    """Pauses between requests to the server at `address`; `deadline` is the event loop's time.

    Without `patient` the first pause raises instead.
    """

    def __init__(self, address: str, deadline: float, on_status: OnStatus, *, patient: bool = True) -> None:
        self._address = address
        self._deadline = deadline
        self._on_status = on_status
        self._since = asyncio.get_running_loop().time()
        self._next_seconds = _FIRST_SECONDS
        self._patient = patient

    async def pause(self, fault: ServerError, at_least_seconds: float = 0.0) -> None:
        """Sleep before the next attempt; raise the error if that is past the deadline or retrying cannot help."""
        now = asyncio.get_running_loop().time()
        seconds = max(self._next_seconds, at_least_seconds)
        if not (fault.passes and self._patient) or now + seconds >= self._deadline:
            error = model_error(fault, self._address)
            error.retry_after_seconds = seconds if fault.passes else 0.0
            raise error
        loading = fault.is_loading
        doing = "loads its model" if loading else "is busy"
        self._on_status(f"the server at {self._address} {doing} ({now - self._since:.0f} s)")
        self._next_seconds = min(self._next_seconds * 2, _LOADING_SECONDS if loading else _BUSY_SECONDS)
        await asyncio.sleep(seconds)
