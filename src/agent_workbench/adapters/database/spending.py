"""The port `Spending` for all machines that share a database, on top of the machine's own ledger."""

import math
from decimal import Decimal

from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ports.model import Reservation, Spending, SpendingCapReached
from agent_workbench.core.settings.models import MAX_DOLLARS

# A count in whole billionths, as in the machine's own ledger.
_PER_DOLLAR = 1_000_000_000
# Of a lock that is held until the end of a transaction.
_LOCK = 0x4157_5350
# A forged negative number gives nobody money.
_SUM = """\
SELECT coalesce(sum(greatest(billionths, 0)), 0) FROM agent_spending
WHERE day = (clock_timestamp() AT TIME ZONE 'UTC')::date"""
_RESERVE = """\
INSERT INTO agent_spending (day, worker, endpoint, billionths)
VALUES ((clock_timestamp() AT TIME ZONE 'UTC')::date, %s, %s, %s) RETURNING id"""
_SETTLE = "UPDATE agent_spending SET billionths = %s, settled = true WHERE id = %s AND NOT settled"


class DatabaseSpending:
    """Implements `core.ports.model.Spending`; the day is that of the database's clock.

    `own` is the ledger of this machine, `worker` its name. It counts first and as if there were no database, so that
    changed rows can take money from this machine and never give it more than its own cap.
    """

    def __init__(self, database: Database, own: Spending, worker: str) -> None:
        self._database = database
        self._own = own
        self._worker = worker

    async def spent_today(self) -> float:
        """Return today's dollars of all machines, reservations included; raise `StorageError` without the database."""
        own = await self._own.spent_today()
        async with self._database.connection() as connection:
            return max(own, await _sum(connection) / _PER_DOLLAR)

    async def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        """Set dollars aside here and in the database; raise `SpendingCapReached`, `StorageError`."""
        own = await self._own.reserve(endpoint, dollars, cap)
        try:
            number = await self._reserve(endpoint, dollars, cap)
        except BaseException:
            await self._own.settle(own, 0.0)
            raise
        return replace(own, shared=number)

    async def settle(self, reservation: Reservation, dollars: float) -> None:
        """Replace a reservation by the real cost, in both; without the database the worst case stays counted there."""
        await self._own.settle(reservation, dollars)
        async with self._database.connection() as connection:
            await connection.execute(_SETTLE, (_counted(dollars), reservation.shared))

    async def _reserve(self, endpoint: str, dollars: float, cap: float) -> int:
        async with self._database.connection() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            spent = await _sum(connection)
            if spent + _counted(dollars) > _counted(cap):
                raise SpendingCapReached(spent / _PER_DOLLAR)
            row = await (await connection.execute(_RESERVE, (self._worker, endpoint, _counted(dollars)))).fetchone()
            if row is None or not isinstance(row[0], int):
                raise StorageError("the database did not keep a reservation of money")
            return row[0]


async def _sum(connection: Connection) -> int:
    row = await (await connection.execute(_SUM)).fetchone()
    if row is None or not isinstance(row[0], Decimal | int):
        raise StorageError("the database does not tell what was spent today")
    return int(row[0])


def _counted(dollars: float) -> int:
    """Return dollars as whole billionths, rounded up, so that no answer is free."""
    return math.ceil(round(min(dollars, MAX_DOLLARS) * _PER_DOLLAR, 3))
