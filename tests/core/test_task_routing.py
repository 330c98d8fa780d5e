"""Routing of tasks to workers: fit, score, reasons."""

import time

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.task_routing import RoutableTask, RoutingDecision, RoutingOutcome, fits, route, unmet_needs
from agent_workbench.core.workers import Gpu, MachineResources, ServedModel, WorkerRecord

NOW = "2026-01-02T03:04:05.000000Z"
LONG_AGO = "2026-01-02T03:02:34.000000Z"


def machine(cores: int = 8, free: float | None = None, *vram: float) -> MachineResources:
    """Resources with these cores, of which some are free, and GPUs with this memory."""
    gpus = tuple(Gpu(f"gpu {at}", each, each) for at, each in enumerate(vram))
    return MachineResources(cores=cores, cores_available=cores if free is None else free, gpus=gpus)


def worker(name: str, resources: MachineResources | None = None, **fields: object) -> WorkerRecord:
    """A worker that beat just now."""
    return replace(WorkerRecord(name, NOW, NOW, resources=resources or machine()), **fields)


def decide(needs: Needs, *workers: WorkerRecord, tried: tuple[str, ...] = ()) -> RoutingDecision:
    """The decision about one task."""
    (decision,) = route([RoutableTask("T-1", needs, tried)], workers, NOW)
    return decision


def test_the_less_loaded_of_two_that_fit_gets_the_task_and_both_scores_are_told() -> None:
    decision = decide(Needs(), worker("busy", machine(8, 2)), worker("free", machine(8, 7)))
    assert decision.worker == "free"
    assert [each.worker for each in decision.scores] == ["free", "busy"]
    assert any("busy scores" in each for each in decision.reasons)


def test_a_need_that_nobody_meets_says_what_the_largest_has() -> None:
    fleet = (worker("laptop", machine(4)), worker("box", machine(16, None, 8.0)))
    decision = decide(Needs(gpu_vram_gb=24), *fleet)
    assert decision.outcome is RoutingOutcome.UNMET
    assert decision.reasons == ("no worker has 24 GB of GPU memory; the largest has 8 (box)",)
    assert decide(Needs(cores=17), *fleet).reasons == ("no worker has 17 cores; the largest has 16 (box)",)
    assert decide(Needs(gpu_vram_gb=1), worker("laptop")).reasons == ("no worker has 1 GB of GPU memory; none has any",)


def test_unknown_models_and_tags_are_named_with_those_that_exist() -> None:
    fleet = (worker("a", models=(ServedModel("qwen"),), tags=("lab",)), worker("b"))
    assert unmet_needs(Needs(models=("Qwen", "lama")), fleet) == "no worker has the model 'lama'; there are: qwen"
    assert unmet_needs(Needs(tags=("prod",)), fleet) == "no worker has the tag 'prod'; there are: lab"
    assert unmet_needs(Needs(models=("QWEN",), tags=("lab",)), fleet) == ""
    assert unmet_needs(Needs(), ()) == "no worker is registered"


def test_needs_that_only_two_workers_together_meet_are_unmet() -> None:
    fleet = (worker("a", tags=("lab",)), worker("b", machine(8, None, 8.0)))
    assert unmet_needs(Needs(gpu_vram_gb=8, tags=("lab",)), fleet) == (
        "no worker has all of it: 8 GB of GPU memory, tag lab"
    )


def test_a_card_of_24_gb_meets_a_need_of_24() -> None:
    assert decide(Needs(gpu_vram_gb=24), worker("box", machine(8, None, 23.99))).worker == "box"


def test_workers_that_fit_and_cannot_take_it_now_are_named_with_the_reason() -> None:
    fleet = (
        worker("away", last_beat=LONG_AGO),
        worker("busy", jobs=2, most_jobs=2),
        worker("leaving", draining=True),
    )
    decision = decide(Needs(), *fleet)
    assert decision.outcome is RoutingOutcome.WAITING
    assert decision.reasons == ("away: offline", "busy: busy with 2 of 2 jobs", "leaving: draining")


def test_memory_and_cores_in_use_are_waited_for() -> None:
    used = replace(machine(8, 1), gpus=(Gpu("card", 24.0, 3.0),))
    decision = decide(Needs(gpu_vram_gb=20), worker("box", used))
    assert (decision.outcome, decision.reasons) == (RoutingOutcome.WAITING, ("box: 3 GB of GPU memory free",))
    assert decide(Needs(cores=4), worker("box", used)).reasons == ("box: 1 cores free",)


def test_a_retry_goes_to_another_worker_and_ends_when_all_were_tried() -> None:
    fleet = (worker("a"), worker("b"))
    assert decide(Needs(), *fleet, tried=("a",)).worker == "b"
    decision = decide(Needs(), *fleet, tried=("a", "b"))
    assert (decision.outcome, decision.reasons) == (
        RoutingOutcome.EXHAUSTED,
        ("tried on each worker that fits: a, b",),
    )


def test_a_task_without_needs_leaves_the_gpu_to_others_and_one_with_needs_takes_the_smallest_that_fits() -> None:
    fleet = (worker("big", machine(8, None, 80.0)), worker("plain"), worker("small", machine(8, None, 12.0)))
    assert decide(Needs(), *fleet).worker == "plain"
    assert decide(Needs(gpu_vram_gb=8), *fleet).worker == "small"


def test_a_worker_whose_models_do_not_answer_comes_last() -> None:
    fleet = (worker("a"), worker("b", models=(ServedModel("m"),)))
    assert decide(Needs(), *fleet).worker == "b"


def test_the_faster_model_decides_between_equals() -> None:
    slow, fast = (
        worker(name, models=(ServedModel("m", "box", 100, speed),)) for name, speed in (("a", 8.0), ("b", 40.0))
    )
    assert decide(Needs(models=("m",)), slow, fast).worker == "b"
    assert decide(Needs(), slow, fast).worker == "b"


def test_tasks_of_one_round_are_spread_and_nobody_gets_more_than_its_free_jobs() -> None:
    fleet = (worker("a", most_jobs=2), worker("b", most_jobs=3, jobs=1))
    decisions = route([RoutableTask(f"T-{at}") for at in range(6)], fleet, NOW)
    assert [each.worker for each in decisions] == ["a", "b", "a", "b", "", ""]
    assert decisions[-1].reasons == ("a: busy with 2 of 2 jobs", "b: busy with 3 of 3 jobs")
    assert [each.task for each in decisions] == [f"T-{at}" for at in range(6)]


_amount = st.floats(0, 100, allow_nan=False)
_workers = st.lists(
    st.builds(
        WorkerRecord,
        name=st.sampled_from("abcdefgh"),
        since=st.just(NOW),
        last_beat=st.sampled_from((NOW, LONG_AGO)),
        tags=st.sets(st.sampled_from(("x", "y"))).map(tuple),
        draining=st.booleans(),
        jobs=st.integers(0, 3),
        most_jobs=st.integers(0, 3),
        models=st.sets(st.sampled_from(("m", "n"))).map(lambda names: tuple(map(ServedModel, sorted(names)))),
        resources=st.builds(
            MachineResources,
            cores=st.integers(0, 64),
            cores_available=_amount,
            gpus=st.lists(st.builds(Gpu, st.just("g"), _amount, _amount), max_size=2).map(tuple),
        ),
    ),
    unique_by=lambda each: each.name,
    max_size=6,
)
_tasks = st.lists(
    st.builds(
        RoutableTask,
        id=st.sampled_from(("T-1", "T-2", "T-3")),
        needs=st.builds(
            Needs,
            st.none() | _amount,
            st.none() | st.integers(1, 64),
            st.sampled_from(((), ("m",), ("m", "n"), ("o",))),
            st.sampled_from(((), ("x",), ("z",))),
        ),
        tried=st.sets(st.sampled_from("abc")).map(lambda names: tuple(sorted(names))),
    ),
    max_size=6,
)


@given(_tasks, _workers)
def test_only_a_worker_that_fits_is_chosen_and_each_refusal_has_a_reason(
    tasks: list[RoutableTask], fleet: list[WorkerRecord]
) -> None:
    decisions = route(tasks, fleet, NOW)
    assert decisions == route(tasks, list(reversed(fleet)), NOW)
    by_name = {each.name: each for each in fleet}
    for task, decision in zip(tasks, decisions, strict=True):
        assert decision.reasons
        assert all(decision.reasons)
        if decision.outcome is not RoutingOutcome.ASSIGNED:
            assert decision.worker == ""
            continue
        chosen = by_name[decision.worker]
        assert fits(task.needs, chosen)
        assert chosen.name not in task.tried
        assert chosen.last_beat == NOW
        assert not chosen.draining
        assert decision.scores[0].worker == chosen.name
    for each in fleet:
        got = sum(decision.worker == each.name for decision in decisions)
        assert got <= max(0, each.most_jobs - each.jobs)


@given(st.integers(0, 8), st.integers(0, 8))
def test_between_equals_the_load_alone_decides(first: int, second: int) -> None:
    decision = decide(Needs(), worker("a", machine(8, first)), worker("b", machine(8, second)))
    assert decision.worker == ("b" if second > first else "a")


def test_ten_thousand_tasks_and_fifty_workers_are_routed_at_once() -> None:
    fleet = [worker(f"w{at:02}", machine(8, at % 8, *([24.0] * (at % 2))), most_jobs=16) for at in range(50)]
    tasks = [RoutableTask(f"T-{at}", Needs(cores=at % 5 or None)) for at in range(10_000)]
    began = time.process_time()
    decisions = route(tasks, fleet, NOW)
    assert time.process_time() - began < 3.0
    assert sum(bool(each.worker) for each in decisions) == 800
