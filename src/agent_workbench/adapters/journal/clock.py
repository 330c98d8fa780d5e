"""Clock of the machine, and session ids made from its time."""

import base64
import secrets
import time
from datetime import UTC, datetime

from agent_workbench.core.ids import SessionId


class SystemClock:
    """`core.ports.machine.Clock` on the machine's clocks."""

    def now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic_seconds(self) -> float:
        return time.monotonic()


class SystemIds:
    """`core.ports.machine.Ids`: the time in UTC and 30 random bits."""

    def session(self) -> SessionId:
        suffix = base64.b32encode(secrets.token_bytes(5)).decode("ascii")[:6].lower()
        return SessionId(f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{suffix}")
