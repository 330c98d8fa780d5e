"""Words looked up in all that was said and done."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.events import Recorded, ScratchpadChanged, TaskStarted, UserSaid
from agent_workbench.core.events.plan import Author
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.task_estimates import Intent
from agent_workbench.views.record_search import (
    LINE_CHARS,
    MAX_MATCHES,
    RecordMatches,
    search_events,
    search_more,
)
from tests.fakes import runs
from tests.strategies import recorded

EVENTS = tuple(
    Recorded(seq, f"2026-11-20T10:15:{seq % 60:02}.000000Z", event)
    for seq, event in enumerate((*runs.up_to_done(), UserSaid("use Integers\nfor the cents")))
)


def kinds(asked: str) -> set[str]:
    return {match.kind for match in search_events(EVENTS, asked).matches}


def test_thoughts_diffs_outputs_results_words_notes_and_code_are_searched() -> None:
    assert kinds("The quantity is never used") == {"thought"}
    assert kinds("line.cents * line.quantity") == {"diff"}
    assert kinds("assert 570 == 810") >= {"checks"}
    assert kinds("whole cents") == {"notes"}
    assert kinds("integers") == {"your message"}
    assert kinds("cost 360, not 123") == {"reflexion"}
    assert kinds("Complete T-1") == {"commit"}
    assert "code" in kinds("def total")


def test_a_task_is_found_by_its_service_and_its_kind_of_work() -> None:
    task = replace(runs.TASK_1, service="till-service", intent=Intent.INFRA)
    started = TaskStarted(task.id, task, WorkspaceFacts("/w", "agent/T-1", runs.BASE, "t" * 40), ("true",))
    for asked in ("till-service", "infra"):
        (match,) = search_events((Recorded(0, "", started),), asked).matches
        assert (match.kind, match.line) == ("task", "till-service infra")


def test_capitals_count_where_some_were_asked_for() -> None:
    assert search_events(EVENTS, "integers").count == 1
    assert search_events(EVENTS, "Integers").count == 1
    assert search_events(EVENTS, "INTEGERS").count == 0


def test_a_match_names_its_line_and_where_the_words_stand() -> None:
    (match,) = search_events(EVENTS, "the cents").matches
    assert (match.seq, match.line) == (len(EVENTS) - 1, "for the cents")
    assert match.line[match.at : match.at + match.length] == "the cents"
    long = Recorded(0, "", UserSaid("x" * 5_000 + "needle" + "y" * 5_000))
    (match,) = search_events((long,), "needle").matches
    assert len(match.line) == LINE_CHARS
    assert match.line[match.at : match.at + match.length] == "needle"


def test_results_are_bounded_and_counted() -> None:
    found = search_events((Recorded(0, "", UserSaid("word\n" * 3_000)),), "word")
    assert (found.count, len(found.matches)) == (3_000, MAX_MATCHES)


def test_nothing_asked_finds_nothing() -> None:
    assert search_events(EVENTS, " ") == RecordMatches(" ", len(EVENTS))


@given(recorded(20), st.text(min_size=1, max_size=3), st.integers(1, 7))
def test_slices_find_what_one_search_finds(story: tuple[Recorded, ...], asked: str, most: int) -> None:
    found = RecordMatches(asked)
    while found.searched < len(story):
        found = search_more(found, story, most)
    if story:
        assert found == search_events(story, asked)


def test_any_words_are_literal() -> None:
    pad = Recorded(0, "", ScratchpadChanged(runs.T1, "a.b (c", Author.USER))
    assert search_events((pad,), ".b (").count == 1
    assert search_events((pad,), "a.*c").count == 0
