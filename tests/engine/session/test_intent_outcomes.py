"""Every intent is answered, whatever the session does: no sender waits for ever."""

import asyncio
from pathlib import Path
from typing import get_args

import pytest
from msgspec import field

from agent_workbench.core.approval_rules import RuleScope
from agent_workbench.core.events import OfferedNote
from agent_workbench.core.history.replay_marks import MarkKind
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.inbox import InboxDecision, Reference
from agent_workbench.core.intents import (
    AbortTask,
    AddTask,
    AnswerQuestion,
    ApproveProposal,
    ArrangePlan,
    AskConsultant,
    BlockTask,
    ChangeMode,
    ChangeReplaySpeed,
    ChangeRule,
    ChooseMergeMethod,
    ChooseSkill,
    CompactContext,
    CompleteCode,
    DraftTask,
    DropChunk,
    EditNote,
    EditPlan,
    EditProposal,
    EditScratchpad,
    ExpandPrompt,
    FindCode,
    FindNotes,
    GoToEvent,
    Intent,
    JumpReplay,
    Leave,
    ListModels,
    ListPastActions,
    ListPrompts,
    ListSkills,
    LoadModel,
    MergeTask,
    MoveTask,
    OfferNotes,
    OpenFile,
    OpenPlan,
    PauseTask,
    PinChunk,
    PlayReplay,
    PreviewPrompt,
    ProposePlan,
    RecordDecision,
    RejectProposal,
    RetryTrouble,
    SayToModel,
    SeekReplay,
    SkipProposal,
    StartTask,
    StepReplay,
    StopAction,
    StopAnswer,
    StopConsultation,
    SwitchModel,
    UndoStep,
    UnloadModel,
)
from agent_workbench.core.outcomes import Accepted, CodeFound, Outcome, PastActionsFound, Refused
from agent_workbench.core.plan import PlanPiece, Task
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import ApprovalMode, Permission, Rule
from tests.engine.front import Front, handle_of, in_front_of
from tests.engine.stage import OPEN, SESSION, T1, a_stage
from tests.fakes.ports import GivenChunks, Hang

NOTHING = ProposalId("P-99")
PIECE = PlanPiece("PLAN.yaml", "goal: x\n", 0, 8, "goal: x\n", 1, 1)
INTENTS: tuple[Intent, ...] = (
    *(
        ApproveProposal(NOTHING, "sha"),
        RejectProposal(NOTHING, "no"),
        SkipProposal(NOTHING),
        EditProposal(NOTHING, "x"),
    ),
    *(StopAnswer(), StopAction(NOTHING), ChangeMode(ApprovalMode.ACCEPT_EDITS), ChangeMode(ApprovalMode.ASK)),
    *(ChangeRule(Rule(Permission.CHECK, any=True), RuleScope.SESSION), ListPastActions(Permission.DIFF)),
    *(AbortTask(), UndoStep(), UndoStep(NOTHING), PauseTask(), RetryTrouble(), EditScratchpad(T1, "", "note")),
    *(SayToModel("hello"), PinChunk("answer.txt:1-1"), DropChunk("answer.txt:1-1"), FindCode("answer")),
    *(ListSkills(), ChooseSkill("nope"), ChooseSkill("nope", chosen=False)),
    *(FindCode("answer.txt:1-1"), FindCode(""), OpenFile("answer.txt"), OpenFile("../../etc/passwd", -3)),
    *(
        ChooseMergeMethod(NOTHING, MergeMethod.SQUASH),
        PreviewPrompt(),
        CompactContext(),
        MergeTask(T1),
        MergeTask(TaskId("T-9")),
        AnswerQuestion("trust", yes=True),
    ),
    *(DraftTask("make the answer right"), DraftTask(""), CompleteCode("ans"), CompleteCode("../")),
    *(
        AddTask(Task(T1, "another")),
        OpenPlan(),
        OpenPlan(TaskId("T-9")),
        EditPlan(PIECE, "a: b"),
        MoveTask(T1, up=True),
        BlockTask(TaskId("T-9")),
    ),
    *(StepReplay(1), SeekReplay(0.5), GoToEvent(3), JumpReplay(MarkKind.DIFF), PlayReplay(playing=True)),
    ChangeReplaySpeed(faster=True),
    *(ProposePlan(""), ArrangePlan(NOTHING, (T1,)), OpenPlan(proposal=NOTHING)),
    *(FindNotes("answer"), FindNotes(), EditNote("gone", "a", "b"), EditNote("a note", "", " ")),
    *(OfferNotes((), "nobody"), OfferNotes((OfferedNote("a-note", "text"),), "nobody")),
    *(AskConsultant("review", NOTHING), AskConsultant("debug"), AskConsultant("spec", task=TaskId("T-9"))),
    *(AskConsultant("trainer"), StopConsultation()),
    *(ListPrompts(), ExpandPrompt("/nope"), ExpandPrompt("words"), ExpandPrompt("/../x")),
    *(ListModels(), LoadModel("model", "x"), UnloadModel("nope", "x"), SwitchModel("model", "x"), SwitchModel()),
    RecordDecision(InboxDecision(Reference(SESSION, NOTHING, "0" * 32), Verdict.APPROVE)),
)
SECONDS = 20


async def outcomes(session: object, intents: tuple[Intent, ...]) -> list[Outcome]:
    submitted = [session.submit(intent) for intent in intents]  # type: ignore[attr-defined]
    async with asyncio.timeout(SECONDS):
        return list(await asyncio.gather(*submitted))


def test_no_intent_is_left_out_here() -> None:
    known = {each for each in get_args(Intent) if isinstance(each, type)}
    assert known - {type(intent) for intent in INTENTS} - {StartTask, Leave} == set()


async def test_in_a_session_that_does_nothing(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage, in_front_of(stage) as front:
        found = await outcomes(front.session, INTENTS)
        assert all(isinstance(each, get_args(Outcome)) for each in found)


async def test_while_the_model_answers(tmp_path: Path) -> None:
    stoppers = (AbortTask, UndoStep, StopAnswer, StopAction)
    intents = tuple(intent for intent in INTENTS if not isinstance(intent, stoppers))
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=OPEN) as stage, in_front_of(stage) as front:
        assert await front.outcome(StartTask(T1)) == Accepted()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert len(await outcomes(front.session, intents)) == len(intents)
        assert await front.outcome(StartTask(T1)) == Refused("a task is being worked on; finish or abort it first")


async def test_what_is_queued_behind_the_end_is_refused(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        session = handle_of(stage)
        submitted = outcomes(session, (Leave(), *INTENTS))
        waiting = asyncio.create_task(submitted)
        await asyncio.sleep(0)
        await session.run()
        left, *rest = await waiting
        assert left == Accepted()
        assert set(rest) == {Refused("the session has ended")}
        assert await session.submit(StartTask()) == Refused("the session has ended")


class SlowSearch(GivenChunks):
    """Finds nothing until it is told to."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        if query.text == "slow":
            await self.go_on.wait()
        return await super().search(sources, query, limit, complete=complete)


async def test_a_question_that_another_one_replaces_is_refused_and_nothing_waits_for_it(tmp_path: Path) -> None:
    search = SlowSearch()
    hang = [Hang("Thought: hm")]
    async with a_stage(tmp_path, hang, approvals=OPEN, retriever=search) as stage, in_front_of(stage) as front:
        await front.outcome(StartTask(T1))
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        first, second = front.session.submit(FindCode("slow")), front.session.submit(FindCode("slow"))
        say = await front.outcome(SayToModel("the search does not hold this up"))
        assert say == Accepted()
        third = front.session.submit(ListPastActions(Permission.DIFF))
        assert isinstance(await first, Refused)
        assert isinstance(await second, Refused)
        assert isinstance(await third, PastActionsFound)
        search.go_on.set()
        assert isinstance(await front.outcome(FindCode("slow")), CodeFound)


@pytest.mark.parametrize("intent", [FindCode("slow"), StartTask(T1)])
async def test_leaving_answers_what_is_being_done(tmp_path: Path, intent: Intent) -> None:
    search = SlowSearch()
    hang = [Hang("Thought: hm")]
    async with a_stage(tmp_path, hang, approvals=OPEN, retriever=search) as stage, in_front_of(stage) as front:
        if isinstance(intent, FindCode):
            await front.outcome(StartTask(T1))
        submitted = front.session.submit(intent)
        assert await front.outcome(Leave()) == Accepted()
        async with asyncio.timeout(SECONDS):
            await submitted


async def test_what_comes_while_a_cancelled_session_ends_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=OPEN) as stage:
        session = handle_of(stage)
        front, life = Front(session), asyncio.create_task(session.run())
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        close, late = stage.recorder.close, []

        async def close_late() -> None:
            late.append(session.submit(PauseTask()))
            await asyncio.sleep(0)
            await close()

        monkeypatch.setattr(stage.recorder, "close", close_late)
        before = asyncio.all_tasks()
        life.cancel()
        with pytest.raises(asyncio.CancelledError):
            await life
        async with asyncio.timeout(SECONDS):
            assert await late[0] == Refused("the session has ended")
        assert not asyncio.all_tasks() - before
