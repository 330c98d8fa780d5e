"""Ledger of what paid endpoints cost each day, shared by all sessions and processes of the user."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.core.ports.model import Reservation, SpendingCapReached
from agent_workbench.core.settings.models import MAX_DOLLARS
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.locks import FileLock, describe_holder

FILE = "spending.json"
# A count in whole billionths: sums of dollars as binary fractions drift.
_PER_DOLLAR = 1_000_000_000
_MOST_COUNTED = 10**24
_LOCK_SECONDS = 10.0
_DAYS_KEPT = 62

Days = dict[str, dict[str, int]]


def utc_day() -> str:
    """Return today's date in UTC."""
    return datetime.now(UTC).date().isoformat()


class SpendingLedger:
    """The file `spending.json` in `folder`; each call holds its lock, and blocks.

    Every call raises `StorageError` if the file cannot be read or written.
    """

    def __init__(self, folder: Path, today: Callable[[], str] = utc_day) -> None:
        self._path = folder / FILE
        self._today = today

    def spent_today(self) -> float:
        """Return today's dollars (UTC), reservations included."""
        if not self._path.exists():
            return 0.0
        return _sum(self._read().get(self._today(), {}))

    def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        """Set `dollars` aside; raise `SpendingCapReached` if today's sum would exceed `cap`."""
        with self._locked():
            days, day = self._read(), self._today()
            spent = _sum(days.get(day, {}))
            # Compared as whole numbers: in binary fractions 0.1 + 0.2 is more than 0.3.
            if _counted(spent) + _counted(dollars) > _counted(cap):
                raise SpendingCapReached(spent)
            self._add(days, day, endpoint, _counted(dollars))
        return Reservation(day, endpoint, dollars)

    def settle(self, reservation: Reservation, dollars: float) -> None:
        """Replace a reservation by the real cost."""
        with self._locked():
            change = _counted(dollars) - _counted(reservation.dollars)
            self._add(self._read(), reservation.day, reservation.endpoint, change)

    def _add(self, days: Days, day: str, endpoint: str, change: int) -> None:
        of_day = days.setdefault(day, {})
        of_day[endpoint] = max(0, of_day.get(endpoint, 0) + change)
        kept = {each: days[each] for each in sorted(days)[-_DAYS_KEPT:]}
        write_atomically(self._path, json.dumps({"version": 1, "days": kept}, indent=1).encode() + b"\n")

    def _read(self) -> Days:
        try:
            said = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_error(f"{self._path} could not be read", error) from error
        except (ValueError, RecursionError) as error:
            raise self._broken() from error
        days = said.get("days") if isinstance(said, dict) and said.get("version") == 1 else None
        if not isinstance(days, dict) or not all(_is_day(each) for each in days.values()):
            raise self._broken()
        return days

    def _broken(self) -> StorageError:
        return StorageError(
            f"{self._path} is damaged, so today's spending is unknown",
            advice="check the file, then remove it; today's count starts again at 0",
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_directories(self._path.parent)
        except OSError as error:
            raise storage_error(f"{self._path.parent} could not be created", error) from error
        lock = FileLock(self._path.with_suffix(".lock"), describe_holder())
        try:
            lock.acquire(wait_seconds=_LOCK_SECONDS)
        except LockedError as error:
            raise StorageError(f"{self._path} stays locked by {error.holder}", advice=error.advice) from error
        try:
            yield
        finally:
            lock.release()


class LocalSpending:
    """`core.ports.model.Spending` of the user on this machine."""

    def __init__(self, ledger: SpendingLedger) -> None:
        self._ledger = ledger

    async def spent_today(self) -> float:
        """Return today's dollars, reservations included."""
        return await asyncio.to_thread(self._ledger.spent_today)

    async def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        """Set dollars aside."""
        return await asyncio.to_thread(self._ledger.reserve, endpoint, dollars, cap)

    async def settle(self, reservation: Reservation, dollars: float) -> None:
        """Replace a reservation by the real cost."""
        await asyncio.to_thread(self._ledger.settle, reservation, dollars)


def _counted(dollars: float) -> int:
    """Return dollars as whole billionths, rounded up, so that no answer is free."""
    return math.ceil(round(min(dollars, MAX_DOLLARS) * _PER_DOLLAR, 3))


def _sum(of_day: Mapping[str, int]) -> float:
    return sum(of_day.values()) / _PER_DOLLAR


def _is_day(value: object) -> bool:
    return isinstance(value, dict) and all(type(each) is int and 0 <= each <= _MOST_COUNTED for each in value.values())
