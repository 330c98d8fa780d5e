"""Comparison of a session's rows in the database with the journal that this machine has of it."""

import asyncio
from collections.abc import AsyncGenerator

from agent_workbench.adapters.database.sessions.batches import BATCH_BYTES
from agent_workbench.adapters.database.sessions.copy_tools import CopyTools
from agent_workbench.core.errors import DatabaseDownError, JournalError
from agent_workbench.core.history.journal_proof import Problem
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.journal_copies import (
    NO_LINE,
    JournalCopies,
    StoredLine,
    require_blob,
)

_ADVICE = "somebody changed the database; the journal here is as it was copied"


async def row_problems(
    tools: CopyTools, copies: JournalCopies, session: SessionId, known: int = NO_LINE
) -> tuple[Problem, ...]:
    """Return what the database has of a session and should not have, or lacks; none if it does not answer.

    `copies` has the journal, of which the database had everything up to event `known` once.
    """
    try:
        head = await tools.rows.newest_head(session)
        if head is None:
            said = f"the database does not have the session any more, of which event {known} was copied"
            return (Problem(0, said, _ADVICE),) if known >= 0 else ()
        return tuple([each async for each in _problems(tools, copies, head, known)])
    except DatabaseDownError:
        return ()
    except JournalError as error:
        return (Problem(0, str(error), error.advice),)


async def _problems(tools: CopyTools, copies: JournalCopies, head: SignedHead, known: int) -> AsyncGenerator[Problem]:
    await tools.require_signed(head)
    if head.seq < known:
        yield Problem(0, f"the database has events up to {head.seq}, and {known} was copied", _ADVICE)
    here = _lines(copies, head.session)
    async for data in tools.rows.lines(head.session, NO_LINE, head.seq):
        line = await anext(here, None)
        if line is None or line.data != data:
            number = line.seq if line is not None else head.seq
            yield Problem(number + 1, f"the database has another line of event {number} than was copied", _ADVICE)
            return
        for name in line.blobs:
            require_blob(name, await tools.rows.blob(name))
        if line.seq == head.seq and line.hash != head.hash:
            yield Problem(head.seq + 1, f"the signed head of the database has {head.hash[:12]} for event {head.seq}")


async def _lines(copies: JournalCopies, session: SessionId) -> AsyncGenerator[StoredLine]:
    offset = 0
    while batch := await asyncio.to_thread(copies.lines, session, offset, BATCH_BYTES):
        for each in batch:
            yield each
        offset = batch[-1].end
