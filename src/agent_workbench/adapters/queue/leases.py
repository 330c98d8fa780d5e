"""Leases of queued tasks: how long a claim lasts, and which claims count no more."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from agent_workbench.adapters.queue.queue_records import QueueRecord, QueueRecords
from agent_workbench.core.errors import LockedError
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import QueueState, TaskClaim


class QueueLeases:
    """Leases of the claims in `records`."""

    def __init__(self, records: QueueRecords, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def leased(self, record: QueueRecord, lease_seconds: float) -> QueueRecord:
        """Return the record of a claim with a lease from now on, held by this process."""
        until_utc = datetime.fromisoformat(self._clock.now()) + timedelta(seconds=lease_seconds)
        return replace(
            record,
            holder=self._records.hold(),
            boot=self._records.boot,
            until=self._clock.monotonic_seconds() + lease_seconds,
            until_utc=until_utc.isoformat(),
        )

    def is_over(self, record: QueueRecord) -> bool:
        """Return True if a claim ran out, or its process is known to be dead."""
        return record.state is QueueState.CLAIMED and (self._is_late(record) or self._records.is_dead(record))

    def _is_late(self, record: QueueRecord) -> bool:
        if record.boot == self._records.boot:
            return record.until <= self._clock.monotonic_seconds()
        return datetime.fromisoformat(record.until_utc) <= datetime.fromisoformat(self._clock.now())

    def checked(self, claim: TaskClaim) -> QueueRecord:
        """Return the record of a claim; raise `LockedError` if the claim counts no more."""
        record = self._records.find(claim.task.id)
        held = record is not None and (record.state, record.worker, record.fence) == (
            QueueState.CLAIMED,
            claim.worker,
            claim.fence,
        )
        if record is None or not held or self._is_late(record):
            holder = record.worker if record is not None else ""
            raise LockedError(f"{claim.task.id} is not {claim.worker}'s any more", holder=holder)
        return record
