"""Every benchmark runs at tiny sizes and gives figures that can be; how large they are is not asserted."""

import json

import pytest

from agent_workbench.core.model import AnswerFigures, Purpose
from bench import (
    audit,
    code_search,
    edits,
    first_paint,
    fleet_dispatch,
    hops,
    index_scale,
    journal,
    journeys,
    patches,
    prompt,
    prompt_tokens,
    replay,
    skills,
    start_up,
)
from bench.__main__ import BENCHES, QUICK, main
from bench.figures import Figure, milliseconds, ratio, seconds_of
from bench.terminal import NotPaintedError, paint
from tests.e2e.tmux import HAS_TMUX


def by_name(figures: list[Figure]) -> dict[str, float]:
    assert all(figure.value >= 0 for figure in figures)
    assert len({figure.name for figure in figures}) == len(figures)
    return {figure.name: figure.value for figure in figures}


def test_start_up_takes_longer_than_nothing() -> None:
    found = by_name(start_up.measure(rounds=1))
    assert found["agent --help, of python -c pass"] > 1
    assert sum(name.startswith("import of") for name in found) == start_up.SHOWN_IMPORTS


def test_the_audit_answers_what_the_journals_hold() -> None:
    assert by_name(audit.measure(sessions=6, steps=2, rounds=1))["rebuild and query"] > 0


@pytest.mark.slow
def test_a_queue_in_a_database_hands_out_its_tasks() -> None:
    found = by_name(fleet_dispatch.measure(tasks=3, dispatched=4, queued=6, workers=(1, 2)))
    assert found["put to start, beside bare Procrastinate"] > 0
    assert found["dispatches a second: 6 queued, 2 workers"] > 0


def test_the_journal_is_written_and_read() -> None:
    found = by_name(journal.measure(appended=5, read=20, rounds=1, checks=2, check_mib=1))
    assert found["append an event of 1 kB with fsync"] > 0
    assert found["open a session of 2 checks of 1 MiB"] > 0
    assert found["20 events on disk"] > 0.02


def test_a_recording_is_opened_and_gone_through() -> None:
    found = by_name(replay.measure(events=80, seeks=3, rounds=1))
    assert found["a seek with all panes, to be drawn"] > 0


def test_patches_apply() -> None:
    assert len(by_name(patches.measure(lines=50, hunks=3, files=2, rounds=1))) == 4


@pytest.mark.slow
@pytest.mark.xdist_group("llama")
def test_random_edits_do_not_miss() -> None:
    found = by_name(edits.measure(seeds=4, lines=20, vocabulary=1000, tokens=60))
    assert found["wrong"] == found["answers that ended and were refused"] == 0
    assert found["answers that ended and apply exactly"] > 0
    assert found["tokens a second with it, of free text"] > 0


def test_edits_are_counted_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert edits.main(["--files", __file__, "--lines", "20", "--seeds", "3", "--no-speed", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"] + told["cut"] + told["refused"] == 3
    assert told["wrong"] == 0


def test_a_package_is_indexed_and_searched() -> None:
    found = by_name(code_search.measure(package="unidiff", queries=("parse the header of a hunk",)))
    assert found["files"] >= 5
    assert found["one changed file to found"] > 0


def test_a_package_that_is_not_there_is_said() -> None:
    with pytest.raises(SystemExit, match="no_such_package is not installed"):
        code_search.measure(package="no_such_package")


@pytest.mark.slow
def test_a_large_index_is_built_saved_loaded_changed_and_searched() -> None:
    found = by_name(index_scale.measure(chunks=300, queries=5))
    assert found["chunks"] >= 300
    assert found["saved"] > 0
    assert found["five fields for a query of 20 words"] > 0


@pytest.mark.slow
def test_skills_are_listed_chosen_and_read() -> None:
    found = by_name(skills.measure(skills=5, rounds=1))
    assert found["choose among 5 skills"] > 0


@pytest.mark.slow
@pytest.mark.xdist_group("llama")
def test_prompts_are_not_read_again() -> None:
    found = by_name(prompt.measure(steps=6))
    assert found["scripted: prompts"] == 6
    assert found["scripted: new in them"] > 0
    assert found["scripted: read again"] == 0
    assert found["scripted: the same, the last token of answers too"] < 1
    assert found["summed up: prompts"] == 7
    assert found["summed up: read again but for the summary, of all"] == 0
    assert found["summed up: of it the server read"] < found["summed up: the prompt after"]
    assert found["random: prompts"] > 0


def test_what_was_read_again_is_counted_by_the_letter() -> None:
    figures = (AnswerFigures(100, 0, 10), AnswerFigures(130, 105, 10), AnswerFigures(150, 90, 10))
    # Of the second prompt 110 were known, 5 of them not found; of the third 140, and 50 not.
    assert prompt.literally([prompt.Told(Purpose.EXECUTOR, each) for each in figures]) == 55


@pytest.mark.slow
@pytest.mark.xdist_group("pty")
def test_the_first_screen_is_seen() -> None:
    found = by_name(first_paint.measure(rounds=1))
    assert found["panes stand, of the empty app"] > 0
    assert found["panes of agent tui stand"] > 0


@pytest.mark.slow
@pytest.mark.xdist_group("pty")
def test_a_key_press_is_followed_to_the_journal_and_to_the_screen() -> None:
    line, repaint = hops.trace()
    assert (line.functions[0], line.functions[-1]) == (
        "tui/key_queue:KeyQueueApp.on_event",
        "adapters/journal/writer:AppendOnlyFile.append",
    )
    assert not any(module.startswith("views/") for module in line.modules)
    assert repaint.functions[: len(line.functions)] == line.functions
    assert repaint.functions[-1].endswith(".render_line")
    assert line.calls <= repaint.calls


@pytest.mark.xdist_group("pty")
def test_a_program_that_ends_was_not_painted() -> None:
    with pytest.raises(NotPaintedError, match="ended with 3"):
        paint(("/bin/sh", "-c", "echo plan; exit 3"), "plan", "/", {})


@pytest.mark.xdist_group("pty")
def test_the_screen_is_read_as_a_terminal_would() -> None:
    painting = paint(("/bin/sh", "-c", r"printf 'pl\033[1man'; exec sleep 60"), "plan", "/", {"PATH": "/usr/bin:/bin"})
    assert painting.screen[0].startswith("plan")
    assert 0 < painting.first_byte_seconds <= painting.painted_seconds


def test_figures_are_summed_up() -> None:
    assert milliseconds("x", [0.001, 0.5, 0.002]).value == 2
    assert ratio("x", [3.0], [2.0]).value == 1.5
    assert len(seconds_of(lambda: None, 4)) == 4
    assert Figure("a name", 1234.5, "tokens", "0").line().split() == ["a", "name", "1,234", "tokens", "0"]


def test_json_holds_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patches", "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [figure["unit"] for figure in told["patches"]] == ["ms", "ms", "ms", "ms"]


def test_one_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> list[Figure]:
        raise ValueError("no luck")

    monkeypatch.setitem(QUICK, "journal", broken)
    monkeypatch.setitem(QUICK, "patches", lambda: [Figure("a", 1, "ms")])
    assert main(["journal", "patches", "--quick"]) == 1
    out, err = capsys.readouterr()
    assert "journal: ValueError: no luck" in err
    assert "patches\n  a" in out


@pytest.mark.slow
@pytest.mark.xdist_group("pty")
@pytest.mark.skipif(not HAS_TMUX, reason="machine lacks: tmux")
def test_the_first_request_is_timed_where_it_arrives() -> None:
    (chat,) = [start for start in journeys.STARTS if start.name == "agent chat"]
    found = by_name(journeys.measure(rounds=1, starts=(chat,), whole=False))
    assert found["agent chat to the first request, later"] > 0


def test_there_is_a_quick_form_of_each() -> None:
    assert list(QUICK) == list(BENCHES)


def test_the_prompts_of_a_recorded_task_are_counted_before_and_after() -> None:
    found = by_name(prompt_tokens.measure(tasks=1))
    assert len(found) == 8
    assert all(found.values())
