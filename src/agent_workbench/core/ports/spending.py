"""Protocol of the ledger that keeps paid endpoints within the day's cap."""

from typing import Protocol

from msgspec import Struct


class Reservation(Struct, frozen=True):
    """Money set aside for one answer, and its day. `shared` is its number in a ledger that machines share (0: none)."""

    day: str
    endpoint: str
    dollars: float
    shared: int = 0


class SpendingCapReached(Exception):
    """A reservation would exceed the cap. `spent` dollars are already used."""

    def __init__(self, spent: float) -> None:
        super().__init__(f"${spent:.4f} were spent")
        self.spent = spent


class Spending(Protocol):
    """Dollars of each day (UTC) for all sessions that share a cap.

    A reservation counts as spent until it is settled, so that two processes cannot both take the last cent, and a
    crash leaves the worst case counted. Every method raises `StorageError` if the sum is unknown or cannot be written:
    then nothing that costs may be asked.
    """

    async def spent_today(self) -> float:
        """Return today's dollars, reservations included."""

    async def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        """Set `dollars` aside; raise `SpendingCapReached` if today's sum would exceed `cap`."""

    async def settle(self, reservation: Reservation, dollars: float) -> None:
        """Replace a reservation by the real cost."""
