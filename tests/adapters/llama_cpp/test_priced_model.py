"""Paid endpoints are asked only within the caps, and counted by what came."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.priced_model import (
    FILE,
    CostCapExceeded,
    LocalSpending,
    PricedModel,
    SpendingLedger,
    prompt_tokens_of,
)
from agent_workbench.core.errors import ModelRefused, ModelUnavailable
from agent_workbench.core.model import AnswerCost, ModelRequest, TextDelta
from agent_workbench.core.ports.model import Reservation
from agent_workbench.core.settings.models import TokenPrice
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import DONE, FaultyServer, as_json, delta, error, event, stream
from tests.fakes.ports import FACTS, SayingModel

# A dollar for a thousand tokens of prompt, two for a thousand of answer.
PRICE = TokenPrice(1_000, 2_000)
USAGE = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + event(
    {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
)


def told(text: str = "hello") -> FaultyServer:
    """Return a server that is not llama.cpp and tells how many tokens it took: 100 and 10."""
    plain = FaultyServer().on("/health").on("/props").on("/v1/models", as_json({"data": [{"id": "big"}]}))
    return plain.chat(stream(delta(text), USAGE, DONE))


class Till:
    """A paid model over a server, with its ledger."""

    def __init__(self, server: FaultyServer, folder: Path, cap: float = 10.0) -> None:
        self.said: list[str] = []
        self.ledger = SpendingLedger(folder)
        self.model = PricedModel(
            LlamaCppModel(server.url), "big", PRICE, cap, LocalSpending(self.ledger), self.said.append
        )

    async def spent(self) -> float:
        return await asyncio.to_thread(self.ledger.spent_today)


def request(answer_tokens: int = 64, prompt_tokens: int = 84, dollars_left: float | None = None) -> ModelRequest:
    """Return a request whose prompt counts as 100 tokens with what stands around its two messages."""
    made = ask(answer_tokens=answer_tokens, prompt_tokens=prompt_tokens, dollars_left=dollars_left)
    assert prompt_tokens_of(made) == prompt_tokens + 16
    return made


async def test_an_answer_has_its_price(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path)
        await till.model.observe()
        got = await collect(till.model, request())
        assert got.end.figures.dollars == pytest.approx(0.1 + 0.02)
        assert await till.spent() == pytest.approx(0.12)
        await till.model.close()


class _HeldSpending(LocalSpending):
    """Spending whose next call of one name waits until it is let go."""

    def __init__(self, ledger: SpendingLedger, held: str) -> None:
        super().__init__(ledger)
        self._held = held
        self.reached, self.goes_on = asyncio.Event(), asyncio.Event()

    async def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        reserved = await super().reserve(endpoint, dollars, cap)
        await self._wait("reserve")
        return reserved

    async def settle(self, reservation: Reservation, dollars: float) -> None:
        await self._wait("settle")
        await super().settle(reservation, dollars)

    async def _wait(self, call: str) -> None:
        if call == self._held:
            self.reached.set()
            await self.goes_on.wait()


@pytest.mark.parametrize(("held", "dollars"), [("reserve", 0.0), ("settle", 0.12)])
async def test_an_answer_stopped_while_its_cost_is_written_leaves_no_worst_case(
    tmp_path: Path, held: str, dollars: float
) -> None:
    async with told() as server:
        till = Till(server, tmp_path)
        spending = _HeldSpending(till.ledger, held)
        model = PricedModel(LlamaCppModel(server.url), "big", PRICE, 10.0, spending, till.said.append)
        answering = asyncio.create_task(collect(model, request()))
        await spending.reached.wait()
        answering.cancel()
        await asyncio.sleep(0)
        spending.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await answering
        assert await till.spent() == pytest.approx(dollars)
        await till.model.close()
        await model.close()


async def test_a_cap_of_nothing_contacts_nobody(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path, cap=0.0)
        for what in (till.model.observe(), collect(till.model, request())):
            with pytest.raises(
                CostCapExceeded, match=r"big is not asked: .*cost_cap_daily \(\$0, so nothing"
            ) as caught:
                await what
            assert "raise cost_cap_daily" in caught.value.advice
        assert server.requests == []
        assert not (tmp_path / FILE).exists()


async def test_the_worst_case_has_to_fit_into_the_day(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path, cap=0.5)
        await till.model.observe()
        asked = len(server.requests)
        with pytest.raises(CostCapExceeded) as caught:
            await collect(till.model, request(answer_tokens=201))
        assert str(caught.value) == (
            "big is not asked: this answer may cost $0.5020, and $0 were spent today (UTC) of cost_cap_daily ($0.5)"
        )
        assert len(server.requests) == asked
        await collect(till.model, request(answer_tokens=200))
        with pytest.raises(CostCapExceeded, match=r"\$0\.1200 were spent today"):
            await collect(till.model, request(answer_tokens=200))
        with pytest.raises(CostCapExceeded):
            await till.model.observe()
        assert len(server.requests) == asked + 1
        await till.model.close()


async def test_another_process_has_spent_it(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path, cap=1.0)
        await asyncio.to_thread(SpendingLedger(tmp_path).reserve, "elsewhere", 0.95, 1.0)
        with pytest.raises(CostCapExceeded):
            await till.model.observe()
        assert server.requests == []


async def test_the_worst_case_has_to_fit_into_the_tasks_budget(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path)
        await till.model.observe()
        asked = len(server.requests)
        with pytest.raises(
            CostCapExceeded, match=r"may cost \$0\.2280, and the task's budget\.dollars leaves \$0\.2000"
        ) as caught:
            await collect(till.model, request(dollars_left=0.2))
        assert "budget.dollars" in caught.value.advice
        assert (len(server.requests), await till.spent()) == (asked, 0.0)
        await collect(till.model, request(dollars_left=0.23))
        await till.model.close()


async def test_a_smaller_prompt_is_tried_after_one_that_was_too_dear(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path, cap=0.6)
        await till.model.observe()
        with pytest.raises(CostCapExceeded):
            await collect(till.model, request(prompt_tokens=2_000))
        with pytest.raises(CostCapExceeded):
            await till.model.observe()
        with pytest.raises(CostCapExceeded):
            await till.model.observe()
        await till.model.observe()
        await collect(till.model, request())
        await till.model.close()


def test_a_prompt_that_nobody_counted_is_estimated_upward() -> None:
    made = ask("é" * 300, prompt_tokens=0)
    assert prompt_tokens_of(made) == (600 + len("You are careful.") + 2) // 3 + 16


async def test_a_server_without_figures_is_counted_by_what_came(tmp_path: Path) -> None:
    async with told().chat(stream(delta("one "), delta("two three four five"), delta("", "stop"), DONE)) as server:
        till = Till(server, tmp_path)
        got = await collect(till.model, request())
        assert got.end.figures.dollars == pytest.approx(0.1 + 0.002 * 8), "23 bytes are 8 tokens"
        await till.model.close()


async def test_an_answer_that_broke_is_counted_by_what_came(tmp_path: Path) -> None:
    async with told().chat(stream(delta("one "), delta("two"), cut=True)) as server:
        till = Till(server, tmp_path)
        with pytest.raises(ModelUnavailable) as caught:
            await collect(till.model, request())
        assert caught.value.dollars == pytest.approx(0.1 + 0.002 * 3)
        assert await till.spent() == pytest.approx(0.106)
        await till.model.close()


async def test_an_answer_that_was_stopped_is_counted_and_was_told(tmp_path: Path) -> None:
    async with told().chat(stream(delta("one "), asyncio.Event())) as server:
        till = Till(server, tmp_path)
        async with contextlib.aclosing(till.model.answer(request(dollars_left=0.3))) as items:
            told_so_far = []
            async for item in items:
                if isinstance(item, TextDelta):
                    break
                assert isinstance(item, AnswerCost)
                told_so_far.append(item.dollars)
        assert told_so_far == [pytest.approx(0.1), pytest.approx(0.1 + 0.002 * 2)]
        assert await till.spent() == pytest.approx(told_so_far[-1])
        await till.model.close()


@pytest.mark.parametrize("refusal", [error(401, "no"), error(400, "no"), error(429, "later")])
async def test_a_request_that_was_refused_costs_nothing(tmp_path: Path, refusal: object) -> None:
    async with told().chat(refusal) as server:  # type: ignore[arg-type] # an answer
        till = Till(server, tmp_path)
        with pytest.raises((ModelRefused, ModelUnavailable)) as caught:
            await collect(till.model, ask(answer_seconds=2, prompt_tokens=84))
        assert (caught.value.dollars, await till.spent()) == (0.0, 0.0)
        await till.model.close()


async def test_where_the_count_is_not_known_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("nonsense")
    async with told() as server:
        till = Till(server, tmp_path)
        with pytest.raises(CostCapExceeded, match=r"spending is unknown"):
            await till.model.observe()
        assert server.requests == []


async def test_a_count_that_cannot_be_settled_stays_at_the_worst_case(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path)
        async with contextlib.aclosing(till.model.answer(request())) as items:
            async for _ in items:
                (tmp_path / FILE).write_text("nonsense")
        assert "the worst case of what big cost stays counted" in till.said[-1]
        await till.model.close()


async def test_the_ledger_holds_names_and_numbers_alone(tmp_path: Path) -> None:
    async with told() as server:
        till = Till(server, tmp_path)
        await collect(till.model, request())
        (day,) = json.loads((tmp_path / FILE).read_bytes())["days"].values()
        assert day == {"big": 120_000_000}
        await till.model.close()


async def test_a_thought_may_be_as_long_as_the_answer(tmp_path: Path) -> None:
    inner = SayingModel(["short"], replace(FACTS, thinks=True))
    ledger = SpendingLedger(tmp_path)
    model = PricedModel(inner, "big", PRICE, 0.5, LocalSpending(ledger), print)
    await model.observe()
    with pytest.raises(CostCapExceeded, match=r"may cost \$0\.5040"):
        await collect(model, request(answer_tokens=101))
    assert (await collect(model, request(answer_tokens=100))).text == "short"
