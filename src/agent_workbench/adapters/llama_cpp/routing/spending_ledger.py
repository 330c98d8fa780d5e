"""What paid endpoints cost today, counted over all sessions and processes of the user."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.core.model_settings import MAX_DOLLARS
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


class Reservation(Struct, frozen=True):
    """What was set aside for one answer, and on which day."""

    day: str
    endpoint: str
    dollars: float


class SpendingCapReached(Exception):
    """What was asked for does not fit into the cap; `spent` dollars of it are gone."""

    def __init__(self, spent: float) -> None:
        super().__init__(f"${spent:.4f} were spent")
        self.spent = spent


class SpendingLedger:
    """The file `spending.json` in `folder`; each call holds its lock, and blocks.

    What is set aside counts as spent until it is settled, so that two processes cannot both have the last cent, and a
    crash leaves the worst case counted. Every call raises `StorageError` where the file cannot be read or written.
    """

    def __init__(self, folder: Path, today: Callable[[], str] = utc_day) -> None:
        self._path = folder / FILE
        self._today = today

    def spent_today(self) -> float:
        """Return the dollars of today (UTC), what is set aside included."""
        if not self._path.exists():
            return 0.0
        return _sum(self._read().get(self._today(), {}))

    def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        """Set `dollars` aside; raise `SpendingCapReached` where today's sum would be over `cap`."""
        with self._locked():
            days, day = self._read(), self._today()
            spent = _sum(days.get(day, {}))
            # Compared as they are counted: in binary fractions 0.1 + 0.2 is over 0.3.
            if _counted(spent) + _counted(dollars) > _counted(cap):
                raise SpendingCapReached(spent)
            self._add(days, day, endpoint, _counted(dollars))
        return Reservation(day, endpoint, dollars)

    def settle(self, reservation: Reservation, dollars: float) -> None:
        """Put what it cost in the place of what was set aside."""
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
            f"{self._path} does not hold what it should, so what was spent today is not known",
            advice="look at it, then remove it: today's count begins again at 0",
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_directories(self._path.parent)
        except OSError as error:
            raise storage_error(f"{self._path.parent} could not be made", error) from error
        lock = FileLock(self._path.with_suffix(".lock"), describe_holder())
        try:
            lock.acquire(wait_seconds=_LOCK_SECONDS)
        except LockedError as error:
            raise StorageError(f"{self._path} stays locked by {error.holder}", advice=error.advice) from error
        try:
            yield
        finally:
            lock.release()


def _counted(dollars: float) -> int:
    """Return dollars as they are counted, rounded up: rather a billionth too much than an answer for nothing."""
    return math.ceil(round(min(dollars, MAX_DOLLARS) * _PER_DOLLAR, 3))


def _sum(of_day: Mapping[str, int]) -> float:
    return sum(of_day.values()) / _PER_DOLLAR


def _is_day(value: object) -> bool:
    return isinstance(value, dict) and all(type(each) is int and 0 <= each <= _MOST_COUNTED for each in value.values())
