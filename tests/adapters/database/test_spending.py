"""A cap that holds for all machines of a database, on a real PostgreSQL."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.spending import DatabaseSpending
from agent_workbench.adapters.llama_cpp.priced_model import LocalSpending, SpendingLedger
from agent_workbench.core.errors import DatabaseDownError, StorageError
from agent_workbench.core.ports.model import SpendingCapReached
from tests.postgres import PostgresServer


@pytest.fixture
async def database(migrated_url: str) -> AsyncIterator[Database]:
    async with Database(migrated_url) as database:
        await _run(database, "DELETE FROM agent_spending")
        yield database


async def _run(database: Database, statement: str) -> None:
    async with database.connection() as connection:
        await connection.execute(statement)


def machine(database: Database, folder: Path, name: str = "box") -> DatabaseSpending:
    return DatabaseSpending(database, LocalSpending(SpendingLedger(folder / name)), name)


async def test_a_reservation_counts_for_every_machine_until_it_is_settled(database: Database, tmp_path: Path) -> None:
    box, laptop = machine(database, tmp_path), machine(database, tmp_path, "laptop")
    held = await box.reserve("cloud", 0.6, 1.0)
    assert await laptop.spent_today() == 0.6
    with pytest.raises(SpendingCapReached) as reached:
        await laptop.reserve("cloud", 0.5, 1.0)
    assert reached.value.spent == 0.6
    await box.settle(held, 0.25)
    await box.settle(held, 0.0)
    assert await laptop.spent_today() == await box.spent_today() == 0.25
    await laptop.reserve("cloud", 0.75, 1.0)
    assert await box.spent_today() == 1.0


async def test_what_was_refused_is_set_aside_nowhere(database: Database, tmp_path: Path) -> None:
    box, laptop = machine(database, tmp_path), machine(database, tmp_path, "laptop")
    await laptop.reserve("cloud", 0.9, 1.0)
    with pytest.raises(SpendingCapReached):
        await box.reserve("cloud", 0.2, 1.0)
    assert await asyncio.to_thread(SpendingLedger(tmp_path / "box").spent_today) == 0.0
    await box.reserve("cloud", 0.1, 1.0)


@pytest.mark.parametrize(
    "forgery",
    [
        "DELETE FROM agent_spending",
        "UPDATE agent_spending SET billionths = 0",
        "UPDATE agent_spending SET day = '2000-01-01'",
        "ALTER TABLE agent_spending DROP CONSTRAINT agent_spending_billionths_check;"
        "UPDATE agent_spending SET billionths = -1000000000000",
    ],
)
async def test_a_forged_row_gives_a_machine_no_money_beyond_its_own_cap(
    postgres_server: PostgresServer, tmp_path: Path, forgery: str
) -> None:
    url = postgres_server.create_migrated()
    try:
        async with Database(url) as database:
            box = machine(database, tmp_path)
            await box.reserve("cloud", 0.9, 1.0)
            for statement in forgery.split(";"):
                await _run(database, statement)
            assert await box.spent_today() >= 0.9
            with pytest.raises(SpendingCapReached):
                await box.reserve("cloud", 0.2, 1.0)
    finally:
        postgres_server.drop(url)


async def test_a_forged_row_can_deny(database: Database, tmp_path: Path) -> None:
    await _run(
        database,
        "INSERT INTO agent_spending (day, worker, endpoint, billionths) "
        "VALUES ((clock_timestamp() AT TIME ZONE 'UTC')::date, '', '', 9223372036854775807), "
        "((clock_timestamp() AT TIME ZONE 'UTC')::date, '', '', 9223372036854775807)",
    )
    with pytest.raises(SpendingCapReached):
        await machine(database, tmp_path).reserve("cloud", 0.01, 1.0)


async def test_without_the_database_nothing_is_known_and_nothing_stays_set_aside(tmp_path: Path) -> None:
    async with Database(f"postgresql://agent@/x?host={tmp_path}") as database:
        box = machine(database, tmp_path)
        with pytest.raises(DatabaseDownError):
            await box.spent_today()
        with pytest.raises(StorageError):
            await box.reserve("cloud", 0.5, 1.0)
    assert await asyncio.to_thread(SpendingLedger(tmp_path / "box").spent_today) == 0.0


PROCESS = """
import asyncio, random, sys
from pathlib import Path
from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.spending import DatabaseSpending
from agent_workbench.adapters.llama_cpp.priced_model import LocalSpending, SpendingLedger
from agent_workbench.core.ports.model import SpendingCapReached
url, folder, seed, cap = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
chance = random.Random(seed)
async def main():
    paid = 0.0
    async with Database(url) as database:
        ledger = DatabaseSpending(database, LocalSpending(SpendingLedger(folder)), str(seed))
        async def answers():
            nonlocal paid
            for _ in range(12):
                worst = chance.uniform(0.01, cap / 3)
                try:
                    held = await ledger.reserve("cloud", worst, cap)
                except SpendingCapReached:
                    continue
                paid += (real := worst * chance.choice((0.1, 0.5, 1.0)))
                await asyncio.sleep(0)
                await ledger.settle(held, real)
        await asyncio.gather(*(answers() for _ in range(3)))
    print(paid)
asyncio.run(main())
"""


async def test_processes_at_once_never_exceed_the_cap(database: Database, migrated_url: str, tmp_path: Path) -> None:
    cap = random.Random().choice((0.3, 1.0, 7.5))

    def run() -> list[float]:
        command = (sys.executable, "-c", PROCESS, migrated_url)
        running = [
            subprocess.Popen([*command, str(tmp_path / str(seed)), str(seed), str(cap)], stdout=subprocess.PIPE)
            for seed in random.Random().sample(range(1_000_000), 2)
        ]
        return [float(each.communicate(timeout=60)[0]) for each in running]

    paid = await asyncio.to_thread(run)
    assert 0.0 < sum(paid) <= cap + 1e-6
    counted = await machine(database, tmp_path).spent_today()
    assert counted == pytest.approx(sum(paid), abs=1e-6)
