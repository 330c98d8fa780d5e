"""Stores in memory: what the contract suites hold beside the local ones, and what the engine's tests use."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, convert
from msgspec.structs import replace

from agent_workbench.core.errors import DecisionRefused, ForgeError, LockedError, StorageError, UsageError
from agent_workbench.core.history.audit_records import (
    AuditCost,
    AuditDecision,
    AuditEntry,
    AuditPage,
    AuditQuery,
    AuditRecord,
    CostKey,
    CostPage,
    CostQuery,
    CostSum,
    DecisionPage,
    DecisionQuery,
    check_query,
)
from agent_workbench.core.ids import NO_SESSION, CommitId, SessionId
from agent_workbench.core.inbox import InboxDecision, Reference
from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote, check_note_name
from agent_workbench.core.ports.forge import BuildState, ForgeComment, ForgeIssue
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from agent_workbench.core.repo.retrieval import Signal, SignalKind
from agent_workbench.core.task_result import TaskResult


class MemoryInbox:
    """`core.ports.stores.Inbox` of one process."""

    def __init__(self) -> None:
        self._kept: dict[Reference, InboxDecision] = {}
        self._news = asyncio.Event()

    async def put(self, decision: InboxDecision) -> InboxDecision:
        first = self._kept.get(decision.reference)
        if first is not None:
            raise DecisionRefused(f"{first.reference.proposal} was decided already: {first.verdict}")
        self._kept[decision.reference] = decision
        self._news.set()
        self._news = asyncio.Event()
        return decision

    def refused(self, session: SessionId) -> tuple[str, ...]:
        return ()

    async def pending(self, session: SessionId) -> tuple[InboxDecision, ...]:
        kept = (each for each in self._kept.values() if each.reference.session == session)
        return tuple(sorted(kept, key=lambda each: each.made_at))

    async def wait(self, session: SessionId, known: Collection[Reference] = ()) -> tuple[InboxDecision, ...]:
        while True:
            news = self._news
            found = tuple(each for each in await self.pending(session) if each.reference not in known)
            if found:
                return found
            await news.wait()

    async def remove(self, decision: InboxDecision) -> None:
        self._kept.pop(decision.reference, None)


class Lease(Struct):
    """Who holds a queued task, until when, under which number."""

    worker: str = ""
    until: float = 0.0
    fence: int = 0


class MemoryTaskQueue:
    """`core.ports.task_queue.TaskQueue` whose leases run on a clock; `id_in` returns the id that a definition sets."""

    def __init__(self, clock: Clock, id_in: Callable[[str], str] = lambda _: "") -> None:
        self._clock = clock
        self._id_in = id_in
        self._tasks: dict[str, QueuedTask] = {}
        self._leases: dict[str, Lease] = {}

    async def put(self, task: QueuedTask) -> bool:
        task = replace(task, id=self._id_in(task.definition) or task.id)
        if task.id in self._tasks:
            return False
        self._tasks[task.id] = replace(task, state=QueueState.QUEUED)
        self._leases[task.id] = Lease()
        return True

    async def claim(self, worker: str, lease_seconds: float, *, begun: bool = False) -> TaskClaim | None:
        now = self._clock.monotonic_seconds()
        for task in await self.tasks():
            lease = self._leases[task.id]
            expired = task.state is QueueState.CLAIMED and lease.until <= now
            ready = bool(task.session) or all(map(self._is_done, task.depends_on))
            if ready and (task.session or not begun) and (task.state is QueueState.QUEUED or expired):
                lease.worker, lease.until, lease.fence = worker, now + lease_seconds, lease.fence + 1
                claimed = self._tasks[task.id] = replace(task, state=QueueState.CLAIMED, worker=worker)
                return TaskClaim(claimed, worker, lease.fence)
        return None

    async def renew(self, claim: TaskClaim, lease_seconds: float, session: SessionId = NO_SESSION) -> None:
        self._check(claim)
        self._leases[claim.task.id].until = self._clock.monotonic_seconds() + lease_seconds
        if session:
            self._tasks[claim.task.id] = replace(self._tasks[claim.task.id], session=session)

    async def park(self, claim: TaskClaim, reason: str) -> None:
        self._end(claim, QueueState.PARKED, reason)

    async def resume(self, task: str) -> QueueState:
        if task not in self._tasks:
            raise UsageError(f"there is no task {task!r}")
        if self._tasks[task].state is QueueState.PARKED:
            self._tasks[task] = replace(self._tasks[task], state=QueueState.QUEUED, reason="")
        return self._tasks[task].state

    async def finish(self, claim: TaskClaim, state: QueueState, reason: str, result: TaskResult | None = None) -> None:
        if state not in {QueueState.DONE, QueueState.FAILED}:
            raise UsageError(f"a task does not end as {state}")
        self._end(claim, state, reason)

    async def withdraw(self, task: str, reason: str) -> bool:
        if task not in self._tasks:
            raise UsageError(f"there is no task {task!r}")
        if self._tasks[task].state in {QueueState.DONE, QueueState.FAILED, QueueState.WITHDRAWN}:
            return False
        self._leases[task].worker = ""
        self._tasks[task] = replace(self._tasks[task], state=QueueState.WITHDRAWN, reason=reason)
        return True

    async def tasks(self, *states: QueueState) -> tuple[QueuedTask, ...]:
        found = (task for task in self._tasks.values() if not states or task.state in states)
        return tuple(sorted(found, key=lambda task: (-task.priority, task.id)))

    def _end(self, claim: TaskClaim, state: QueueState, reason: str) -> None:
        self._check(claim)
        self._leases[claim.task.id].worker = ""
        self._tasks[claim.task.id] = replace(self._tasks[claim.task.id], state=state, reason=reason)

    def _is_done(self, task: str) -> bool:
        return task in self._tasks and self._tasks[task].state is QueueState.DONE

    def _check(self, claim: TaskClaim) -> None:
        lease = self._leases[claim.task.id]
        if (lease.fence, lease.worker) != (claim.fence, claim.worker) or lease.until <= self._clock.monotonic_seconds():
            raise LockedError(f"{claim.task.id} is not {claim.worker}'s any more", holder=lease.worker)


class MemoryAuditIndex:
    """`core.ports.audit_index.AuditIndex` over a dictionary."""

    def __init__(self) -> None:
        self._records: dict[tuple[object, ...], AuditRecord] = {}

    async def add(self, record: AuditRecord) -> bool:
        if _line(record) in self._records:
            return False
        self._records[_line(record)] = record
        return True

    async def query(self, query: AuditQuery, now: str) -> AuditPage:
        check_query(query)
        since = datetime.fromisoformat(now) - timedelta(days=query.days)
        entries = [each for each in self._records.values() if isinstance(each, AuditEntry)]
        found = [each for each in entries if query.status in {None, each.status} and _fits(each, query, since)]
        found.sort(key=lambda each: (each.session, each.seq))
        found.sort(key=lambda each: each.ended, reverse=True)
        return AuditPage(tuple(found[query.offset : query.offset + query.limit]), len(found))

    async def decisions(self, query: DecisionQuery, now: str) -> DecisionPage:
        check_query(query)
        since = datetime.fromisoformat(now) - timedelta(days=query.days)
        decisions = [each for each in self._records.values() if isinstance(each, AuditDecision)]
        found = [
            each
            for each in decisions
            if query.task in {"", each.task} and each.by.startswith(query.by) and _fits(each, query, since)
        ]
        found.sort(key=lambda each: (each.session, each.seq))
        found.sort(key=lambda each: each.time, reverse=True)
        return DecisionPage(tuple(found[query.offset : query.offset + query.limit]), len(found))

    async def costs(self, query: CostQuery, now: str) -> CostPage:
        check_query(query)
        today = datetime.fromisoformat(now).replace(hour=0, minute=0, second=0, microsecond=0)
        since = today - timedelta(days=query.days - 1, microseconds=1)
        sums: dict[tuple[tuple[str, str], ...], CostSum] = {}
        overall = CostSum()
        for each in self._records.values():
            if isinstance(each, AuditCost) and _fits(each, query, since):
                names = (each.time[:10], each.endpoint, each.model, each.service, each.worker)
                named = {str(by): name for by, name in zip(CostKey, names, strict=True) if by in query.by}
                key = tuple(named.items())
                sums[key] = _plus(sums.get(key, convert(named, CostSum)), each)
                overall = _plus(overall, each)
        found = sorted(sums.values(), key=lambda each: (each.endpoint, each.model, each.service, each.worker))
        found.sort(key=lambda each: (each.day, each.dollars, each.prompt_tokens + each.answer_tokens), reverse=True)
        return CostPage(tuple(found[query.offset : query.offset + query.limit]), len(found), overall)

    async def rebuild(self, records: Iterable[AuditRecord]) -> None:
        self._records = {_line(each): each for each in records}


def _line(record: AuditRecord) -> tuple[object, ...]:
    costs = (record.endpoint, record.model) if isinstance(record, AuditCost) else ()
    return (type(record), record.session, record.seq, *costs)


def _fits(record: AuditRecord, query: AuditQuery | DecisionQuery | CostQuery, since: datetime) -> bool:
    time = record.ended if isinstance(record, AuditEntry) else record.time
    return (
        query.service in {"", record.service}
        and query.intent in {"", record.intent}
        and datetime.fromisoformat(time) > since
    )


def _plus(one: CostSum, cost: AuditCost) -> CostSum:
    return replace(
        one,
        answers=one.answers + cost.answers,
        prompt_tokens=one.prompt_tokens + cost.prompt_tokens,
        answer_tokens=one.answer_tokens + cost.answer_tokens,
        dollars=one.dollars + cost.dollars,
        unproved=one.unproved + cost.answers * bool(cost.unproved),
    )


class MemoryKnowledge:
    """`core.ports.search.Knowledge` that counts words."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        return tuple(KnowledgeNote(name, self._texts[name]) for name in sorted(self._texts))

    async def has_notes(self) -> bool:
        return bool(self._texts)

    async def read(self, name: str) -> KnowledgeNote | None:
        return KnowledgeNote(name, self._texts[name]) if name in self._texts else None

    async def problem(self) -> str:
        return ""

    async def close(self) -> None:
        pass

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        hits = []
        for note in await self.notes():
            said = note.text.lower().split()
            found = [word for word in words.lower().split() if word in said]
            if found:
                signals = (Signal(SignalKind.WORDS, 1.0, tuple(found)),)
                hits.append(KnowledgeHit(note, float(sum(map(said.count, found))), signals))
        return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.note.name))[:limit])

    async def write(self, note: KnowledgeNote, before: str | None) -> None:
        check_note_name(note.name)
        if self._texts.get(note.name) != before:
            raise StorageError(f"{note.name} was changed since it was read")
        self._texts[note.name] = note.text


class MemoryForge:
    """`core.ports.forge.Forge` with the issues and comments that a test gives it."""

    def __init__(self, issues: Sequence[ForgeIssue] = ()) -> None:
        self._issues = {issue.number: issue for issue in issues}
        self._comments: dict[int, list[ForgeComment]] = {number: [] for number in self._issues}
        self._keys: dict[tuple[int, str], int] = {}
        self._last = 0
        self.states: dict[tuple[CommitId, str], tuple[BuildState, str]] = {}
        self.requests: dict[str, tuple[str, str]] = {}

    def say(self, issue: int, author: str, text: str) -> ForgeComment:
        """Add a comment as somebody else would."""
        self._last += 1
        comment = ForgeComment(self._last, author, text)
        self._of(issue).append(comment)
        return comment

    async def issues(self, known: Collection[int] = ()) -> tuple[ForgeIssue, ...]:
        return tuple(self._issues[number] for number in sorted(self._issues) if number not in known)

    async def comments(self, issue: int, after: int = 0) -> tuple[ForgeComment, ...]:
        return tuple(each for each in self._of(issue) if each.id > after)

    async def comment(self, issue: int, key: str, text: str) -> None:
        comments = self._of(issue)
        known = self._keys.get((issue, key))
        if known is None:
            self._last += 1
            self._keys[issue, key] = self._last
            comments.append(ForgeComment(self._last, "agent", text, own=True, key=key))
            return
        place = next(place for place, each in enumerate(comments) if each.id == known)
        if comments[place].text != text:
            comments[place] = replace(comments[place], text=text, edited=True)

    async def may_write(self, login: str) -> bool:
        return True

    async def set_state(self, commit: CommitId, context: str, state: BuildState, text: str) -> None:
        self.states[commit, context] = (state, text)

    async def request_merge(self, branch: str, title: str, text: str, *, again: bool = False) -> str:
        self.requests[branch] = (title, text)
        return f"https://forge.invalid/pulls/{branch}"

    async def close(self) -> None:
        pass

    def _of(self, issue: int) -> list[ForgeComment]:
        if issue not in self._comments:
            raise ForgeError(f"there is no issue {issue}")
        return self._comments[issue]
