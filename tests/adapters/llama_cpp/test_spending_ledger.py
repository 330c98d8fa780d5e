import json
import math
import multiprocessing
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.priced_model import FILE, SpendingLedger, utc_day
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ports.model import SpendingCapReached
from agent_workbench.core.settings.models import MAX_DOLLARS
from agent_workbench.system.locks import FileLock


class Calendar:
    def __init__(self) -> None:
        self.day = "2026-11-21"

    def __call__(self) -> str:
        return self.day


def test_nothing_was_spent_before_anything_was(tmp_path: Path) -> None:
    ledger = SpendingLedger(tmp_path / "state")
    assert ledger.spent_today() == 0.0
    assert not (tmp_path / "state").exists()


def test_what_is_set_aside_counts_until_it_is_settled(tmp_path: Path) -> None:
    ledger = SpendingLedger(tmp_path / "state")
    first = ledger.reserve("big", 0.6, cap=1.0)
    assert ledger.spent_today() == pytest.approx(0.6)
    with pytest.raises(SpendingCapReached) as caught:
        ledger.reserve("big", 0.5, cap=1.0)
    assert caught.value.spent == pytest.approx(0.6)
    ledger.settle(first, 0.1)
    assert ledger.spent_today() == pytest.approx(0.1)
    ledger.reserve("other", 0.9, cap=1.0)
    with pytest.raises(SpendingCapReached):
        ledger.reserve("big", 0.000_000_001, cap=1.0)


def test_a_crash_leaves_the_worst_case_counted(tmp_path: Path) -> None:
    SpendingLedger(tmp_path).reserve("big", 0.6, cap=1.0)
    assert SpendingLedger(tmp_path).spent_today() == pytest.approx(0.6)


def test_tenths_add_up(tmp_path: Path) -> None:
    ledger = SpendingLedger(tmp_path)
    for _ in range(10):
        ledger.reserve("big", 0.1, cap=1.0)
    assert ledger.spent_today() == 1.0


def test_a_cap_can_be_reached_to_the_last_tenth(tmp_path: Path) -> None:
    ledger = SpendingLedger(tmp_path)
    ledger.reserve("big", 0.1, cap=0.3)
    ledger.reserve("big", 0.2, cap=0.3)  # in binary fractions this is more than 0.3
    assert ledger.spent_today() == 0.3


def test_an_answer_that_cost_more_than_was_set_aside_counts_in_full(tmp_path: Path) -> None:
    ledger = SpendingLedger(tmp_path)
    ledger.settle(ledger.reserve("big", 0.1, cap=1.0), 0.4)
    assert ledger.spent_today() == pytest.approx(0.4)


def test_each_day_has_its_own_count(tmp_path: Path) -> None:
    calendar = Calendar()
    ledger = SpendingLedger(tmp_path, calendar)
    late = ledger.reserve("big", 1.0, cap=1.0)
    calendar.day = "2026-11-22"
    assert ledger.spent_today() == 0.0
    ledger.reserve("big", 1.0, cap=1.0)
    ledger.settle(late, 0.25)
    assert ledger.spent_today() == 1.0, "the answer belongs to the day on which it was asked for"
    calendar.day = "2026-11-21"
    assert ledger.spent_today() == 0.25


def test_old_days_are_forgotten(tmp_path: Path) -> None:
    calendar = Calendar()
    ledger = SpendingLedger(tmp_path, calendar)
    for number in range(100):
        calendar.day = f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}"
        ledger.reserve("big", 0.1, cap=1.0)
    days = json.loads((tmp_path / FILE).read_bytes())["days"]
    assert len(days) == 62
    assert calendar.day in days


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "nonsense",
        "[]",
        '{"version": 2, "days": {}}',
        '{"version": 1, "days": []}',
        '{"version": 1, "days": {"2026-11-21": 5}}',
        '{"version": 1, "days": {"2026-11-21": {"big": -1}}}',
        '{"version": 1, "days": {"2026-11-21": {"big": "1"}}}',
        '{"version": 1, "days": {"2026-11-21": {"big": true}}}',
    ],
)
def test_a_broken_count_is_not_taken_for_zero(tmp_path: Path, broken: str) -> None:
    (tmp_path / FILE).write_text(broken)
    ledger = SpendingLedger(tmp_path, Calendar())
    for ask in (ledger.spent_today, lambda: ledger.reserve("big", 0.0, cap=1.0)):
        with pytest.raises(StorageError, match="spending is unknown") as caught:
            ask()
        assert "remove it" in caught.value.advice
    assert (tmp_path / FILE).read_text() == broken


def test_a_lock_that_nobody_gives_back_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.adapters.llama_cpp.priced_model._LOCK_SECONDS", 0.0)
    ledger = SpendingLedger(tmp_path)
    with (
        FileLock(tmp_path / "spending.lock", "somebody with a lock"),
        pytest.raises(StorageError, match="stays locked by somebody with a lock"),
    ):
        ledger.reserve("big", 0.1, cap=1.0)


def _spend(folder: Path, tries: int, won: "multiprocessing.Queue[int]") -> None:
    ledger, got = SpendingLedger(folder), 0
    for _ in range(tries):
        try:
            ledger.reserve("big", 0.01, cap=0.25)
        except SpendingCapReached:
            continue
        got += 1
    won.put(got)


@pytest.mark.slow
def test_processes_never_pass_the_cap_together(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    won: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=_spend, args=(tmp_path, 12, won)) for _ in range(3)]
    for process in processes:
        process.start()
    got = [won.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert sum(got) == 25
    assert SpendingLedger(tmp_path).spent_today() == 0.25


def test_no_amount_is_too_large_to_be_counted(tmp_path: Path) -> None:
    ledger = SpendingLedger(tmp_path)
    ledger.settle(ledger.reserve("a", 1e308, math.inf), math.inf)
    assert ledger.spent_today() == MAX_DOLLARS
    (tmp_path / FILE).write_text(json.dumps({"version": 1, "days": {utc_day(): {"a": 10**400}}}))
    with pytest.raises(StorageError, match="is damaged"):
        ledger.spent_today()
