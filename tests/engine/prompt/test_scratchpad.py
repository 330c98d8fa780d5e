"""A scratchpad that is too long is summarised at the gate, archived first; a task that ended leaves a note."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.errors import ExitCode, ModelUnavailable
from agent_workbench.core.fold import fold_all
from agent_workbench.core.intents import ApproveProposal, EditScratchpad
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Limits, MemorySettings, Permission, Settings
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.gate.gate_bar import view_gate
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, reopened
from tests.engine.test_executor import run
from tests.fakes.ports import FACTS, Cut, GivenChunks, Saying

NOTES = "".join(f"- note {number}: some words that nobody needs any more\n" for number in range(40))
SHORT = "answer.txt has to say right"
SUMMARY = f"Summary: {SHORT}"
RIGHT = change("wrong", "right")
SETTINGS = Settings(memory=MemorySettings(summarise_threshold=100))
ASKING = replace(OPEN, summary=Approval.ASK)


def pad(stage: Stage) -> Path:
    return stage.user.root / "memory/scratch/T-1.md"


def archived(stage: Stage) -> dict[str, str]:
    return {path.name: path.read_text() for path in (stage.user.root / "memory/archive").glob("*")}


async def write_notes(stage: Stage, text: str = NOTES) -> None:
    await stage.ports.memory.write_scratchpad(T1, "", text)


def purposes(stage: Stage) -> list[Purpose]:
    return [request.purpose for request in stage.model.requests]


def text_of(stage: Stage, request: int) -> str:
    return "\n".join(message.text for message in stage.model.requests[request].messages)


def notes(stage: Stage) -> list[str]:
    return pad(stage).read_text().splitlines()


def same_again(stage: Stage) -> bool:
    return fold_all(stage.journal()) == stage.state and not [each for each in rerun(stage.journal()) if each.difference]


async def test_a_long_scratchpad_becomes_a_summary_and_stays_in_the_archive(tmp_path: Path) -> None:
    approvals = replace(OPEN, summary=Approval.AUTO)
    async with a_stage(
        tmp_path, [SUMMARY, RIGHT, FINISH], settings=SETTINGS, approvals=approvals, headless=True
    ) as stage:
        await write_notes(stage)
        assert (await run(stage)).reason == "T-1 done: committed"
        assert purposes(stage) == [Purpose.SUMMARY, Purpose.EXECUTOR, Purpose.EXECUTOR]
        assert notes(stage)[0] == SHORT
        (name,) = archived(stage)
        assert name.startswith("T-1-20260102T")
        assert name.endswith("Z.md")
        assert archived(stage)[name] == NOTES
        assert "note 39" in text_of(stage, 0)
        assert "note 39" not in text_of(stage, 1), "the model has not read the old text, and need not"
        assert text_of(stage, 1).count(SHORT) == 1
        assert same_again(stage)


async def test_a_person_reads_it_first_and_may_edit_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [SUMMARY, RIGHT, FINISH], settings=SETTINGS, approvals=ASKING) as stage:
        await write_notes(stage)
        async with in_front_of(stage) as front:
            await front.start()
            waits = await front.gate(Permission.SUMMARY)
            assert pad(stage).read_text() == NOTES
            assert front.now is not None
            assert view_gate(front.now).text == "of the scratchpad"
            assert waits.paths == ("memory/scratch/T-1.md",)
            await front.edit(Permission.SUMMARY, "mine alone")
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        assert notes(stage)[0] == "mine alone"
        assert list(archived(stage).values()) == [NOTES]


@pytest.mark.parametrize("skips", [True, False])
async def test_refused_the_text_stays_and_is_not_asked_about_at_each_step(tmp_path: Path, *, skips: bool) -> None:
    sayings = [SUMMARY, call("list_files"), call("note", '{"text": "one more"}'), RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, settings=SETTINGS, approvals=ASKING) as stage:
        await write_notes(stage)
        async with in_front_of(stage) as front:
            await front.start()
            if skips:
                await front.skip(Permission.SUMMARY)
            else:
                await front.reject(Permission.SUMMARY, "I need all of that")
            await front.gate(Permission.MERGE)
        assert purposes(stage).count(Purpose.SUMMARY) == 1
        assert pad(stage).read_text().startswith(f"{NOTES}- one more\n")
        assert not archived(stage)
        told = text_of(stage, 1)
        assert "I need all of that" not in told, "it was no step of the task"
        assert "characters cut" in told, "what is too long is not sent whole"
        assert same_again(stage)


@pytest.mark.parametrize("vain", [Cut("Summary: on and"), call("list_files"), ModelUnavailable("gone")])
async def test_without_a_summary_the_task_goes_on(tmp_path: Path, vain: Saying) -> None:
    settings = replace(SETTINGS, limits=Limits(consecutive_failure_threshold=1))
    approvals = replace(OPEN, summary=Approval.AUTO)
    async with a_stage(tmp_path, [vain, RIGHT, FINISH], settings=settings, approvals=approvals, headless=True) as stage:
        await write_notes(stage)
        assert (await run(stage)).reason == "T-1 done: committed"
        assert pad(stage).read_text().startswith(NOTES)
        assert same_again(stage)


@pytest.mark.parametrize("approval", [Approval.ASK, Approval.DENY])
async def test_without_a_person_the_scratchpad_stays_and_the_work_goes_on(tmp_path: Path, approval: Approval) -> None:
    approvals = replace(OPEN, summary=approval)
    async with a_stage(tmp_path, [RIGHT, FINISH], settings=SETTINGS, approvals=approvals, headless=True) as stage:
        await write_notes(stage)
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert pad(stage).read_text().startswith(NOTES)
        assert Purpose.SUMMARY not in purposes(stage)


@pytest.mark.parametrize("through", ["file", "screen"])
async def test_what_was_written_meanwhile_is_not_lost(tmp_path: Path, through: str) -> None:
    sayings = [SUMMARY, "Summary: with what the user wrote", RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, settings=SETTINGS, approvals=ASKING) as stage:
        await write_notes(stage)
        newer = f"{NOTES}- the user's own\n"
        async with in_front_of(stage) as front:
            await front.start()
            waits = await front.gate(Permission.SUMMARY)
            if through == "file":
                await asyncio.to_thread(pad(stage).write_text, newer)
            else:
                await front.submit(EditScratchpad(T1, NOTES, newer))
                await front.until(lambda it: it.state.scratchpad(T1) == newer)
            await front.submit(ApproveProposal(waits.id, shown_sha(waits)))
            await front.until(lambda it: it.state.waiting and it.state.waiting.id != waits.id)
            assert pad(stage).read_text() == newer
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        assert notes(stage)[0] == "with what the user wrote"
        assert list(archived(stage).values()) == [newer]


@pytest.mark.parametrize(
    ("kind", "number", "before"),
    [
        (e.ActionStarted, 2, False),
        (e.ScratchpadChanged, 2, True),
        (e.ScratchpadChanged, 2, False),
        (e.ActionFinished, 2, True),
    ],
)
async def test_killed_anywhere_nothing_is_lost_and_nothing_doubled(
    tmp_path: Path, kind: type[e.Event], number: int, *, before: bool
) -> None:
    approvals = replace(OPEN, summary=Approval.AUTO)
    async with a_stage(
        tmp_path, [SUMMARY, RIGHT, FINISH], settings=SETTINGS, approvals=approvals, headless=True
    ) as stage:
        await write_notes(stage)
        await run_until_killed(stage, kind, number, before=before)
        await stage.session.close()
        await stage.recorder.close()
        async with reopened(stage, [RIGHT, FINISH]) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.DONE
            changes = [each.text for each in again.events if isinstance(each, e.ScratchpadChanged)]
            assert len(changes) == len(set(changes)) == 3, "as it was, the summary, and the closing note"
        assert list(archived(stage).values()) == [NOTES]
        assert notes(stage)[0] == SHORT
        assert len(notes(stage)) == 2


async def test_an_archive_of_that_name_is_never_written_over(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        memory, time = stage.ports.memory, "2026-01-02T03:04:05.000000Z"
        for number, (before, text) in enumerate(
            [("", "a\n"), ("a\n", "b\n"), ("b\n", "c\n"), ("c\n", "b\n"), ("b\n", "d\n")]
        ):
            if number:
                assert await memory.archive_scratchpad(T1, before, text, time) == text
            else:
                await memory.write_scratchpad(T1, before, text)
        assert sorted(archived(stage).items()) == [
            ("T-1-20260102T030405Z-2.md", "b\n"),
            ("T-1-20260102T030405Z-3.md", "c\n"),
            ("T-1-20260102T030405Z.md", "a\n"),
        ]
        assert await memory.archive_scratchpad(T1, "another\n", "x\n", time) == "d\n", "only what was read last"


async def test_long_notes_never_push_found_code_out(tmp_path: Path) -> None:
    lines = "\n".join(f"line {line} of code" for line in range(40))
    found = GivenChunks(tuple(Chunk(f"code{number}.py", 1, 40, lines, 1.0) for number in range(2)))
    places: list[Sequence[str]] = []
    for number, text in enumerate(("", "".join(f"- {line} that the user noted down long ago\n" for line in range(60)))):
        settings = Settings(memory=MemorySettings(summarise_threshold=2_000))
        async with a_stage(
            tmp_path / str(number), [RIGHT, FINISH], settings=settings, approvals=OPEN, headless=True, retriever=found
        ) as stage:
            for chunk in found.chunks:
                stage.user.write(chunk.path, chunk.text + "\n")
            stage.user.commit("Add code")
            stage.model.facts = replace(FACTS, context_tokens=1_450)
            if text:
                await write_notes(stage, text)
            assert (await run(stage)).reason == "T-1 done: committed"
            places.append([path for path in ("code0.py", "code1.py") if f"{path}, the whole file" in text_of(stage, 0)])
            assert ("- 0 that the user noted" in text_of(stage, 0)) is bool(text)
    assert places[0] == places[1] != []


async def test_a_task_that_is_done_leaves_a_note_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, e.TaskStatusChanged, 2, before=True)
        await stage.session.close()
        await stage.recorder.close()
        async with reopened(stage) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.DONE
            commit = stage.git("rev-parse", "agent/T-1")[:10]
            (note,) = notes(stage)
            assert note == (
                f"- done: Make the answer right (T-1) "
                f"(branch agent/T-1, commit {commit}, session {again.state.session})"
            )
            assert again.state.scratchpad(T1) == f"{note}\n"
            assert fold_all(again.journal()) == again.state


async def test_a_task_that_failed_leaves_why(tmp_path: Path) -> None:
    limits = Settings(limits=Limits(max_tool_calls_per_task=1))
    async with a_stage(tmp_path, ["no step", "none"], settings=limits, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.FAILED
        (note,) = notes(stage)
        assert note.startswith("- failed: Make the answer right (T-1): ")
        assert note.endswith(f"(session {stage.state.session})")
