"""What counts as new in a prompt, and what as read again."""

import pytest

from agent_workbench.core.events import (
    Author,
    ContextCompacted,
    ContextFilled,
    Event,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.state.prompt_reads import PromptReads, newest_reads, reads_of, reusable_figures
from agent_workbench.core.state.session_state import TaskRun
from tests.fakes import runs


@pytest.mark.parametrize(
    ("cached", "new", "again"),
    [
        (1049, 351, 0),  # all that the server had read: the prompt before and the answer but its last token
        (1050, 350, 0),
        (1000, 351, 49),  # its own answer comes in other tokens
        (0, 351, 1049),
        (1400, 0, 0),
    ],
)
def test_what_was_common_and_not_found_was_read_again(cached: int, new: int, again: int) -> None:
    before = AnswerFigures(prompt_tokens=1000, answer_tokens=50)
    assert reads_of(AnswerFigures(1400, cached), before) == PromptReads(1400, new, again)


def test_a_prompt_that_grew_from_nothing_is_new() -> None:
    assert reads_of(AnswerFigures(1400, 200), None) == PromptReads(1400, 1200, 0)


def test_a_prompt_shorter_than_the_one_before_reads_no_more_again_than_it_has() -> None:
    assert reads_of(AnswerFigures(300, 100), AnswerFigures(1000, 0, 50)) == PromptReads(300, 0, 200)


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (ModelAnswered(1, "t", AnswerFigures(9, 0, 5), "e"), 5),
        (ModelAnswered(1, "t", AnswerFigures(9, 0, 5), "e", reasoning="hm"), 0),
        (ModelInterrupted(1, "t", InterruptCause.LENGTH, figures=AnswerFigures(9, 0, 5)), 0),
        (ModelInterrupted(1, "t", InterruptCause.DIED, figures=AnswerFigures(9, 0, 5)), 0),
    ],
)
def test_only_what_comes_back_in_the_next_prompt_can_be_read_again(
    answer: ModelAnswered | ModelInterrupted, tokens: int
) -> None:
    assert reusable_figures(answer).answer_tokens == tokens


def built(purpose: Purpose = Purpose.EXECUTOR) -> PromptBuilt:
    return PromptBuilt(1, purpose, 2, 0, "0" * 64)


def answered(prompt: int, cached: int) -> ModelAnswered:
    return ModelAnswered(1, "Thought: so", AnswerFigures(prompt, cached, 50), "http://a")


def run_after(*events: Event) -> TaskRun:
    every = (*runs.opening(), *runs.started(), *events)
    state = fold_all(Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate(every))
    assert state.run is not None
    return state.run


STEPS = (built(), answered(1000, 0), built(), answered(1400, 1049))
SUMMED = (ContextFilled(2, Purpose.EXECUTOR, 1500, 1600), built(Purpose.SUMMARY), answered(1500, 1400))


def test_a_task_sums_up_its_prompts() -> None:
    run = run_after(*STEPS)
    assert run.reads == PromptReads(2400, 1351, 0)
    assert newest_reads(run.history) == PromptReads(1400, 351, 0)


def test_what_asks_for_a_summary_is_counted_apart() -> None:
    run = run_after(*STEPS, *SUMMED)
    assert run.reads == PromptReads(2400, 1351, 0)
    assert newest_reads(run.history) == PromptReads(1500, 100, 0)
    after = run_after(*STEPS, *SUMMED, ContextCompacted(2, "so", Author.MODEL, 3), built(), answered(500, 100))
    assert after.reads == PromptReads(2900, 1751, 0)
    assert newest_reads(after.history) == PromptReads(500, 400, 0)


def test_a_summary_that_was_done_without_leaves_the_prompt_what_it_was() -> None:
    run = run_after(*STEPS, *SUMMED, built(), answered(1600, 1449))
    assert newest_reads(run.history) == PromptReads(1600, 151, 0)
