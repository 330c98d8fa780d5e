"""Model with a price, asked only if the worst case fits the spending caps; and the ledger of what each day cost."""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.background import uninterrupted
from agent_workbench.core.errors import LockedError, ModelError, ModelRefused, ModelUnavailable, StorageError
from agent_workbench.core.model import (
    AnswerCost,
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    ModelFacts,
    ModelRequest,
    Purpose,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.ports.model import Model, Reservation, Spending, SpendingCapReached
from agent_workbench.core.settings.models import MAX_DOLLARS, TokenPrice
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.locks import FileLock, describe_holder

# Tokens are seldom shorter, so this estimate is rather too high.
_BYTES_PER_TOKEN = 3
# Tokens that chat templates add to a message.
_TOKENS_PER_MESSAGE = 8
# No prompt is smaller; with less money left the endpoint is not even observed.
_LEAST_PROMPT_TOKENS, _LEAST_ANSWER_TOKENS = 256, 64

FILE = "spending.json"
# A count in whole billionths: sums of dollars as binary fractions drift.
_PER_DOLLAR = 1_000_000_000
_MOST_COUNTED = 10**24
_LOCK_SECONDS = 10.0
_DAYS_KEPT = 62

Days = dict[str, dict[str, int]]


class CostCapExceeded(ModelRefused):
    """An endpoint is not asked because its answer might exceed a cap; `why` says which in a few words."""

    def __init__(self, what: str, why: str, *, advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.why = why


class PricedModel:
    """The port `Model` over `inner`, which costs `price`; today's spending of all sessions stays within `cap`."""

    def __init__(
        self, inner: Model, name: str, price: TokenPrice, cap: float, spending: Spending, on_status: OnStatus
    ) -> None:
        self._inner = inner
        self._name = name
        self._price = price
        self._cap = cap
        self._spending = spending
        self._on_status = on_status
        self._thinks = False
        # The worst case of the last request, an estimate for the next one.
        self._least = self._last = price.dollars(_LEAST_PROMPT_TOKENS, _LEAST_ANSWER_TOKENS)

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        try:
            await self._check_cap(self._last)
        except CostCapExceeded:
            # The next prompt may be a smaller one.
            self._last = max(self._least, self._last / 2)
            raise
        facts = await self._inner.observe(purpose)
        self._thinks = facts.thinks
        return facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        reserving = asyncio.ensure_future(self._reserve(request))
        try:
            reservation = await uninterrupted(reserving)
        except asyncio.CancelledError:
            if not reserving.cancelled() and reserving.exception() is None:
                await uninterrupted(self._settle(reserving.result(), 0.0))
            raise
        spent = _RunningCost(self._price, prompt_tokens_of(request))
        try:
            yield AnswerCost(spent.dollars)
            async with contextlib.aclosing(self._inner.answer(request)) as items:
                async for item in items:
                    spent.see(item)
                    if isinstance(item, AnswerEnd):
                        yield replace(item, figures=replace(item.figures, dollars=spent.dollars))
                    else:
                        # The cost comes first, so that a caller who stops at this item knows it.
                        yield AnswerCost(spent.dollars)
                        yield item
        except ModelError as error:
            if error.retry_after_seconds or not isinstance(error, ModelUnavailable):
                spent.nothing()
            error.dollars = spent.dollars
            raise
        finally:
            # Whoever stops an answer, at whatever moment, must not leave its worst case counted.
            await uninterrupted(self._settle(reservation, spent.dollars))

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self._inner.count_tokens(texts, purpose)

    async def close(self) -> None:
        await self._inner.close()

    async def _reserve(self, request: ModelRequest) -> Reservation:
        worst = worst_case(self._price, request, thinks=self._thinks)
        left = request.dollars_left
        if left is not None and worst > left:
            raise CostCapExceeded(
                f"{self._name} is not asked: this answer may cost {_dollars(worst)}, and the task's "
                f"budget.dollars leaves {_dollars(left)}",
                "too little is left of the task's budget.dollars",
                advice="raise budget.dollars of the task, or put a free endpoint into the chain",
            )
        self._last = worst
        try:
            return await self._spending.reserve(self._name, worst, self._cap)
        except SpendingCapReached as reached:
            raise self._over(worst, reached.spent) from reached
        except StorageError as error:
            raise self._unknown(error) from error

    async def _check_cap(self, dollars: float) -> None:
        """Raise `CostCapExceeded` if less than this is left today."""
        try:
            spent = await self._spending.spent_today()
        except StorageError as error:
            raise self._unknown(error) from error
        if spent + dollars > self._cap:
            raise self._over(dollars, spent)

    def _over(self, worst: float, spent: float) -> CostCapExceeded:
        cap = f"${self._cap:g}" if self._cap else "$0, so nothing that costs is asked"
        return CostCapExceeded(
            f"{self._name} is not asked: this answer may cost {_dollars(worst)}, and {_dollars(spent)} were spent "
            f"today (UTC) of cost_cap_daily ({cap})",
            f"too little is left of cost_cap_daily (${self._cap:g})" if self._cap else "cost_cap_daily is 0",
            advice="raise cost_cap_daily, wait for the next day (UTC), or put a free endpoint into the chain",
        )

    def _unknown(self, error: StorageError) -> CostCapExceeded:
        why = f"{self._name} is not asked: {error}"
        return CostCapExceeded(why, "what was spent today is not known", advice=error.advice)

    async def _settle(self, reservation: Reservation, dollars: float) -> None:
        try:
            await self._spending.settle(reservation, dollars)
        except StorageError as error:
            self._on_status(f"the worst case of what {self._name} cost stays counted: {error}")


class _RunningCost:
    """Cost of an answer so far."""

    def __init__(self, price: TokenPrice, prompt_tokens: int) -> None:
        self._price = price
        self._prompt_tokens = prompt_tokens
        self._pieces = 0
        self._bytes = 0
        self.dollars = price.dollars(prompt_tokens, 0)

    def see(self, item: AnswerItem) -> None:
        """Count an item."""
        match item:
            case TextDelta() | ThoughtDelta():
                self._pieces += 1
                self._bytes += len(item.text.encode("utf-8", "surrogatepass"))
                self.dollars = self._price.dollars(self._prompt_tokens, self._answer_tokens)
            case AnswerEnd():
                self.dollars = self._told(item.figures)
            case _:
                pass

    def nothing(self) -> None:
        """Set the cost of a refused request to zero, unless a part of the answer came."""
        if not self._pieces:
            self.dollars = 0.0

    @property
    def _answer_tokens(self) -> int:
        return max(self._pieces, math.ceil(self._bytes / _BYTES_PER_TOKEN))

    def _told(self, figures: AnswerFigures) -> float:
        """Return the price of the server's figures; missing ones are replaced by our own count."""
        return self._price.dollars(
            figures.prompt_tokens or self._prompt_tokens, figures.answer_tokens or self._answer_tokens
        )


def _dollars(amount: float) -> str:
    """Return an amount as text, with digits enough that a small one is not $0."""
    return f"${amount:.4f}" if amount >= 0.001 else f"${max(0.0, amount):.2g}"


def worst_case(price: TokenPrice, request: ModelRequest, *, thinks: bool) -> float:
    """Return the highest price of an answer; a thought may be as long as the answer."""
    return price.dollars(prompt_tokens_of(request), request.answer_tokens * (2 if thinks else 1))


def prompt_tokens_of(request: ModelRequest) -> int:
    """Return the tokens of a prompt with those of the template; a high estimate if they were not counted."""
    around = _TOKENS_PER_MESSAGE * len(request.messages)
    if request.prompt_tokens:
        return request.prompt_tokens + around
    letters = sum(len(message.text.encode("utf-8", "surrogatepass")) for message in request.messages)
    return math.ceil(letters / _BYTES_PER_TOKEN) + around


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
