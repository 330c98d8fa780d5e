"""Records of the audit that machines share: copied from this machine's journals, proved by the signed ones."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import SessionStarted
from agent_workbench.core.history.audit_records import AuditRecord
from agent_workbench.core.history.audit_trail import AuditTrail, possible_records
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.audit_index import AuditCopies, AuditSource
from agent_workbench.core.ports.stores import SessionStore

MOST_PROVED = 200
"""Most sessions whose journals are read to prove one answer."""
NOT_THERE = "the session's signed journal has no such event, or another one"
TOO_MANY = f"more than {MOST_PROVED} sessions are in the answer; ask for fewer"


class JournalProofs:
    """Implements `core.ports.audit_index.AuditProofs` with `sessions`, which give proved events or none."""

    def __init__(self, sessions: SessionStore) -> None:
        self._sessions = sessions
        self._known: dict[SessionId, frozenset[AuditRecord] | str] = {}

    async def unproved(self, records: Sequence[AuditRecord]) -> Sequence[str]:
        """Return, for each record, why no signed journal is known to have exactly it."""
        for session in dict.fromkeys(each.session for each in records):
            if session not in self._known and len(self._known) < MOST_PROVED:
                self._known[session] = await self._records(session)
        return tuple(map(self._unproved, records))

    def _unproved(self, record: AuditRecord) -> str:
        known = self._known.get(record.session, TOO_MANY)
        if isinstance(known, str):
            return known
        return "" if replace(record, unproved="") in known else NOT_THERE

    async def _records(self, session: SessionId) -> frozenset[AuditRecord] | str:
        """Return the records of a proved journal, or why there is none."""
        try:
            summary = await self._sessions.summary(session)
            if not (summary.ours or summary.worker):
                return "its session was not begun on this machine"
            events = await self._sessions.read(session)
        except WorkbenchError as error:
            return f"its journal is not proved: {error}"
        found: list[AuditRecord] = []
        trail, copied = AuditTrail(), 0
        for recorded in events:
            if isinstance(recorded.event, SessionStarted) and recorded.event.parent_seq is not None:
                copied = recorded.event.parent_seq + 1
            found += trail.add(recorded)
        # Its records may have been copied before its newest events.
        return possible_records(found, copied)


async def copy_records(source: AuditSource, shared: AuditCopies, heads: Mapping[SessionId, int]) -> None:
    """Copy the records of sessions whose journal has more events (`heads`) than were copied; raise `StorageError`."""
    copied = await shared.copied()
    for session, seq in heads.items():
        if copied.get(session, -1) < seq:
            journal = await asyncio.to_thread(source.read, session, None)
            if journal.mark.seq >= 0:
                await shared.replace(session, journal)
