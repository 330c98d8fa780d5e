"""What the status line says of the prompts: how much of them was new, and how much was read twice."""

import pytest

from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.events import (
    Author,
    ContextCompacted,
    Event,
    ModelAnswered,
    ModelObserved,
    PromptBuilt,
    Recorded,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.tui.widgets.strips import fitting
from agent_workbench.views.blocks import Tone
from agent_workbench.views.status import Figure, view_status
from tests.fakes import runs

PROMPT = PromptBuilt(1, Purpose.EXECUTOR, 2, 1362, "0" * 64)


def answered(prompt: int, cached: int, answer: int = 51) -> ModelAnswered:
    return ModelAnswered(1, "Thought: so", AnswerFigures(prompt, cached, answer, 0.5, 1.0), "http://a")


def figures(*events: Event, live: Live | None = None) -> tuple[Figure, ...]:
    prompted = (
        each for event in events for each in ((PROMPT, event) if isinstance(event, ModelAnswered) else (event,))
    )
    every = (*runs.opening(scripted=False), *runs.started(), PROMPT, *prompted)
    state = fold_all(Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate(every))
    return view_status(SessionUpdate(state, live or Live())).figures


def texts(*events: Event, live: Live | None = None) -> list[str]:
    return [figure.text for figure in figures(*events, live=live)]


def about_reads(*events: Event) -> Figure:
    (found,) = [figure for figure in figures(*events) if figure.text.startswith("prompt: ")]
    return found


def test_before_any_answer_nothing_is_said_of_reading() -> None:
    assert not [text for text in texts() if "re-read" in text]


@pytest.mark.parametrize("tier", EndpointTier)
def test_the_kind_of_the_endpoint_in_use_is_told(tier: EndpointTier) -> None:
    found = {figure.text: figure.tone for figure in figures(live=Live(tier=tier))}
    assert (found[tier.value] is Tone.WARN) == (tier is EndpointTier.PAID)
    assert not {each.value for each in EndpointTier} & set(texts())


def test_new_and_read_again_tokens_of_the_last_prompt() -> None:
    assert "prompt: 312 new, 0 re-read (0.0 %)" in texts(answered(1000, 0), answered(1362, 1050))


@pytest.mark.parametrize(("cached", "tone"), [(1050, Tone.DIM), (1027, Tone.DIM), (1020, Tone.WARN)])
def test_more_than_a_hundredth_read_again_is_a_warning(cached: int, tone: Tone) -> None:
    assert about_reads(answered(1000, 0), answered(1362, cached)).tone is tone


def test_the_share_is_of_the_whole_task() -> None:
    said = texts(answered(1000, 0), answered(1400, 650), answered(1600, 1450))
    assert "prompt: 150 new, 0 re-read (10.0 %)" in said


def test_after_a_compaction_a_prompt_is_new() -> None:
    compacted = ContextCompacted(1, "so far", Author.MODEL, 3)
    assert "prompt: 350 new, 0 re-read (0.0 %)" in texts(answered(1000, 0), compacted, answered(400, 50))


def test_it_is_live_while_a_prompt_is_read() -> None:
    live = Live(streaming=Streaming(prompt_processed=1100, prompt_total=1362, prompt_cached=1000))
    said = texts(answered(1000, 0), live=live)
    assert "prompt: 312 new, 50 re-read (2.1 %)" in said


def test_a_server_that_does_not_tell_is_not_accused() -> None:
    quiet = ModelObserved(ModelFacts("http://a", "m", 4096, tells_cache=False))
    said = texts(quiet, answered(1000, 0), answered(1362, 0))
    assert "cache unknown" in said
    assert not [text for text in said if "re-read" in text]


def test_in_little_room_they_are_shortened_then_dropped() -> None:
    line = figures(answered(1000, 0), answered(1362, 1050))
    wide = [figure.text for figure in fitting(line, 118)]
    assert {"demo-2m", "context 1.4k/16.4k", "prompt: 312 new, 0 re-read (0.0 %)"} <= {*wide}
    assert [figure.text for figure in fitting(line, 66)] == [
        *("ask", "demo-2m", "1.4k/16.4k", "312 new, 0 re-read", "T-1", "step 0/30"),
    ]
    assert not [figure.text for figure in fitting(line, 36) if "re-read" in figure.text]


@pytest.mark.parametrize("width", [78, 118])
def test_no_figure_is_worded_anew_as_others_come_and_go(width: int) -> None:
    few = {figure.text for figure in fitting(figures(answered(1000, 0), answered(1362, 1050)), width)}
    scripted = ModelObserved(ModelFacts("http://a", "demo-2m.gguf", 16_384, scripted=True))
    more = {figure.text for figure in fitting(figures(scripted, answered(1000, 0), answered(1362, 1050)), width)}
    assert more - few == {"scripted demo"}


def test_the_context_is_what_the_server_says_as_what_was_read_is() -> None:
    asked = PromptBuilt(1, Purpose.EXECUTOR, 2, 8_600, "0" * 64)
    end = ModelAnswered(1, "Thought: so", AnswerFigures(8_700, 0, 51, 0.5, 1.0), "http://a")
    said = texts(asked, end)
    assert [text for text in said if text.startswith(("context", "prompt:"))] == [
        "context 8.7k/16.4k",
        "prompt: 8.7k new, 0 re-read (0.0 %)",
    ]
    reading = Live(streaming=Streaming(prompt_processed=10, prompt_total=8_700))
    assert "context 8.7k/16.4k" in texts(asked, live=reading)
    assert "context 8.6k/16.4k" in texts(asked)


def test_what_is_a_warning_stays_longer_than_the_steps() -> None:
    line = figures(answered(1000, 0), answered(1362, 0))
    kept = [figure.text for figure in fitting(line, 56)]
    assert "312 new, 1.1k re-read" in kept
    assert "step 0/30" not in kept


def test_a_demo_has_room_for_them_in_eighty_columns() -> None:
    scripted = ModelObserved(ModelFacts("http://a", "demo-model.gguf", 16_384, scripted=True))
    line = figures(scripted, answered(1000, 0), answered(1258, 1050))
    assert [figure.text for figure in fitting(line, 78)] == [
        *("ask", "scripted demo", "demo-model", "1.3k/16.4k", "T-1", "step 0/30"),
    ]
