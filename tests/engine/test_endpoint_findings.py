"""What the doctor says of endpoints: bounded in time, all at once."""

import asyncio

import pytest
from msgspec.structs import replace

from agent_workbench.core.diagnostics import EndpointLine, Finding, Health
from agent_workbench.core.errors import ModelRefused, ModelUnavailable
from agent_workbench.core.model import ModelFacts, Purpose
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings.models import TokenPrice
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.engine.endpoint_findings import Spending, examine_endpoints, examine_spending
from tests.fakes.ports import FACTS, SayingModel

LINE = EndpointLine("executor", "gpu", "http://gpu:8080")
PAID = replace(LINE, name="hosted", where="https://hosted", price=TokenPrice(0.5, 1.5), key_variable="MY_KEY")


class Silent(SayingModel):
    """Never tells who it is."""

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        await asyncio.Event().wait()
        raise AssertionError("nobody waits for so long")


def saying(facts: ModelFacts | ModelUnavailable | ModelRefused) -> Model:
    model = SayingModel()
    model.facts = facts
    return model


async def examined(
    *lines: EndpointLine, cap: float = 1.0, seconds: float = 5.0, **models: Model | None
) -> list[Finding]:
    found = await examine_endpoints(lines, models.__getitem__, cap, seconds)
    assert all(each.advice for each in found if each.health is not Health.GOOD)
    return list(found)


async def test_one_that_answers() -> None:
    (found,) = await examined(LINE, gpu=saying(FACTS))
    assert found == Finding("endpoint gpu", Health.GOOD, "fake at http://gpu:8080 b1, 100000 tokens; for executor")


async def test_each_is_told_once_with_all_its_roles() -> None:
    (found,) = await examined(LINE, replace(LINE, role="planner"), gpu=saying(FACTS))
    assert found.seen.endswith("; for executor, planner")


async def test_what_is_off_is_said() -> None:
    (found,) = await examined(LINE, gpu=saying(replace(FACTS, off=("tokens are not counted", "no grammar"))))
    assert (found.health, found.seen.endswith("off: tokens are not counted, no grammar")) == (Health.WARNING, True)


async def test_a_dead_one_is_a_warning_as_long_as_another_answers() -> None:
    dead = saying(ModelUnavailable("nothing answers at http://gpu:8080", advice="start it"))
    found = await examined(LINE, replace(LINE, name="two", where="http://two"), gpu=dead, two=saying(FACTS))
    assert [(each.part, each.health) for each in found] == [
        ("endpoint gpu", Health.WARNING),
        ("endpoint two", Health.GOOD),
    ]
    assert found[0].seen == "nothing answers at http://gpu:8080; for executor"


async def test_a_role_without_anybody_is_bad() -> None:
    dead = saying(ModelUnavailable("nothing answers", advice="start it"))
    found = await examined(LINE, gpu=dead)
    assert (found[-1].part, found[-1].health, found[-1].seen) == ("role executor", Health.BAD, "nobody answers: gpu")


async def test_the_silent_are_waited_for_together_and_not_for_long() -> None:
    lines = [replace(LINE, name=f"n{number}") for number in range(20)]
    async with asyncio.timeout(5):
        found = await examined(*lines, seconds=0.2, **{line.name: Silent() for line in lines})  # type: ignore[arg-type] # by name
    assert {each.seen for each in found[:20]} == {"http://gpu:8080: no answer within 0.2 s; for executor"}
    assert found[-1].health is Health.BAD


async def test_price_and_key_are_told_by_name() -> None:
    (found,) = await examined(replace(PAID, key_set=True), hosted=saying(FACTS))
    assert found.health is Health.GOOD
    assert "$0.5 in and $1.5 out for a million tokens; key MY_KEY is set" in found.seen
    (missing,) = await examined(PAID, hosted=saying(FACTS))
    assert (missing.health, missing.advice) == (Health.WARNING, "set MY_KEY where you start the workbench")
    assert "key MY_KEY is not set" in missing.seen


async def test_what_may_cost_nothing_answers_nobody() -> None:
    found = await examined(replace(PAID, key_set=True), cap=0.0, hosted=saying(FACTS))
    assert found[-1].seen == "cost_cap_daily is 0, so hosted is never asked"
    assert found[-1].advice.startswith("set cost_cap_daily"), "it runs, so starting it would not help"
    dead = saying(ModelUnavailable("nothing answers", advice="start it"))
    both = await examined(LINE, replace(PAID, key_set=True), cap=0.0, gpu=dead, hosted=saying(FACTS))
    assert both[-1].seen == "nobody answers: gpu; cost_cap_daily is 0, so hosted is never asked"
    assert both[-1].advice == "start gpu, or set cost_cap_daily"


async def test_a_file_is_not_loaded_to_be_looked_at() -> None:
    (found,) = await examined(replace(LINE, where="a.gguf"), gpu=None)
    assert (found.health, found.seen) == (Health.GOOD, "a.gguf, started when it is asked; for executor")


@pytest.mark.parametrize(
    ("spending", "health", "words"),
    [
        (Spending(0.25, 1.0), Health.GOOD, "$0.2500 of $1 (cost_cap_daily) were spent today (UTC)"),
        (Spending(1.0, 1.0), Health.WARNING, "$1.0000 of $1"),
        (Spending(0.0, 0.0), Health.WARNING, "cost_cap_daily is 0, so hosted is never asked"),
        (Spending(None, 1.0, "spending.json is broken", "remove it"), Health.BAD, "spending.json is broken"),
    ],
)
def test_spending_is_told_against_the_cap(spending: Spending, health: Health, words: str) -> None:
    (found,) = examine_spending((LINE, PAID), spending)
    assert (found.part, found.health, words in found.seen) == ("spending", health, True)


def test_each_endpoint_that_costs_is_named_once() -> None:
    lines = (PAID, LINE, replace(PAID, role="planner"), replace(PAID, name="other"))
    (found,) = examine_spending(lines, Spending(0.0, 0.0))
    assert found.seen == "cost_cap_daily is 0, so hosted, other is never asked"


def test_where_nothing_costs_there_is_nothing_to_tell() -> None:
    assert examine_spending((LINE,), Spending(0.0, 0.0)) == ()
