"""Facts about the server: its version, its clock, and the time of one answer."""

from datetime import UTC, datetime
from time import perf_counter

from msgspec import Struct

from agent_workbench.adapters.database.connection import Database


class ServerFacts(Struct, frozen=True):
    """Version, time of one answer, and how far this machine's clock is ahead of the server's."""

    version: str
    milliseconds: float
    clock_seconds: float


async def server_facts(database: Database) -> ServerFacts:
    """Ask the server; raise `DatabaseDownError`."""
    async with database.connection() as connection:
        began, sent = datetime.now(UTC), perf_counter()
        found = await connection.execute("SELECT left(current_setting('server_version'), 100), clock_timestamp()")
        row = await found.fetchone()
        seconds = perf_counter() - sent
    version, moment = row if row is not None else ("", began)
    ahead = 0.0
    if isinstance(moment, datetime):
        ahead = (began - moment).total_seconds() + seconds / 2
    return ServerFacts(str(version), seconds * 1000, ahead)
