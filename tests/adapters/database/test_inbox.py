"""Decisions in a database that others can write to."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from time import monotonic

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.adapters.database.inbox import KEPT_SECONDS, MOST_BYTES, MOST_ROWS, MOST_TOLD, DatabaseInbox
from agent_workbench.core.errors import DatabaseDownError, DecisionRefused, SigningError
from agent_workbench.core.history.signed_approvals import decision_message, decision_text
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import EXPIRED, InboxDecision
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.signed import WORKER_PURPOSES, SignedPurpose
from tests.contracts.test_inbox import OTHER, SESSION, decision
from tests.fakes.signatures import FakeSignatures
from tests.fakes.stores import MemoryInbox

PEOPLE = {"ada@laptop": tuple(SignedPurpose), "eve@desk": tuple(SignedPurpose), "gpu-1": WORKER_PURPOSES}
HERE = SessionId("20260104T030405-aaa222")


class Place:
    """A machine with its inbox: sessions other than `HERE` are elsewhere."""

    def __init__(self, url: str, own: str) -> None:
        self.signatures = FakeSignatures(own, {name: may for name, may in PEOPLE.items() if name != own})
        if own in PEOPLE:
            self.signatures.allowed[own] = PEOPLE[own]
        self.database, self.local = Database(url), MemoryInbox()
        self.seconds = 0.0
        self.inbox = DatabaseInbox(
            self.database, self.signatures, self.local, self._elsewhere, lambda: monotonic() + self.seconds
        )

    async def _elsewhere(self, session: SessionId) -> bool:
        return session != HERE

    async def forge(
        self, said: InboxDecision, *, by: str = "", as_row: InboxDecision | None = None, text: str = ""
    ) -> None:
        """Insert a row as whoever has the database can: signed by `by`, under the name of another decision."""
        text = text or decision_text(said)
        signature = await FakeSignatures(by).sign(SignedPurpose.DECISION, decision_message(text)) if by else ""
        await self.insert(as_row or said, text, signature)

    async def insert(self, row: InboxDecision, text: str, signature: str) -> None:
        name = row.reference
        async with self.database.connection() as connection:
            await connection.execute(
                "INSERT INTO agent_decisions (session, proposal, digest, text, signature) VALUES (%s, %s, %s, %s, %s)",
                (name.session, name.proposal, name.digest, text, signature),
            )

    async def close(self) -> None:
        await self.inbox.close()
        await self.database.close()


def _in_repository(place: Place, name: str) -> DatabaseInbox:
    """Return an inbox of a machine for the repository of this name."""

    async def elsewhere(session: SessionId) -> bool:
        return True

    async def repository() -> str:
        return name

    return DatabaseInbox(place.database, place.signatures, MemoryInbox(), elsewhere, repository=repository)


@pytest.fixture
async def worker(migrated_url: str) -> AsyncGenerator[Place]:
    place = Place(migrated_url, "gpu-1")
    yield place
    await place.close()


@pytest.fixture
async def ada(migrated_url: str) -> AsyncGenerator[Place]:
    place = Place(migrated_url, "ada@laptop")
    yield place
    await place.close()


class TestForgedRows:
    """What does not count is told, and keeps nothing that counts from counting."""

    @pytest.mark.parametrize(
        ("by", "why"),
        [
            ("", "it is not signed"),
            ("mallory", "its signature is of no allowed signer"),
            ("gpu-1", "its signature is of no allowed signer"),
        ],
    )
    async def test_unsigned_unknown_and_a_worker_s(self, worker: Place, ada: Place, by: str, why: str) -> None:
        await worker.forge(decision(), by=by)
        assert await worker.inbox.pending(SESSION) == ()
        (told,) = worker.inbox.refused(SESSION)
        assert told.startswith("decision 1 in the database, about 'P-14', does not count: ")
        assert told.endswith(why)
        kept = await ada.inbox.put(replace(decision(), verdict=Verdict.REJECT))
        assert await worker.inbox.pending(SESSION) == (kept,)

    async def test_one_for_another_proposal_session_or_content(self, worker: Place) -> None:
        right = decision()
        for row in (decision("P-15"), decision(session=OTHER), decision(digest="1" * 32)):
            await worker.forge(right, by="ada@laptop", as_row=row)
            assert await worker.inbox.pending(row.reference.session) == ()
            told = worker.inbox.refused(row.reference.session)[-1]
            assert told.endswith(f"ada@laptop made it about {SESSION}/P-14, as it was shown then")
            assert right.reference.digest not in told

    async def test_one_for_a_session_of_the_same_id_in_another_repository(self, worker: Place, ada: Place) -> None:
        shops = [_in_repository(ada, "5407"), _in_repository(worker, "5407"), _in_repository(worker, "4b82")]
        kept = await shops[0].put(decision())
        assert await shops[1].pending(SESSION) == (kept,)
        assert await shops[2].pending(SESSION) == ()
        (told,) = shops[2].refused(SESSION)
        assert told.endswith("ada@laptop made it in another repository")
        for each in shops:
            await each.close()

    async def test_an_edited_text_and_a_signature_of_another(self, worker: Place, ada: Place) -> None:
        kept = await ada.inbox.put(decision(verdict=Verdict.REJECT))
        assert kept.signed is not None
        async with worker.database.connection() as connection:
            await connection.execute("UPDATE agent_decisions SET text = replace(text, 'reject', 'approve')")
        assert await worker.inbox.pending(SESSION) == ()
        assert len(worker.inbox.refused(SESSION)) == 1
        await worker.insert(decision("P-15"), decision_text(decision("P-15")), kept.signed.signature)
        worker.inbox._looks.clear()  # without a notification: within ten seconds
        assert await worker.inbox.pending(SESSION) == ()

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{}",
            "null",
            "[" * 5_000,
            '{"reference":{}}',
            "\u202e",
            '{"reference": {"session": "../x", "proposal": "P-1"}}',
        ],
    )
    async def test_a_signed_text_that_is_no_decision(self, worker: Place, text: str) -> None:
        await worker.forge(decision(), by="ada@laptop", text=text or " ")
        assert await worker.inbox.pending(SESSION) == ()
        assert worker.inbox.refused(SESSION)[0].endswith("its text is no decision (ada@laptop)")

    async def test_a_policy_decides_on_its_own_machine_only(self, worker: Place) -> None:
        await worker.forge(replace(decision(verdict=Verdict.REJECT), by=EXPIRED), by="ada@laptop")
        assert await worker.inbox.pending(SESSION) == ()
        assert "only a person decides" in worker.inbox.refused(SESSION)[0]

    async def test_who_signed_is_named_first(self, worker: Place) -> None:
        await worker.forge(replace(decision(), made_by="ada@laptop"), by="eve@desk")
        await worker.forge(replace(decision("P-15"), made_by="\x1b[2Jada"), by="eve@desk")
        (found,) = await worker.inbox.pending(SESSION)
        assert found.made_by == "eve@desk for ada@laptop"
        assert found.via == f"inbox: eve@desk for ada@laptop, signed at {found.made_at}"

    async def test_a_flood_is_bounded_and_told(self, worker: Place) -> None:
        async with worker.database.connection() as connection:
            await connection.execute(
                "INSERT INTO agent_decisions (session, proposal, digest, text, signature) "
                "SELECT %s, 'P-' || n, '', '{}', 'x' FROM generate_series(1, %s) n",
                (SESSION, MOST_ROWS + 1),
            )
        assert await worker.inbox.pending(SESSION) == ()
        told = worker.inbox.refused(SESSION)
        assert len(told) == MOST_TOLD + 2
        assert told[-1] == f"the database has more than {MOST_ROWS:,} decisions about {SESSION}; no more are read"

    async def test_huge_rows_are_not_read_and_hide_no_decision(self, worker: Place, ada: Place) -> None:
        async with worker.database.connection() as connection:
            await connection.execute("ALTER TABLE agent_decisions DROP CONSTRAINT agent_decisions_text_check")
        try:
            await worker.insert(decision(), "x" * (MOST_BYTES + 1), "x")
            kept = await ada.inbox.put(decision())
            assert await worker.inbox.pending(SESSION) == (kept,)
            assert worker.inbox.refused(SESSION) == ()
        finally:
            async with worker.database.connection() as connection:
                await connection.execute(
                    "ALTER TABLE agent_decisions ADD CONSTRAINT agent_decisions_text_check CHECK (text <> '') NOT VALID"
                )

    async def test_notifications_of_anything_leave_nothing_behind(self, worker: Place, ada: Place) -> None:
        waiting = asyncio.create_task(worker.inbox.wait(SESSION))
        await worker.inbox._notifications.wait("", 0, 10)
        async with ada.database.connection() as connection:
            await connection.execute("SELECT pg_notify('agent_decisions', n::text) FROM generate_series(1, 500) n")
        kept = await ada.inbox.put(decision())
        assert await waiting == (kept,)
        assert len(worker.inbox._notifications._counts) == 2

    async def test_the_first_that_counts_is_the_decision(self, worker: Place, ada: Place) -> None:
        await worker.forge(decision(verdict=Verdict.APPROVE), by="mallory")
        first = await ada.inbox.put(decision(verdict=Verdict.REJECT))
        await worker.forge(decision(verdict=Verdict.SKIP), by="eve@desk")
        assert await worker.inbox.pending(SESSION) == (first,)
        with pytest.raises(DecisionRefused, match=r"P-14 was decided already: rejected by ada@laptop"):
            await ada.inbox.put(decision())

    async def test_what_was_recorded_takes_its_rows_along(self, worker: Place, ada: Place) -> None:
        await worker.forge(decision(), by="mallory")
        kept = await ada.inbox.put(decision())
        await worker.inbox.remove(kept)
        assert await worker.inbox.pending(SESSION) == ()
        assert worker.inbox.refused(SESSION) == ()


class TestTwoInboxes:
    """Decisions about sessions of this machine stay on it; both are read."""

    async def test_a_decision_about_a_session_here_stays_here(self, worker: Place) -> None:
        kept = await worker.inbox.put(decision(session=HERE))
        assert kept.signed is None
        assert await worker.local.pending(HERE) == (kept,)
        async with worker.database.connection() as connection:
            assert await (await connection.execute("SELECT count(*) FROM agent_decisions")).fetchone() == (0,)

    async def test_a_key_that_cannot_sign_leaves_nothing(self, ada: Place) -> None:
        ada.signatures.broken = True
        with pytest.raises(SigningError):
            await ada.inbox.put(decision())
        ada.signatures.broken = False
        assert await ada.inbox.pending(SESSION) == ()

    async def test_waiting_sees_either_by_its_notification(self, worker: Place, ada: Place) -> None:
        for place, wanted in ((ada, decision()), (worker, decision(session=HERE))):
            waiting = asyncio.create_task(worker.inbox.wait(wanted.reference.session))
            await worker.inbox._notifications.wait("", 0, 10)
            began = monotonic()
            kept = await place.inbox.put(wanted)
            assert await waiting == (kept,)
            assert monotonic() - began < KEPT_SECONDS, "by the notification, and not when what is kept is too old"

    async def test_repeated_looks_ask_the_database_again_only_after_a_notification(
        self, worker: Place, ada: Place
    ) -> None:
        await worker.inbox.pending(SESSION)
        await worker.inbox.pending(SESSION)
        await worker.inbox._notifications.wait("", 0, 10)
        known = worker.inbox._looks
        await worker.inbox.pending(SESSION)
        look = known[SESSION]
        for _ in range(20):
            assert await worker.inbox.pending(SESSION) == ()
        assert known[SESSION] is look
        kept = await ada.inbox.put(decision())
        await worker.inbox._notifications.wait(SESSION, look.news, 10)
        assert await worker.inbox.pending(SESSION) == (kept,)


async def test_many_sessions_without_decisions_cost_one_question(
    worker: Place, ada: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [SessionId(f"20260102T030405-{letters}22") for letters in ("aaaa", "aaab", "aaac", "aaad")]
    for _ in range(2):
        for session in sessions:
            await worker.inbox.pending(session)
    await worker.inbox._notifications.wait("", 0, 10)
    for session in sessions:
        await worker.inbox.pending(session)
    asked = []
    connection = worker.database.connection

    def counted() -> AbstractAsyncContextManager[Connection]:
        asked.append(1)
        return connection()

    monkeypatch.setattr(worker.database, "connection", counted)
    worker.seconds += 11
    for session in sessions:
        assert await worker.inbox.pending(session) == ()
    assert len(asked) == 1
    kept = await ada.inbox.put(decision(session=sessions[2]))  # after the question
    await worker.inbox._notifications.wait(sessions[2], 1, 10)
    assert await worker.inbox.pending(sessions[2]) == (kept,)
    await worker.forge(decision(session=sessions[3]), by="eve@desk")  # without a notification
    worker.seconds += 11
    assert [len(await worker.inbox.pending(each)) for each in sessions] == [0, 0, 1, 1]


async def test_a_recorded_decision_is_removed_when_the_database_is_back(
    worker: Place, ada: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ada.inbox.put(decision())
    (kept,) = await worker.inbox.pending(SESSION)
    with monkeypatch.context() as cut:
        cut.setattr(worker.inbox, "_database", Database("postgresql://localhost:1/none"))
        await worker.inbox.remove(kept)
        assert await worker.inbox.pending(SESSION) == ()
        assert "are not seen" in worker.inbox.refused(SESSION)[0]
    worker.seconds += 60
    assert await worker.inbox.wait(SESSION) == (kept,)
    await worker.inbox.remove(kept)
    assert await worker.inbox.pending(SESSION) == ()
    assert worker.inbox.refused(SESSION) == ()


async def test_without_the_database_this_machine_s_decisions_count_and_it_is_told() -> None:
    place = Place("postgresql://u:secret@localhost:1/none", "gpu-1")
    kept = await place.inbox.put(decision(session=HERE))
    assert await place.inbox.pending(HERE) == (kept,)
    assert await asyncio.wait_for(place.inbox.wait(HERE), 5) == (kept,)
    (told,) = place.inbox.refused(HERE)
    assert told.startswith(
        "decisions from other machines are not seen: the database at localhost:1/none does not answer"
    )
    assert "secret" not in told
    with pytest.raises(DatabaseDownError):
        await place.inbox.put(decision())
    await place.close()
