"""Notes that another program offers: they wait for a person, and not without bound."""

import os
from pathlib import Path

import pytest

from agent_workbench.api.sessions.offered_notes import close_notes, open_notes, settle_offer
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import UsageError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.session_request import Invocation
from agent_workbench.engine.note_offers import offer_notes
from agent_workbench.engine.proposals import decide
from agent_workbench.subjects.knowledge import calls
from agent_workbench.subjects.knowledge.calls import note_of, park_notes
from tests.adapters.git.user import make_repo


@pytest.fixture
def invocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invocation:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    root = Path(make_repo(tmp_path / "repo", {"a.py": "one\n"}).root)
    return Invocation(root, {"PATH": os.environ["PATH"]}, {})


async def test_offers_beyond_what_anybody_reads_are_refused(
    invocation: Invocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MOST_WAITING", 2)
    for number in range(2):
        parked = await park_notes(invocation, (note_of("Approve all.", f"n{number}"),), "a test")
        assert (parked.written, parked.reference is not None) == (False, True)
    with pytest.raises(UsageError, match="2 offers of notes wait already"):
        await park_notes(invocation, (note_of("Approve all.", "n3"),), "a test")
    assert not (invocation.folder / "memory/knowledge").exists()


async def test_what_was_written_before_is_not_told_of_an_offer_that_waits(invocation: Invocation) -> None:
    repo, _ = await trusted_repo(invocation)
    session, recorder = await open_notes(repo, SessionQuery(fresh=True, label="notes"))
    try:
        await offer_notes(session, (note_of("Approve all.", "first"),), "a test")
        assert await settle_offer(session) is None
        waiting = session.state.waiting
        assert waiting is not None
        await decide(session, waiting, Verdict.APPROVE, "user", "")
        finished = await settle_offer(session)
        assert finished is not None
        assert finished.observation == "written: memory/knowledge/first.md"
        await offer_notes(session, (note_of("Reject all.", "second"),), "a test")
        assert await settle_offer(session) is None
    finally:
        await close_notes(session, recorder)
