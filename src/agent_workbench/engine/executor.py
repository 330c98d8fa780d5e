"""Carrying out one move after the other."""

from typing import assert_never

from agent_workbench.core.model import Purpose
from agent_workbench.core.state import Phase
from agent_workbench.engine.asking import ask
from agent_workbench.engine.carrying import carry
from agent_workbench.engine.compacting import read_summary, summarise
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.ending import close, roll_back
from agent_workbench.engine.flow import (
    Ask,
    AwaitGo,
    AwaitRetry,
    Carry,
    Close,
    Decide,
    Idle,
    Move,
    ProposeChecks,
    ProposeCommit,
    ProposeEnd,
    ReadAnswer,
    Retrieve,
    RollBack,
    Settle,
    Undo,
)
from agent_workbench.engine.gating import propose_checks, propose_commit, propose_end, read_answer
from agent_workbench.engine.settling import settle
from agent_workbench.engine.starting import retrieve
from agent_workbench.engine.undoing import take_back


async def perform(desk: Desk, move: Move) -> None:
    """Do what `move` says. Moves that wait for somebody (`Idle`, `Decide`, `AwaitGo`, ...) are the session's affair."""
    try:
        await _perform(desk, move)
    finally:
        desk.board.show_activity("")


async def _perform(desk: Desk, move: Move) -> None:
    match move:
        case Idle() | Decide() | AwaitRetry() | AwaitGo():
            raise AssertionError(f"{move} waits for a decision and cannot be performed")
        case Carry():
            await carry(desk, move.proposal)
        case Settle():
            await settle(desk, move.proposal)
        case Undo():
            await take_back(desk, move.proposal)
        case ProposeChecks():
            await propose_checks(desk, move.purpose)
        case Retrieve():
            await retrieve(desk)
        case Ask(purpose=Purpose.SUMMARY):
            await summarise(desk)
        case Ask():
            await ask(desk, move.purpose)
        case ReadAnswer() if desk.run.phase is Phase.COMPACTING:
            await read_summary(desk)
        case ReadAnswer():
            await read_answer(desk)
        case ProposeCommit():
            await propose_commit(desk)
        case ProposeEnd():
            await propose_end(desk)
        case RollBack():
            await roll_back(desk, move.reason)
        case Close():
            await close(desk)
        case _:
            assert_never(move)
