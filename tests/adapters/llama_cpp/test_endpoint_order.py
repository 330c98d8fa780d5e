"""Which endpoint of a chain with paid ones is asked: by the task's complexity and what is left of the day's cap."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink, StatusRelay
from agent_workbench.adapters.llama_cpp.endpoint_chain import LEAST_QUOTA, order_links
from agent_workbench.adapters.llama_cpp.model_registry import ModelRegistry
from agent_workbench.adapters.llama_cpp.priced_model import FILE, SpendingLedger
from agent_workbench.core.errors import DatabaseDownError, ModelError
from agent_workbench.core.model import ChoiceReason, EndpointChoice, Purpose
from agent_workbench.core.ports.model import Reservation, Spending
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, RoleSettings, TokenPrice
from agent_workbench.core.task_estimates import Complexity
from tests.adapters.llama_cpp.answers import ask
from tests.fakes.faulty_server import DONE, FaultyServer, as_json, delta, error, event, stream
from tests.fakes.ports import SayingModel

# Ten cents for a thousand tokens of prompt, twenty for a thousand of answer.
PRICE = TokenPrice(100, 200)
USAGE = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + event(
    {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10}}
)
LOCAL_FIRST, PAID_FIRST = ("local", "paid"), ("paid", "local")


def server(*answers: object) -> FaultyServer:
    plain = FaultyServer().on("/health").on("/props").on("/v1/models", as_json({"data": [{"id": "m"}]}))
    return plain.chat(*(answers or (stream(delta("hello"), USAGE, DONE),)))  # type: ignore[arg-type]


class Place:
    """A chain of a local and a paid endpoint, with the day's spending."""

    def __init__(
        self,
        folder: Path,
        local: FaultyServer,
        paid: FaultyServer,
        chain: tuple[str, ...],
        cap: float,
        spending: Spending | None = None,
    ) -> None:
        self.folder, self.local, self.paid = folder, local, paid
        endpoints = {
            "local": EndpointSettings(url=local.url),
            "paid": EndpointSettings(url=paid.url, dollars_per_million_tokens=PRICE),
        }
        settings = Settings(endpoints=tuple(endpoints.items()), roles=RoleSettings(executor=chain), cost_cap_daily=cap)
        self.model = ModelRegistry(settings, {}, folder / "log", folder, lambda _: None, None, spending).for_roles()

    async def spent(self, dollars: float) -> None:
        await asyncio.to_thread(SpendingLedger(self.folder).reserve, "elsewhere", dollars, 1_000.0)

    async def choices(
        self, complexity: Complexity = Complexity.SIMPLE, answer_tokens: int = 20
    ) -> list[EndpointChoice]:
        """Return what is chosen for one prompt, until an answer came; it has 20 tokens with what stands around it."""
        found = []
        for _ in range(4):
            await self.model.observe(Purpose.EXECUTOR, complexity)
            try:
                items = [each async for each in self.model.answer(ask(answer_tokens=answer_tokens, prompt_tokens=4))]
            except ModelError as failed:
                if not failed.another:
                    raise
                continue
            found += [each for each in items if isinstance(each, EndpointChoice)]
            break
        return found

    async def asked(self) -> tuple[int, int]:
        return len(self.local.asked("/v1/chat/completions")), len(self.paid.asked("/v1/chat/completions"))


@contextlib.asynccontextmanager
async def place(
    folder: Path,
    chain: tuple[str, ...] = LOCAL_FIRST,
    cap: float = 1.0,
    paid: FaultyServer | None = None,
    spending: Spending | None = None,
) -> AsyncIterator[Place]:
    async with server() as local, paid or server() as dear:
        found = Place(folder, local, dear, chain, cap, spending)
        try:
            yield found
        finally:
            await found.model.close()


@pytest.mark.parametrize("chain", [LOCAL_FIRST, PAID_FIRST])
async def test_with_little_left_of_the_cap_a_simple_task_stays_local(tmp_path: Path, chain: tuple[str, ...]) -> None:
    async with place(tmp_path, chain) as there:
        await there.spent(0.85)
        (choice,) = await there.choices()
        assert (choice.paid, choice.reason, choice.quota) == (False, ChoiceReason.QUOTA, 0.15)
        assert (choice.fallback, choice.most_dollars, choice.endpoint) == (False, 0.0, f"local ({there.local.url})")
        assert await there.asked() == (1, 0)


async def test_a_complex_task_begins_with_the_paid_one_if_the_worst_case_fits(tmp_path: Path) -> None:
    async with place(tmp_path) as there:
        await there.spent(0.85)
        (choice,) = await there.choices(Complexity.COMPLEX)
        assert (choice.paid, choice.reason, choice.quota) == (True, ChoiceReason.COMPLEXITY, 0.15)
        assert choice.most_dollars == pytest.approx(0.006)
        assert choice.prompt_tokens == 4
        assert await there.asked() == (0, 1)


async def test_a_complex_task_goes_to_the_other_if_the_worst_case_does_not_fit(tmp_path: Path) -> None:
    async with place(tmp_path) as there:
        await there.spent(0.85)
        (choice,) = await there.choices(Complexity.COMPLEX, answer_tokens=1_000)
        assert (choice.paid, choice.reason, choice.fallback) == (False, ChoiceReason.COMPLEXITY, True)
        assert choice.passed == ("paid: too little is left of cost_cap_daily ($1)",)
        assert await there.asked() == (1, 0)


@pytest.mark.parametrize("complexity", Complexity)
async def test_a_cap_of_nothing_asks_no_paid_one_whatever_the_complexity(
    tmp_path: Path, complexity: Complexity
) -> None:
    async with place(tmp_path, PAID_FIRST, cap=0.0) as there:
        (choice,) = await there.choices(complexity)
        assert (choice.paid, choice.quota, choice.reason) == (False, 0.0, ChoiceReason.QUOTA)
        assert there.paid.requests == []


@pytest.mark.parametrize("complexity", Complexity)
async def test_an_unknown_quota_is_none_at_all(tmp_path: Path, complexity: Complexity) -> None:
    (tmp_path / FILE).write_text("damaged")
    async with place(tmp_path, PAID_FIRST) as there:
        (choice,) = await there.choices(complexity)
        assert (choice.paid, choice.quota, choice.reason) == (False, None, ChoiceReason.QUOTA)
        assert "not known" in choice.why
        assert there.paid.requests == []


async def test_with_enough_left_the_chain_is_asked_in_its_order(tmp_path: Path) -> None:
    async with place(tmp_path / "a", PAID_FIRST) as there:
        (choice,) = await there.choices()
        assert (choice.paid, choice.reason, choice.quota) == (True, ChoiceReason.ORDER, 1.0)
    async with place(tmp_path / "b", LOCAL_FIRST) as there:
        (choice,) = await there.choices(Complexity.MEDIUM)
        assert (choice.paid, choice.reason) == (False, ChoiceReason.ORDER)


async def test_the_next_task_is_chosen_for_anew(tmp_path: Path) -> None:
    async with place(tmp_path) as there:
        kinds = [Complexity.SIMPLE, Complexity.COMPLEX, Complexity.COMPLEX, Complexity.SIMPLE]
        assert [(await there.choices(each))[0].paid for each in kinds] == [False, True, True, False]


async def test_a_paid_one_that_fails_is_followed_by_the_other(tmp_path: Path) -> None:
    async with place(tmp_path, paid=server(error(500, "out of luck"))) as there:
        (choice,) = await there.choices(Complexity.COMPLEX)
        assert (choice.paid, choice.fallback) == (False, True)
        assert "out of luck" in choice.passed[0]


async def test_the_third_tier_is_an_error_that_names_both(tmp_path: Path) -> None:
    async with place(tmp_path, paid=server(error(500, "out of luck"))) as there:
        there.local.chat(error(500, "out of memory"))
        with pytest.raises(ModelError, match=r"paid: .*out of luck.*local: .*out of memory"):
            await there.choices(Complexity.COMPLEX)


class Away:
    """`core.ports.model.Spending` of a database that does not answer."""

    def __init__(self) -> None:
        self.asked = 0

    async def spent_today(self) -> float:
        self.asked += 1
        raise DatabaseDownError("the database at db:5432 does not answer")

    async def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        raise DatabaseDownError("the database at db:5432 does not answer")

    async def settle(self, reservation: Reservation, dollars: float) -> None:
        raise AssertionError("nothing was reserved")


@pytest.mark.parametrize("complexity", Complexity)
async def test_while_the_database_is_away_local_ones_go_on_and_nothing_that_costs_is_asked(
    tmp_path: Path, complexity: Complexity
) -> None:
    away = Away()
    async with place(tmp_path, PAID_FIRST, spending=away) as there:
        for _ in range(3):
            (choice,) = await there.choices(complexity)
            assert (choice.paid, choice.quota) == (False, None)
        assert there.paid.requests == []
        assert away.asked == 1, "a database that is away is not waited for at each step"
    async with place(tmp_path, ("paid",), spending=away) as there:
        with pytest.raises(ModelError, match="paid is not asked: the database at db:5432 does not answer"):
            await there.choices(complexity)
        assert there.paid.requests == []


def _link(name: str, *, paid: bool) -> ChainLink:
    return ChainLink(name, SayingModel(), StatusRelay(lambda _: None), PRICE if paid else None)


@given(
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.sampled_from(Complexity),
    st.one_of(st.none(), st.floats(0.0, 1.0)),
)
def test_an_order_has_every_endpoint_once_and_keeps_those_of_a_kind_in_order(
    kinds: list[bool], complexity: Complexity, quota: float | None
) -> None:
    links = tuple(_link(str(number), paid=paid) for number, paid in enumerate(kinds))
    order = order_links(links, complexity, quota)
    for paid in (True, False):
        assert [link for link in order.links if link.paid is paid] == [link for link in links if link.paid is paid]
    if not all(kinds) and (quota is None or (quota < LEAST_QUOTA and complexity is not Complexity.COMPLEX)):
        assert not order.links[0].paid
