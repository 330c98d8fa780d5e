"""The inbox of a repository with sessions of other machines: copies of their journals come a little late."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.journal.session_store import LocalSessionStore
from agent_workbench.core import events as e
from agent_workbench.core.errors import DecisionRefused
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxDecision
from agent_workbench.core.signed import SignedText
from agent_workbench.subjects.inbox import calls as repo_inbox
from tests.adapters.journal.journals import NO_SECRETS
from tests.api.sessions import test_inbox
from tests.api.sessions.test_inbox import APPROVE, COMMAND, Repo
from tests.contracts.test_session_store import CountedIds
from tests.fakes.stores import MemoryInbox

EXPIRY = test_inbox.TestExpiry()
SIGNED = SignedText("{}", "signature")


class CopiedSessions(LocalSessionStore):
    """Sessions of another machine: reading is as late as `late` says."""

    late = 0
    holder = "gpu-1"

    async def summaries(self) -> tuple[SessionSummary, ...]:
        return tuple(replace(each, worker="gpu-1", holder=self.holder) for each in await super().summaries())

    async def summary(self, session: SessionId) -> SessionSummary:
        return replace(await super().summary(session), worker="gpu-1", holder=self.holder)

    async def read(self, session: SessionId, *, whole: bool = False) -> tuple[Recorded, ...]:
        events = await super().read(session, whole=whole)
        if self.late and isinstance(events[-1].event, e.ActionDecided):
            self.late -= 1
            return events[:-1]
        return events


class TakenAtOnce(MemoryInbox):
    """A signed inbox whose decisions the other machine takes at once, and records unless it `forgets`."""

    def __init__(self, repo: Repo) -> None:
        super().__init__()
        self._repo = repo
        self.forgets = False

    async def put(self, decision: InboxDecision) -> InboxDecision:
        if not self.forgets:
            opened = await self._repo.store.open(SessionQuery(decision.reference.session))
            recorded = e.ActionDecided(COMMAND.id, decision.verdict, "user", via="another name", signed=SIGNED)
            await self._repo.append(opened, recorded)
            await opened.journal.close()
        return replace(decision, signed=SIGNED)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path)
    repo.store = CopiedSessions(repo.folder, tmp_path / "registry", CountedIds(), lambda: NO_SECRETS)
    return repo


@pytest.fixture
def taken(repo: Repo) -> TakenAtOnce:
    taken = TakenAtOnce(repo)
    repo.inbox = repo.of("ada@laptop", taken)
    return taken


async def test_a_decision_that_was_taken_is_recorded_when_its_line_is_copied(repo: Repo, taken: TakenAtOnce) -> None:
    await repo.parked()
    reference = await repo.reference()
    assert isinstance(repo.store, CopiedSessions)
    repo.store.late = 3
    receipt = await repo.inbox.decide(reference, APPROVE)
    assert (receipt.recorded, receipt.holder) == (True, "gpu-1")
    with pytest.raises(DecisionRefused, match="was decided already"):
        await repo.inbox.decide(reference, APPROVE)


async def test_a_line_that_does_not_come_is_waited_for_no_longer_than_a_moment(
    repo: Repo, taken: TakenAtOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repo_inbox, "_LOOK_SECONDS", 0.001)
    taken.forgets = True
    await repo.parked()
    receipt = await repo.inbox.decide(await repo.reference(), APPROVE)
    assert (receipt.recorded, receipt.holder) == (False, "gpu-1")


async def test_what_waits_elsewhere_names_its_machine_and_does_not_expire_here(repo: Repo) -> None:
    session = await EXPIRY.unattended(repo)
    assert isinstance(repo.store, CopiedSessions)
    repo.store.holder = ""
    inbox = EXPIRY.inbox(repo, "2027-01-01T00:00:00.000000Z")
    (item,) = await inbox.items()
    assert (item.session, item.worker, item.expires) == (session, "gpu-1", "")
    assert await inbox.reject_expired() == ()
