"""Executor of moves. A move is the next thing a session does (`engine.flow`): ask the model, run a tool, commit, ….

It is not the model role `executor`, which writes the steps.
"""

from typing import assert_never

from agent_workbench.core.model import Purpose
from agent_workbench.core.state.session_state import Phase
from agent_workbench.core.state.work import Chat, Planning
from agent_workbench.engine.chat.chat_context import execute_call, recover_call
from agent_workbench.engine.chat.chat_request import ask_chat, take_answer
from agent_workbench.engine.consultation import review_change
from agent_workbench.engine.flow import (
    Ask,
    AskPlan,
    AwaitGo,
    AwaitRetry,
    Close,
    Decide,
    Execute,
    Idle,
    KeepAttempt,
    Move,
    ProposeChecks,
    ProposeCommit,
    ProposeEdits,
    ProposeEnd,
    ProposeNotes,
    ReadAnswer,
    ReadPlan,
    Recover,
    Retrieve,
    ReviewChange,
    RollBack,
    RunHook,
    StartAfresh,
    Survey,
    TakePlan,
    Undo,
    WriteNotes,
)
from agent_workbench.engine.note_offers import propose_notes, take_notes
from agent_workbench.engine.planning.plan_proposal import propose_plan, take_plan
from agent_workbench.engine.planning.plan_request import ask_plan, survey_repo
from agent_workbench.engine.policy import run_hook
from agent_workbench.engine.proposals import propose_checks, propose_commit, propose_end, read_answer
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.summary_request import propose_summary, request_summary
from agent_workbench.engine.task.execution import execute_proposal
from agent_workbench.engine.task.first_search import keep_attempt, retrieve
from agent_workbench.engine.task.model_step import ask
from agent_workbench.engine.task.recovery import close, recover, roll_back
from agent_workbench.engine.task.task_draft import propose_edits
from agent_workbench.engine.task.undo import start_afresh, undo_diff


async def perform(session: SessionContext, move: Move) -> None:
    """Perform a move. Moves that wait for a person (`Idle`, `Decide`, `AwaitGo`, ...) are handled by the session."""
    try:
        await _perform(session, move)
    finally:
        session.publisher.show_activity("")


async def _perform(session: SessionContext, move: Move) -> None:
    work = session.state.work
    match move:
        case Idle() | Decide() | AwaitRetry() | AwaitGo():
            raise AssertionError(f"{move} waits for a decision and cannot be performed")
        case RunHook():
            await run_hook(session, move.proposal, move.hook)
        case Ask() | ReadAnswer() | Execute() | Recover() if isinstance(work, Chat):
            await _converse(session, work, move)
        case Execute():
            await execute_proposal(session, move.proposal)
        case Recover():
            await recover(session, move.proposal)
        case Undo():
            await undo_diff(session, move.proposal)
        case KeepAttempt():
            await keep_attempt(session)
        case StartAfresh():
            await start_afresh(session, move.proposal)
        case ProposeChecks():
            await propose_checks(session, move.purpose)
        case Retrieve():
            await retrieve(session)
        case ProposeEdits():
            await propose_edits(session)
        case Ask(purpose=Purpose.SUMMARY):
            await request_summary(session)
        case Ask():
            await ask(session, move.purpose)
        case ReadAnswer() if session.run.phase is Phase.COMPACTING:
            await propose_summary(session)
        case ReadAnswer():
            await read_answer(session)
        case ReviewChange():
            await review_change(session)
        case ProposeCommit():
            await propose_commit(session)
        case ProposeEnd():
            await propose_end(session)
        case RollBack():
            await roll_back(session, move.reason)
        case Close():
            await close(session)
        case ProposeNotes():
            await propose_notes(session)
        case WriteNotes():
            await take_notes(session, move.proposal, begun=move.begun)
        case Survey() | AskPlan() | ReadPlan() | TakePlan() if isinstance(work, Planning):
            await _plan(session, work, move)
        case Survey() | AskPlan() | ReadPlan() | TakePlan():
            raise AssertionError(f"{move} without an open planning")
        case _:
            assert_never(move)


async def _converse(session: SessionContext, chat: Chat, move: Ask | ReadAnswer | Execute | Recover) -> None:
    """Perform a move of a chat."""
    match move:
        case Ask():
            await ask_chat(session, chat)
        case ReadAnswer():
            await take_answer(session, chat)
        case Execute():
            await execute_call(session, move.proposal)
        case Recover():
            await recover_call(session, move.proposal)


async def _plan(session: SessionContext, planning: Planning, move: Survey | AskPlan | ReadPlan | TakePlan) -> None:
    """Perform a move of a planning."""
    match move:
        case Survey():
            await survey_repo(session, planning)
        case AskPlan():
            await ask_plan(session, planning)
        case ReadPlan():
            await propose_plan(session, planning)
        case TakePlan():
            await take_plan(session, move.proposal, begun=move.begun)
