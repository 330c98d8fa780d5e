"""The port `SessionRefs` on a git remote: fenced pushes, takeovers, and what another machine left."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from msgspec import Struct, field

from agent_workbench.adapters.git.local_refs import LocalRefs
from agent_workbench.adapters.git.objects import GitObjects as Objects
from agent_workbench.adapters.git.refs import BRANCH_PREFIX
from agent_workbench.adapters.git.remote_transport import Quarantine, Transport
from agent_workbench.adapters.git.stored_commits import AUDIT, audit_ref, read_audit_heads, write_audit_commit
from agent_workbench.core.errors import JournalError, LockedError, StorageError
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.git_objects import GitObjects, git_objects
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.signed import SignedPurpose

P = ParamSpec("P")
T = TypeVar("T")
_HEADS = "refs/heads/"


class RemoteTools(Struct, frozen=True):
    """Transport, local refs and objects of one repository."""

    transport: Transport
    local: LocalRefs
    objects: Objects


class _Pushed(Struct):
    """What the remote has of a session, as far as this process knows."""

    refs: dict[str, str] = field(default_factory=dict)
    head: SignedHead | None = None


class GitSessionRefs:
    """`core.ports.shared_state.SessionRefs` of the machine `worker`; `tools` opens the repository and its remote."""

    def __init__(self, tools: Callable[[], RemoteTools], signatures: Signatures, worker: str) -> None:
        self._open_tools = tools
        self._worker = worker
        self._signatures = signatures
        self._tools: RemoteTools | None = None
        self._opening = threading.Lock()
        self._pushed: dict[SessionId, _Pushed] = {}
        self._turns: dict[SessionId, asyncio.Lock] = {}

    async def check(self) -> int:
        tools = await self._ready()
        return len(await self._do(tools.transport.list, f"{AUDIT}*"))

    async def task_commit(self, task: TaskId) -> str:
        tools = await self._ready()
        branch = f"refs/heads/{BRANCH_PREFIX}{task}"
        return (await self._do(tools.transport.list, branch)).get(branch, "")

    async def push(self, head: SignedHead, *, if_missing: bool = False) -> tuple[str, ...]:
        async with self._turn(head.session):
            return await self._push(head, if_missing=if_missing)

    async def take_over(self, head: SignedHead, recorded: Sequence[Recorded]) -> None:
        async with self._turn(head.session):
            tools = await self._ready()
            known = await self._seen(tools, head.session)
            self._check_fits(tools, known[1], recorded)
            newest = known[1][-1] if known[1] else None
            if newest is not None and (newest.fence > head.fence or _other_writer(newest, head)):
                raise _lost(head.session, newest)
            if newest != head:
                await self._do(_move_audit, tools, head, known[0])
            self._pushed.pop(head.session, None)

    async def fetch(self, session: SessionId, recorded: Sequence[Recorded]) -> SignedHead | None:
        async with self._turn(session):
            tools = await self._ready()
            _, heads = await self._seen(tools, session)
            self._check_fits(tools, heads, recorded)
            await self._do(_fetch, tools, session, git_objects(recorded))
            return heads[-1] if heads else None

    async def heads(self, session: SessionId) -> tuple[SignedHead, ...]:
        async with self._turn(session):
            tools = await self._ready()
            try:
                _, found = await self._seen(tools, session)
            except StorageError:
                found = await self._do(_local_heads, tools, session)
            # The newest head of a lease covers the events of those before it.
            newest = {each.fence: each for each in found}
            return tuple([each for each in newest.values() if await self._counts(each)])

    async def remove(self, session: SessionId, refs: Mapping[str, str]) -> None:
        async with self._turn(session):
            tools = await self._ready()
            heads = await self._do(_local_heads, tools, session)
            if heads and heads[-1].worker != self._worker:
                raise _elsewhere(session)
            await self._do(_remove, tools, session, refs)
            self._pushed.pop(session, None)

    async def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do blocking work in a thread; a cancelled call ends git, so that no thread outlives it for long."""
        doing = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            if self._tools is not None:
                self._tools.transport.stop()
            await asyncio.gather(doing, return_exceptions=True)
            raise

    def _turn(self, session: SessionId) -> asyncio.Lock:
        return self._turns.setdefault(session, asyncio.Lock())

    async def _ready(self) -> RemoteTools:
        def ready() -> RemoteTools:
            with self._opening:
                if self._tools is None:
                    self._tools = self._open_tools()
                return self._tools

        return await self._do(ready)

    async def _counts(self, head: SignedHead) -> bool:
        return bool(await self._signatures.signer(SignedPurpose.JOURNAL, head.message, head.signature))

    async def _push(self, head: SignedHead, *, if_missing: bool) -> tuple[str, ...]:
        tools = await self._ready()
        rejected = ""
        for _ in range(2):
            pushed = self._pushed.get(head.session)
            if pushed is None:
                pushed = await self._learn(tools, head)
            rejected, notes = await self._do(_push, tools, pushed, head, if_missing=if_missing)
            if not rejected:
                self._pushed[head.session] = pushed
                return notes
            self._pushed.pop(head.session, None)  # somebody else moved a ref, or an answer was lost
        raise StorageError(
            f"{tools.transport.name} rejects the refs of session {head.session}: {rejected}",
            advice="see that it accepts atomic pushes below refs/agent/ and refs/heads/agent/",
        )

    async def _learn(self, tools: RemoteTools, head: SignedHead) -> _Pushed:
        """Return what the remote has of a session; raise `LockedError` if another lease wrote there."""
        tip, heads = await self._seen(tools, head.session)
        newest = heads[-1] if heads else None
        if newest is not None and (newest.fence > head.fence or _other_writer(newest, head)):
            raise _lost(head.session, newest)
        patterns = (f"refs/agent/{head.session}/*", f"{_HEADS}agent/*")
        refs = await self._do(tools.transport.list, *patterns)
        if tip is not None:
            refs[audit_ref(head.session)] = tip
        return _Pushed(refs, newest)

    async def _seen(self, tools: RemoteTools, session: SessionId) -> tuple[CommitId | None, tuple[SignedHead, ...]]:
        """Return the remote's audit ref and its heads, after this machine knows them too.

        Raises `JournalError` if it is no continuation of what this machine knew, or its newest signature does not
        count.
        """

        def see() -> tuple[CommitId | None, CommitId | None, tuple[SignedHead, ...]]:
            ref = audit_ref(session)
            tip = tools.transport.list(ref).get(ref)
            known = tools.local.commit(ref)
            if tip is None and known is None:
                return None, None, ()
            if tip is not None and tip == known:
                return known, None, _local_heads(tools, session)
            if tip is None:
                raise _rolled_back(tools, session)
            with tools.transport.fetch(f"{ref}*") as found:
                heads = _heads(tools, session, found)
                tip = found.refs.get(ref)  # another machine may have moved it meanwhile
                if tip is None or (known is not None and not _continues(found, known, tip)):
                    raise _rolled_back(tools, session)
                tools.transport.adopt(found)
            return known, CommitId(tip), heads

        known, tip, heads = await self._do(see)
        if tip is None:
            return known, heads
        if not await self._counts(heads[-1]):
            problem = await self._signatures.problem(SignedPurpose.JOURNAL, heads[-1].message, heads[-1].signature)
            raise JournalError(
                f"{audit_ref(session)} at {tools.transport.name} does not count: {problem}",
                advice="allow the worker's key on this machine, or remove the forged ref from the remote",
            )
        await self._do(tools.local.set_audit, session, tip)
        return tip, heads

    def _check_fits(self, tools: RemoteTools, heads: Sequence[SignedHead], recorded: Sequence[Recorded]) -> None:
        """Raise `JournalError` if a head names another event than the ones recorded."""
        hashes = {each.seq: each.hash for each in recorded}
        for head in heads:
            if head.seq >= 0 and hashes.get(head.seq) != head.hash:
                has = "another event" if head.seq in hashes else "no event"
                raise JournalError(
                    f"{tools.transport.name} has a head of session {head.session} at event {head.seq},"
                    f" and the database has {has} there: its rows were changed or removed",
                    advice="`agent sessions verify` compares the session with every anchor; nothing was taken over",
                )


def _push(tools: RemoteTools, pushed: _Pushed, head: SignedHead, *, if_missing: bool) -> tuple[str, tuple[str, ...]]:
    """Push what the remote lacks, and update `pushed`; return why a ref was rejected, and what was left out."""
    session, before = head.session, pushed.head
    if before is not None and (head.fence < before.fence or head.seq < before.seq):
        raise _lost(session, before)
    wanted, notes = tools.local.wanted(session, pushed.refs)
    updates = {ref: oid for ref, oid in wanted.items() if pushed.refs.get(ref) != oid}
    same = before is not None and before.fence == head.fence and (if_missing or before.seq == head.seq)
    if not updates and same:
        return "", notes
    ref = audit_ref(session)
    parent = tools.local.commit(ref)
    commit = write_audit_commit(tools.objects, head, parent)
    leases = {each: pushed.refs.get(each, "") for each in updates if each.startswith(_HEADS)}
    rejected = tools.transport.push({**updates, ref: commit}, {**leases, ref: parent or ""})
    if not rejected:
        tools.local.set_audit(session, commit)
        pushed.refs |= updates
        pushed.head = head
    return rejected, notes


def _move_audit(tools: RemoteTools, head: SignedHead, parent: CommitId | None) -> None:
    ref = audit_ref(head.session)
    commit = write_audit_commit(tools.objects, head, parent)
    if rejected := tools.transport.push({ref: commit}, {ref: parent or ""}):
        raise LockedError(
            f"session {head.session} was not taken over: {ref} moved meanwhile ({rejected})",
            advice="another machine writes it, or takes it over; try again",
        )
    tools.local.set_audit(head.session, commit)


def _fetch(tools: RemoteTools, session: SessionId, objects: GitObjects) -> None:
    patterns = (f"refs/agent/{session}/*", *tools.local.of_parents(session, objects))
    with tools.transport.fetch(*patterns) as found:
        tools.local.check(session, objects, found.refs, found.plumbing, tools.transport.name)
        tools.transport.adopt(found)
    tools.local.apply(session, objects)


def _remove(tools: RemoteTools, session: SessionId, refs: Mapping[str, str]) -> None:
    ref = audit_ref(session)
    there = tools.transport.list(ref, f"refs/agent/{session}/*", f"{_HEADS}agent/*")
    if ref in there and there[ref] != tools.local.commit(ref):
        raise _elsewhere(session)
    gone = {each: oid for each, oid in refs.items() if there.get(each) == oid}
    if gone and (rejected := tools.transport.push(dict.fromkeys(gone, ""), gone)):
        raise StorageError(f"refs of session {session} were not removed from {tools.transport.name}: {rejected}")


def _heads(tools: RemoteTools, session: SessionId, found: Quarantine) -> tuple[SignedHead, ...]:
    tip = found.refs.get(audit_ref(session))
    return read_audit_heads(found.plumbing, tools.objects.algorithm, session, tip) if tip is not None else ()


def _local_heads(tools: RemoteTools, session: SessionId) -> tuple[SignedHead, ...]:
    tip = tools.local.commit(audit_ref(session))
    return read_audit_heads(tools.objects.plumbing, tools.objects.algorithm, session, tip) if tip is not None else ()


def _continues(found: Quarantine, known: str, tip: str) -> bool:
    return found.plumbing.attempt("merge-base", "--is-ancestor", known, tip).status == 0


def _other_writer(newest: SignedHead, head: SignedHead) -> bool:
    return newest.fence == head.fence and newest.worker != head.worker


def _lost(session: SessionId, newest: SignedHead) -> LockedError:
    return LockedError(
        f"session {session} was taken over by {newest.worker} (lease {newest.fence})",
        advice="what was not copied before stays in the journal here; go on there, or open the session again",
    )


def _elsewhere(session: SessionId) -> LockedError:
    return LockedError(
        f"session {session} was continued on another machine, which may need its refs at the remote",
        advice="remove them there",
    )


def _rolled_back(tools: RemoteTools, session: SessionId) -> JournalError:
    ref = audit_ref(session)
    return JournalError(
        f"{ref} at {tools.transport.name} does not continue what this machine has of it: one of them was changed",
        advice=f"compare it with another clone; `git push REMOTE {ref}` restores a remote that was set back",
    )
