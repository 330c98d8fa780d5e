import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.errors import JournalError, LockedError, StorageError
from agent_workbench.core.fold import fold_all
from agent_workbench.core.fold.output_digests import output_digest
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.ports.stores import Journal
from agent_workbench.core.settings import MEMORY_IGNORE
from tests.adapters.journal.journals import (
    LONG,
    NO_SECRETS,
    STORY,
    append_all,
    events_in,
    started,
    time_of,
    write_quickly,
)
from tests.strategies import events


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "sessions" / "20260102T030405-abc234"


async def open_new(directory: Path, redactor: Redactor = NO_SECRETS) -> JournalWriter:
    return await asyncio.to_thread(JournalWriter.open_new, directory, redactor)


async def test_what_is_appended_is_read_back(directory: Path) -> None:
    writer: Journal = await open_new(directory)
    assert isinstance(writer, JournalWriter)
    live = await append_all(writer)
    await writer.close()
    assert (await asyncio.to_thread(read_journal, directory)).events == tuple(live)
    assert [each.event for each in live] == list(STORY)
    assert fold_all(live) == fold_all((await asyncio.to_thread(read_journal, directory)).events)


async def test_of_a_long_output_a_session_keeps_the_digest_and_the_journal_all(directory: Path) -> None:
    output = "".join(f"tests/test_a.py::test_{number} PASSED\n" for number in range(20_000))
    ran = e.TestsFinished(CheckPurpose.FINAL, (CheckResult("pytest", 1, output, 1.0, ("a",)),))
    finished = e.ActionFinished(ProposalId("P-1"), e.ActionResult.OK, "ended", output=output)
    writer = await open_new(directory)
    story: tuple[e.Event, ...] = (started(), ran, finished)
    live = [await writer.append(seq, time_of(seq), event) for seq, event in enumerate(story)]
    await writer.close()
    assert isinstance(live[1].event, e.TestsFinished)
    assert live[1].event.results[0].output == output_digest(output)
    assert len(output_digest(output)) < len(output) // 10
    assert (await asyncio.to_thread(read_journal, directory)).events == tuple(live)
    whole = (await asyncio.to_thread(lambda: read_journal(directory, whole=True))).events
    assert [each.event for each in whole[1:]] == [ran, finished]
    assert (await asyncio.to_thread(verify_journal, directory)).ok
    assert (directory / "journal.jsonl").stat().st_size < len(output), "the output is a blob, stored once"
    assert [path.read_text() for path in (directory / "blobs").iterdir()] == [output]


@pytest.mark.parametrize("rules", [None, "/sessions/\n"])
async def test_git_does_not_list_the_first_session_of_a_repository(tmp_path: Path, rules: str | None) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    memory = tmp_path / "memory"
    if rules is not None:
        memory.mkdir()
        (memory / ".gitignore").write_text(rules)
    writer = await open_new(memory / "sessions" / "20260102T030405-abc234")
    await writer.close()
    listed = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=tmp_path, capture_output=True, check=True)
    assert listed.stdout.decode() == "?? memory/.gitignore\n"
    assert (memory / ".gitignore").read_text() == (MEMORY_IGNORE if rules is None else rules)


async def test_what_is_written_is_the_format(directory: Path, tmp_path: Path) -> None:
    writer = await open_new(directory)
    await append_all(writer)
    await writer.close()
    lines = await asyncio.to_thread(write_quickly, tmp_path / "again")
    assert (directory / "journal.jsonl").read_bytes() == b"".join(lines)
    assert {each.name for each in directory.iterdir()} == {"journal.jsonl", "lock", "blobs"}


@given(st.lists(events().filter(lambda event: not isinstance(event, e.SessionStarted)), max_size=6), st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_all_events_live_are_as_read_back(
    tmp_path_factory: pytest.TempPathFactory, made: list[e.Event], data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("journal") / "session"
    redactor = Redactor([("SOME_TOKEN", data.draw(st.text(min_size=8, max_size=12)))])

    async def write() -> list[e.Recorded]:
        writer = await open_new(directory, redactor)
        live = await append_all(writer, (started(), *made))
        await writer.close()
        return live

    live = asyncio.run(write())
    content = read_journal(directory)
    assert repr(list(content.events)) == repr(live)
    assert verify_journal(directory).head == live[-1].hash


async def test_secrets_are_recorded_nowhere(directory: Path) -> None:
    secret = "gho_abcdefghijkl"
    writer = await open_new(directory, Redactor([("GH_TOKEN", secret)]))
    recorded = await append_all(
        writer,
        (
            started(),
            e.ActionFinished(ProposalId("p"), e.ActionResult.OK, f"echo {secret}", output=secret + LONG),
        ),
    )
    await writer.close()
    finished = recorded[1].event
    assert isinstance(finished, e.ActionFinished)
    assert finished.observation == "echo «redacted:GH_TOKEN»"
    assert finished.output == "«redacted:GH_TOKEN»" + LONG
    assert (await asyncio.to_thread(read_journal, directory)).events == tuple(recorded)
    for path in directory.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()


async def test_words_of_the_format_are_never_redacted(directory: Path) -> None:
    writer = await open_new(
        directory, Redactor([("A_TOKEN", "in_progress"), ("B_TOKEN", "journal.jsonl"), ("C", "session")])
    )
    await append_all(writer)
    await writer.close()
    assert (await asyncio.to_thread(verify_journal, directory)).ok


async def test_a_journal_is_taken_up_where_it_ended(directory: Path) -> None:
    writer = await open_new(directory)
    before = await append_all(writer, STORY[:3])
    await writer.close()
    again = await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
    assert again.events == tuple(before)
    assert again.torn_bytes == 0
    after = await append_all(again.writer, STORY[3:], first=3)
    await again.writer.close()
    assert (await asyncio.to_thread(read_journal, directory)).events == (*before, *after)


async def test_an_unfinished_line_is_set_aside(directory: Path) -> None:
    lines = await asyncio.to_thread(write_quickly, directory)
    journal = directory / "journal.jsonl"
    for number, cut in enumerate((1, 40), 1):
        with journal.open("ab") as file:
            file.write(lines[-1][:-cut])
        writer, recorded, torn_bytes = await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
        await writer.close()
        assert torn_bytes == len(lines[-1]) - cut
        assert len(recorded) == len(STORY)
        assert (directory / f"journal.torn-{number}").read_bytes() == lines[-1][:-cut]
        assert journal.read_bytes() == b"".join(lines)


async def test_a_damaged_journal_is_not_written_to(directory: Path) -> None:
    lines = await asyncio.to_thread(write_quickly, directory)
    (directory / "journal.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(JournalError, match="line 3: seq is 3, 2 belongs here"):
        await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
    (directory / "journal.jsonl").write_bytes(b"".join(lines))
    writer, _, _ = await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
    await writer.close()


async def test_a_second_writer_is_refused_with_the_first_one_s_pid(directory: Path) -> None:
    writer = await open_new(directory)
    await append_all(writer)
    for open_ in (JournalWriter.open_existing, JournalWriter.open_new):
        with pytest.raises(LockedError) as refused:
            await asyncio.to_thread(open_, directory, NO_SECRETS)
        assert f"pid {os.getpid()} on " in refused.value.holder
    await writer.close()
    again = await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
    await again.writer.close()


async def test_a_journal_is_created_once(directory: Path) -> None:
    await (await open_new(directory)).close()
    with pytest.raises(JournalError, match="exists already"):
        await open_new(directory)


async def test_a_journal_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no"):
        await asyncio.to_thread(JournalWriter.open_existing, tmp_path / "session", NO_SECRETS)
    assert list(tmp_path.iterdir()) == []


async def test_a_journal_without_events_can_be_begun(directory: Path) -> None:
    await (await open_new(directory)).close()
    writer, recorded, _ = await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
    assert recorded == ()
    await append_all(writer)
    await writer.close()
    assert (await asyncio.to_thread(events_in, directory)) == STORY


async def test_events_come_in_order(directory: Path) -> None:
    writer = await open_new(directory)
    await writer.append(0, time_of(0), started())
    for seq in (0, 2, -1):
        with pytest.raises(JournalError, match=f"event {seq} cannot be appended, the next one is 1"):
            await writer.append(seq, time_of(1), e.RetryAsked())
    await writer.append(1, time_of(1), e.RetryAsked())
    await writer.close()
    assert (await asyncio.to_thread(verify_journal, directory)).ok


async def test_the_header_comes_first_and_once(directory: Path) -> None:
    writer = await open_new(directory)
    with pytest.raises(JournalError, match="session_started first"):
        await writer.append(0, time_of(0), e.RetryAsked())
    await writer.append(0, time_of(0), started())
    with pytest.raises(JournalError, match="session_started first"):
        await writer.append(1, time_of(1), started())
    await writer.close()
    assert (await asyncio.to_thread(events_in, directory)) == (started(),)


async def test_appends_from_many_tasks_are_one_after_the_other(directory: Path) -> None:
    writer = await open_new(directory)
    await writer.append(0, time_of(0), started())
    await asyncio.gather(*(writer.append(seq, time_of(seq), e.RetryAsked()) for seq in range(1, 50)))
    await writer.close()
    assert len((await asyncio.to_thread(read_journal, directory)).events) == 50


async def test_a_cancelled_append_leaves_a_whole_line(directory: Path) -> None:
    writer = await open_new(directory)
    await writer.append(0, time_of(0), started())
    task = asyncio.create_task(writer.append(1, time_of(1), e.SessionLeft("x" * 3000)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len((await asyncio.to_thread(read_journal, directory)).events) == 2
    await writer.append(2, time_of(2), e.RetryAsked())
    await writer.close()
    assert (await asyncio.to_thread(verify_journal, directory)).ok


async def test_a_closed_journal_takes_nothing(directory: Path) -> None:
    writer = await open_new(directory)
    await writer.close()
    await writer.close()
    with pytest.raises(JournalError, match="closed"):
        await writer.append(0, time_of(0), started())


async def test_a_journal_that_somebody_else_changed_is_left_alone(directory: Path) -> None:
    writer = await open_new(directory)
    await writer.append(0, time_of(0), started())
    journal = directory / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content + b"theirs")
    with pytest.raises(JournalError, match="bytes where"):
        await writer.append(1, time_of(1), e.RetryAsked())
    assert journal.read_bytes() == content + b"theirs"
    journal.write_bytes(content)
    await writer.append(1, time_of(1), e.RetryAsked())
    await writer.close()
    assert (await asyncio.to_thread(verify_journal, directory)).ok


async def test_a_journal_that_was_removed_is_not_written_into_the_void(directory: Path) -> None:
    writer = await open_new(directory)
    (directory / "journal.jsonl").unlink()
    with pytest.raises(JournalError, match="removed while in use"):
        await writer.append(0, time_of(0), started())
    await writer.close()


@pytest.mark.parametrize("name", ["journal.jsonl", "lock"])
async def test_links_are_not_followed(name: str, directory: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    await asyncio.to_thread(write_quickly, directory)
    (directory / name).unlink(missing_ok=True)
    (directory / name).symlink_to(victim)
    with pytest.raises(StorageError):
        await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
    assert victim.read_bytes() == b""


async def test_a_pipe_in_the_journal_s_place_is_not_waited_for(directory: Path) -> None:
    directory.mkdir(parents=True)
    os.mkfifo(directory / "journal.jsonl")
    with pytest.raises(StorageError, match="not a regular file"):
        await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)


SYNCED = """
import asyncio, os, sys
from pathlib import Path
from agent_workbench.adapters.journal import blobs as files
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.events import ActionFinished, ActionResult, SessionStarted

made = []
real_fsync, real_write, real_replace = os.fsync, os.write, os.replace
name = lambda descriptor: Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
os.fsync = lambda descriptor: (made.append(f"sync {name(descriptor)}"), real_fsync(descriptor))[1]
os.write = lambda descriptor, data: (made.append(f"write {name(descriptor)}"), real_write(descriptor, data))[1]
os.replace = lambda a, b: (made.append(f"rename {Path(b).name}"), real_replace(a, b))[1]

async def main():
    writer = JournalWriter.open_new(Path(sys.argv[1]), Redactor({}))
    await writer.append(0, "t", SessionStarted("20260102T030405-abc234", "/r", "c", "0"))
    print(*made, sep=chr(10))
    made.clear()
    print("--")
    await writer.append(1, "t", ActionFinished("p", ActionResult.OK, "x" * 5000))
    print(*made, sep=chr(10))
    await writer.close()

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="machine lacks: /proc")
def test_what_is_needed_is_durable_before_what_names_it(directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SYNCED, str(directory)], capture_output=True, text=True, check=True, timeout=60
    )
    created, _, appended = done.stdout.partition("--\n")
    for name in (directory.name, "sessions", "memory"):
        assert created.index(f"sync {name}\n") < created.index("write journal.jsonl")
    assert created.endswith("write journal.jsonl\nsync journal.jsonl\n")
    steps = appended.splitlines()
    assert [step.partition(" ")[0] for step in steps[:2]] == ["sync", "write"]
    assert steps[-3:] == ["sync blobs", "write journal.jsonl", "sync journal.jsonl"]
    data_synced = max(i for i, step in enumerate(steps) if step.startswith("sync .") and step.endswith(".tmp"))
    assert data_synced < steps.index("sync blobs", data_synced)
