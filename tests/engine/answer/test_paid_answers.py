"""A budget in dollars holds over answers that were stopped and over a new start: with real sockets and a fake price."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.routing.model_registry import ModelRegistry
from agent_workbench.adapters.llama_cpp.routing.spending_ledger import SpendingLedger
from agent_workbench.core.events import InterruptCause, ModelInterrupted
from agent_workbench.core.plan import Budget
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings, RoleSettings, TokenPrice
from tests.engine.front import in_front_of
from tests.engine.stage import OPEN, a_stage, reopened, task
from tests.fakes.faulty_server import FaultyServer, as_json, delta, stream

# An answer of 2,000 tokens may cost $2. The prompt costs next to nothing.
ANSWER_TOKENS = 2_000
PRICE = TokenPrice(0.001, 1_000)
BUDGET = 2.2
SAID = "Thought: " + "so it is. " * 90


async def test_a_stopped_answer_counts_against_the_budget_after_a_new_start(tmp_path: Path) -> None:
    begins = stream(delta(SAID), asyncio.Event())
    listed = as_json({"data": [{"id": "big"}]})
    async with FaultyServer().on("/health").on("/props").on("/v1/models", listed).chat(begins) as paid:
        settings = Settings(
            model=ModelSettings(answer_tokens=ANSWER_TOKENS),
            endpoints=(("paid", EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE)),),
            roles=RoleSettings(executor=("paid",)),
            cost_cap_daily=100.0,
        )
        tasks = (replace(task(), budget=Budget(dollars=BUDGET)),)

        def as_started() -> Model:
            return ModelRegistry(settings, {}, tmp_path / "log", tmp_path / "spent", lambda _: None).for_roles()

        async with a_stage(tmp_path, model=as_started(), settings=settings, approvals=OPEN, tasks=tasks) as stage:
            async with in_front_of(stage) as front:
                await front.start()
                await front.until(lambda it: it.live.streaming and it.live.streaming.text == SAID)
            (stopped,) = [event for event in stage.events if isinstance(event, ModelInterrupted)]
            assert stopped.cause is InterruptCause.STOPPED
            assert stopped.figures.dollars == pytest.approx(len(SAID) / 3 / 1_000, abs=0.01)
            async with reopened(stage, model=as_started()) as again, in_front_of(again) as front:
                trouble = (await front.trouble()).state.trouble
    assert trouble is not None
    left = BUDGET - stopped.figures.dollars
    assert f"the task's budget.dollars leaves ${left:.4f}" in trouble.what
    assert len(paid.asked("/v1/chat/completions")) == 1, "what may cost more than is left is not asked for"
    spent = await asyncio.to_thread(SpendingLedger(tmp_path / "spent").spent_today)
    assert spent == pytest.approx(stopped.figures.dollars)
