"""Names and time as the machine gives them."""

import base64
import secrets
import time
from datetime import UTC, datetime

from agent_workbench.core.ids import SessionId


class SystemClock:
    """`core.ports.Clock` on the system's clocks."""

    def now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic_seconds(self) -> float:
        return time.monotonic()


class SystemIds:
    """`core.ports.Ids`: the time in UTC, and 30 random bits."""

    def session(self) -> SessionId:
        suffix = base64.b32encode(secrets.token_bytes(5)).decode("ascii")[:6].lower()
        return SessionId(f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{suffix}")
