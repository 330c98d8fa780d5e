import asyncio
import os
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.blobs import LOCK
from agent_workbench.adapters.journal.reader import LineIndex, read_lines
from agent_workbench.adapters.journal.session_list import find_session, session_folders, summarize_session
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core import events as e
from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.plan import TaskStatus, WorkState
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.system.locks import FileLock
from tests.adapters.journal.journals import NO_SECRETS, STORY, TASK, started, time_of, write_quickly

IDS = ["20260103T000000-bbbbbb", "20260102T000000-abcabc", "20260101T000000-abaaaa"]


def list_sessions(folder: Path) -> tuple[SessionSummary, ...]:
    return tuple(map(summarize_session, session_folders(folder)))


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    for name in IDS:
        write_quickly(tmp_path / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "20260104T000000-cccccc").touch()
    return tmp_path


def test_sessions_come_newest_first(sessions: Path) -> None:
    assert [each.id for each in list_sessions(sessions)] == IDS


def test_a_session_at_a_glance(sessions: Path) -> None:
    first, *_ = list_sessions(sessions)
    assert first.started == time_of(0)
    assert first.last == time_of(len(STORY) - 1)
    assert first.tasks == (TASK,)
    assert first.title == next(each.definition.title for each in STORY if isinstance(each, e.TaskStarted))
    assert first.status is TaskStatus.DONE
    assert first.events == len(STORY)
    assert (first.holder, first.torn_bytes, first.problem, first.parent) == ("", 0, "", None)


def test_a_journal_is_read_again_where_it_grew_and_not_where_it_did_not(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list_sessions(sessions)
    with (sessions / IDS[0] / "journal.jsonl").open("ab") as file:
        file.write(b"{torn")
    read: list[str] = []

    def noting(folder: Path) -> tuple[LineIndex, bytes]:
        read.append(folder.name)
        return read_lines(folder)

    monkeypatch.setattr("agent_workbench.adapters.journal.session_list.read_lines", noting)
    with FileLock(sessions / IDS[1] / LOCK, "somebody"):
        after = list_sessions(sessions)
    assert read == IDS[:1]
    assert [each.torn_bytes for each in (*before, *after)] == [0, 0, 0, len(b"{torn"), 0, 0]
    assert [each.holder for each in (*before, *after)] == ["", "", "", "", "somebody", ""]


def test_the_status_is_that_of_the_last_task(tmp_path: Path) -> None:
    again = tuple(e.TaskFinished(TaskId(name), TaskStatus.FAILED, "") for name in ("T-2", "T-1"))
    write_quickly(tmp_path / IDS[0], (*STORY, *again))
    write_quickly(tmp_path / IDS[1], STORY[:3])
    write_quickly(tmp_path / IDS[2], STORY[:1])
    summaries = list_sessions(tmp_path)
    assert [each.tasks for each in summaries] == [("T-1", "T-2"), ("T-1",), ()]
    assert [each.status for each in summaries] == [TaskStatus.FAILED, TaskStatus.IN_PROGRESS, None]


def test_a_fork_names_its_parent(tmp_path: Path) -> None:
    parent = SessionId(IDS[2])
    write_quickly(tmp_path / IDS[0], (e.SessionStarted(SessionId(IDS[0]), "/r", CommitId("c"), "0", parent, 3),))
    (summary,) = list_sessions(tmp_path)
    assert (summary.parent, summary.parent_seq) == (parent, 3)


def test_what_was_done_is_counted_without_reading_all(tmp_path: Path) -> None:
    figures = AnswerFigures(prompt_tokens=100, answer_tokens=20)
    lying = e.ModelAnswered(1, '"kind":"task_finished","prompt_tokens":999', figures, "here")
    prompt = e.PromptBuilt(2, Purpose.EXECUTOR, 1, 100, "s")
    waiting = e.ActionProposed(DiffProposal(ProposalId("P-1"), "write_diff", "", 2))
    write_quickly(tmp_path / IDS[0], (*STORY[:3], lying, prompt, lying, waiting))
    (summary,) = list_sessions(tmp_path)
    assert (summary.steps, summary.tokens, summary.waits, summary.status) == (2, 240, True, TaskStatus.IN_PROGRESS)


async def test_an_open_session_names_its_holder(sessions: Path) -> None:
    opened = await asyncio.to_thread(JournalWriter.open_existing, sessions / IDS[0], NO_SECRETS)
    holders = [each.holder for each in await asyncio.to_thread(list_sessions, sessions)]
    assert f"pid {os.getpid()} on" in holders[0]
    assert holders[1:] == ["", ""]
    await opened.writer.close()
    assert (await asyncio.to_thread(list_sessions, sessions))[0].holder == ""


def test_sessions_that_are_not_well_are_listed_with_their_problem(sessions: Path) -> None:
    damaged, empty, absent = (sessions / name for name in IDS)
    lines = (damaged / "journal.jsonl").read_bytes()
    (damaged / "journal.jsonl").write_bytes(lines.replace(b"0.1.0", b"0.1.1") + b"torn")
    (empty / "journal.jsonl").write_bytes(b"")
    (absent / "journal.jsonl").unlink()
    first, second, third = list_sessions(sessions)
    assert first.problem.startswith("line 1: hash is")
    assert first.torn_bytes == 4
    assert first.events == len(STORY)
    assert (second.events, second.problem) == (0, "")
    assert "there is no" in third.problem


@pytest.mark.parametrize("journal", [None, b"", b'{"v":'])
def test_a_session_that_is_being_opened_is_no_damaged_one(sessions: Path, journal: bytes | None) -> None:
    opening = sessions / IDS[0]
    (opening / "journal.jsonl").unlink()
    if journal is not None:
        (opening / "journal.jsonl").write_bytes(journal)
    with FileLock(opening / LOCK, "pid 7"):
        first = list_sessions(sessions)[0]
    assert (first.state, first.holder, first.events) == (WorkState.OPEN, "pid 7", 0)


def test_lines_that_are_missing_show_at_a_glance(sessions: Path) -> None:
    journal = sessions / IDS[0] / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:1] + lines[2:]))
    assert "belongs here" in list_sessions(sessions)[0].problem


def test_where_there_are_none_none_are_listed(tmp_path: Path) -> None:
    assert list_sessions(tmp_path / "absent") == ()
    with pytest.raises(UsageError, match="no session yet"):
        find_session(tmp_path / "absent")


@pytest.mark.skipif(os.geteuid() == 0, reason="machine lacks: a user whom permissions bind")
def test_a_folder_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    with pytest.raises(StorageError, match="could not be read"):
        list_sessions(tmp_path)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("", 0), (IDS[1], 1), ("20260101", 2), ("20260103T", 0), ("abc", 1), ("abaaaa", 2), ("b", 0)],
)
def test_a_session_is_found_by_its_beginning(wanted: str, found: int, sessions: Path) -> None:
    assert find_session(sessions, wanted) == sessions / IDS[found]


@pytest.mark.parametrize(("wanted", "said"), [("2026", "3 sessions begin with"), ("ab", "2 sessions"), ("x", "no ")])
def test_what_is_not_one_session_is_refused(wanted: str, said: str, sessions: Path) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        find_session(sessions, wanted)
    assert refused.value.advice


def test_started_is_the_only_event_needed(tmp_path: Path) -> None:
    write_quickly(tmp_path / IDS[0], (started(SessionId(IDS[0])),))
    (summary,) = list_sessions(tmp_path)
    assert summary.started == summary.last
    assert summary.problem == ""


def test_figures_that_nobody_can_count_to_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "20260101T000000-aaaaaa"
    folder.mkdir()
    head = b'{"v":1,"seq":0,"time":"2026-01-01T00:00:00.000000Z","kind":"model_answered",'
    (folder / "journal.jsonl").write_bytes(head + b'"body":{"prompt_tokens":%b,"answer_tokens":12}}\n' % (b"9" * 5_000))
    (summary,) = list_sessions(tmp_path)
    assert summary.tokens == 12
    assert summary.problem, "it is no journal"
