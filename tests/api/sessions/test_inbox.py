"""The inbox of a repository: what waits is listed, and a decision counts for exactly what was shown."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.journal.session_store import LocalSessionStore
from agent_workbench.core import events as e
from agent_workbench.core.errors import DecisionRefused, TrustError, UsageError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.inbox import EXPIRED, InboxChoice, InboxFilter, Reference, reference_to, time_after
from agent_workbench.core.patch.selection import HunkChoice, partial_diff, selectable_parts
from agent_workbench.core.patch.values import LeftOut, patch_hash
from agent_workbench.core.ports.stores import HeldSession, Inbox
from agent_workbench.core.proposal_kinds import (
    CheckProposal,
    CommandProposal,
    DiffProposal,
    ExternalProposal,
    SummaryProposal,
)
from agent_workbench.core.proposals import COMPACT, MAX_DIFF_LINES, Proposal, Verdict
from agent_workbench.core.proposed_action import Risk
from agent_workbench.core.settings import Permission
from agent_workbench.core.settings.worker import ParkedEnd, WorkerSettings
from agent_workbench.subjects.inbox.adapter import LocalInbox
from agent_workbench.subjects.inbox.calls import RepoInbox
from tests.adapters.journal.journals import NO_SECRETS, STORY, started, time_of, write_quickly
from tests.contracts.test_session_store import CountedIds
from tests.fakes import runs
from tests.fakes.ports import TickingClock
from tests.fakes.stores import MemoryInbox

DIFF = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-one
+two
@@ -9 +9 @@
-nine
+ten
diff --git a/.github/workflows/ci.yml b/.github/workflows/ci.yml
--- a/.github/workflows/ci.yml
+++ b/.github/workflows/ci.yml
@@ -1 +1 @@
-on: push
+on: pull_request
"""
WORKFLOW = ".github/workflows/ci.yml"
COMMAND = CommandProposal(ProposalId("P-3"), "run_command", "make all", 1)
CHANGE = DiffProposal(
    ProposalId("P-3"), "write_diff", DIFF, 1, diff=DIFF, paths=("a.py", WORKFLOW), special=(WORKFLOW,)
)
APPROVE, REJECT = InboxChoice(Verdict.APPROVE), InboxChoice(Verdict.REJECT, "no")


class Repo:
    """A repository's sessions, and its inbox as a person's shell has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repo"
        self.store = LocalSessionStore(self.folder, folder / "registry", CountedIds(), lambda: NO_SECRETS)
        self.decisions = MemoryInbox()
        self.written: Counter[SessionId] = Counter()
        self.inbox = self.of("ada@laptop")

    def of(self, person: str, decisions: Inbox | None = None) -> RepoInbox:
        return RepoInbox(self.store, decisions or self.decisions, TickingClock(), lambda: person)

    async def held(self, *behind: e.Event, proposal: Proposal = COMMAND) -> HeldSession:
        """Return a session in which a proposal waits, or what came `behind` it, open in another process."""
        opened = await self.store.open(SessionQuery(fresh=True))
        for event in (started(opened.id), *STORY[1:3], e.ActionProposed(proposal), *behind):
            await self.append(opened, event)
        return opened

    async def parked(self, *behind: e.Event, proposal: Proposal = COMMAND) -> SessionId:
        """Return a session that was left with a proposal waiting."""
        opened = await self.held(*behind, proposal=proposal)
        await opened.journal.close()
        return opened.id

    async def append(self, opened: HeldSession, event: e.Event) -> None:
        seq = self.written[opened.id]
        await opened.journal.append(seq, time_of(seq), event)
        self.written[opened.id] += 1

    async def reference(self) -> Reference:
        (item,) = await self.inbox.items()
        assert item.reference is not None
        return item.reference


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


async def test_what_waits_is_listed_oldest_first(repo: Repo) -> None:
    first, second = await repo.parked(), await repo.parked(proposal=CHANGE)
    await repo.parked(e.ActionDecided(COMMAND.id, Verdict.SKIP, "user"))
    await repo.store.discard(await repo.store.open(SessionQuery(fresh=True)))
    items = await repo.inbox.items()
    assert [(item.session, item.proposal, item.task, item.holder) for item in items] == [
        (first, COMMAND, TaskId("T-1"), ""),
        (second, CHANGE, TaskId("T-1"), ""),
    ]
    assert [item.since for item in items] == [time_of(3), time_of(3)]
    assert [item.session for item in await repo.inbox.items(InboxFilter(kind=Permission.DIFF))] == [second]
    assert [item.session for item in await repo.inbox.items(InboxFilter(session=first))] == [first]
    assert await repo.inbox.items(InboxFilter(task="T-2")) == ()


async def test_what_does_not_wait_is_not_listed(repo: Repo) -> None:
    await repo.parked(e.AbortAsked("given up"))
    await repo.parked(e.UndoAsked(ProposalId("P-2")))
    assert await repo.inbox.items() == ()


async def test_a_session_from_elsewhere_has_nothing_to_decide(repo: Repo) -> None:
    brought = SessionId("20260102T030405-zzzzzz")
    story = (started(brought), *STORY[1:3], e.ActionProposed(COMMAND))
    await asyncio.to_thread(write_quickly, repo.folder / brought, story)
    assert await repo.inbox.items() == ()
    forged = reference_to(brought, COMMAND)
    assert forged is not None
    with pytest.raises(TrustError, match="was not begun here"):
        await repo.inbox.decide(forged, APPROVE)
    assert await repo.decisions.pending(brought) == ()


async def test_a_damaged_session_hides_no_other_and_cannot_be_decided(repo: Repo) -> None:
    await repo.parked()
    reference = await repo.reference()
    whole = await repo.parked()
    journal = repo.folder / reference.session / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"make all", b"make any"))
    assert [item.session for item in await repo.inbox.items()] == [whole]


@pytest.mark.parametrize("choice", [APPROVE, REJECT, InboxChoice(Verdict.SKIP)], ids=lambda choice: choice.verdict)
async def test_a_decision_is_kept_for_whoever_opens_the_session(repo: Repo, choice: InboxChoice) -> None:
    session = await repo.parked()
    receipt = await repo.inbox.decide(await repo.reference(), choice)
    assert (receipt.recorded, receipt.holder) == (False, "")
    (kept,) = await repo.decisions.pending(session)
    assert kept == receipt.decision
    assert (kept.verdict, kept.reason, kept.made_by) == (choice.verdict, choice.reason, "ada@laptop")
    (item,) = await repo.inbox.items()
    assert item.decided == kept
    with pytest.raises(DecisionRefused, match="was decided already"):
        await repo.of("bob@laptop").decide(kept.reference, APPROVE)
    assert await repo.decisions.pending(session) == (kept,)


STALE: dict[str, tuple[e.Event, str]] = {
    "decided": (e.ActionDecided(COMMAND.id, Verdict.REJECT, "user"), "was decided already: rejected by user at 2026"),
    "changed": (e.ProposalReplaced(replace(COMMAND, text="make any"), "edited", e.Author.USER), "not what was shown"),
    "aborted": (e.AbortAsked("given up"), "is not waiting any more"),
    "another": (e.ActionProposed(replace(COMMAND, id=ProposalId("P-9"))), "is not waiting any more"),
}


@pytest.mark.parametrize("what", STALE)
async def test_what_is_stale_is_refused_and_kept_nowhere(repo: Repo, what: str) -> None:
    session = await repo.parked()
    reference = await repo.reference()
    event, why = STALE[what]
    opened = await repo.store.open(SessionQuery(session))
    await repo.append(opened, event)
    await opened.journal.close()
    with pytest.raises(DecisionRefused, match=why):
        await repo.inbox.decide(reference, APPROVE)
    assert await repo.decisions.pending(session) == ()


async def test_a_made_up_reference_is_refused(repo: Repo) -> None:
    session = await repo.parked()
    reference = await repo.reference()
    for wrong, why in (
        (replace(reference, digest="0" * 32), "not what was shown"),
        (replace(reference, proposal=ProposalId("P-99")), "has no proposal P-99"),
    ):
        with pytest.raises(DecisionRefused, match=why):
            await repo.inbox.decide(wrong, APPROVE)
    with pytest.raises(UsageError, match="there is no session"):
        await repo.inbox.decide(replace(reference, session=SessionId("20260102T030405-zzzzzz")), APPROVE)
    assert await repo.decisions.pending(session) == ()


CHANGES: dict[str, Callable[[Proposal], Proposal]] = {
    "text": lambda it: replace(it, text="make any"),
    "diff": lambda it: replace(it, diff=DIFF),
    "kind": lambda it: CheckProposal(it.id, it.tool, it.text, it.step),
    "tool": lambda it: replace(it, tool="other"),
    "commands": lambda it: replace(it, commands=("true",)),
    "paths": lambda it: replace(it, paths=("a",)),
    "special": lambda it: replace(it, special=("a",)),
    "id": lambda it: replace(it, id=ProposalId("P-4")),
}


@pytest.mark.parametrize("part", CHANGES)
def test_the_digest_covers_all_that_is_shown(part: str) -> None:
    session = SessionId("20260102T030405-abc234")
    assert reference_to(session, COMMAND) != reference_to(session, CHANGES[part](COMMAND))
    assert reference_to(session, COMMAND) == reference_to(session, replace(COMMAND))
    assert reference_to(session, COMMAND) != reference_to(SessionId("20260102T030405-abc235"), COMMAND)


async def test_what_is_too_long_to_be_shown_has_no_reference(repo: Repo) -> None:
    lines = "+\n" * (MAX_DIFF_LINES + 1)
    long = replace(CHANGE, diff=f"--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,{MAX_DIFF_LINES + 1} @@\n{lines}")
    await repo.parked(proposal=long)
    (item,) = await repo.inbox.items()
    assert item.reference is None


async def test_special_files_take_a_second_word(repo: Repo) -> None:
    await repo.parked(proposal=CHANGE)
    reference = await repo.reference()
    with pytest.raises(UsageError, match=WORKFLOW) as refused:
        await repo.inbox.decide(reference, APPROVE)
    assert "--special" in refused.value.advice
    with pytest.raises(UsageError, match=WORKFLOW):
        await repo.inbox.decide(reference, InboxChoice(Verdict.APPROVE, hunks=(3,)))
    receipt = await repo.inbox.decide(reference, InboxChoice(Verdict.APPROVE, special=True))
    assert (receipt.decision.left, receipt.decision.result_sha) == ((), "")


@pytest.mark.parametrize(("reason", "told"), [("x" * 100_000, "has 100,000 characters"), ("\udcff", "not valid UTF-8")])
async def test_a_reason_that_cannot_be_kept_is_refused(repo: Repo, reason: str, told: str) -> None:
    session = await repo.parked()
    reference = await repo.reference()
    for local in (False, True):
        repo.inbox = repo.of("ada@laptop", LocalInbox(repo.folder / "inbox") if local else None)
        with pytest.raises(UsageError, match=told):
            await repo.inbox.decide(reference, InboxChoice(Verdict.REJECT, reason))
    assert await repo.decisions.pending(session) == ()


async def test_a_part_of_a_diff_of_many_hunks_can_be_approved(repo: Repo) -> None:
    hunks = "".join(f"@@ -{at} +{at} @@\n-a{at}\n+b{at}\n" for at in range(1, 15_001, 10))
    diff = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n{hunks}"
    session = await repo.parked(proposal=replace(CHANGE, text=diff, diff=diff, paths=("a.py",), special=()))
    local = LocalInbox(repo.folder / "inbox")
    await repo.of("ada@laptop", local).decide(await repo.reference(), InboxChoice(Verdict.APPROVE, hunks=(1,)))
    (kept,) = await local.pending(session)
    assert len(kept.left) == 1_499


async def test_a_part_of_a_diff_is_bound_to_its_result(repo: Repo) -> None:
    await repo.parked(proposal=CHANGE)
    receipt = await repo.inbox.decide(await repo.reference(), InboxChoice(Verdict.APPROVE, "later", hunks=(1,)))
    assert len(receipt.decision.left) == 2
    assert receipt.decision.reason == "later"
    assert receipt.decision.result_sha == patch_hash(DIFF[: DIFF.index("@@ -9")])


@pytest.mark.parametrize(
    ("choice", "proposal", "why"),
    [
        (InboxChoice(Verdict.SKIP), CHANGE, "cannot be skipped"),
        (InboxChoice(Verdict.ABORT), COMMAND, "cannot be aborted"),
        (InboxChoice(Verdict.APPROVE, hunks=(1,)), COMMAND, "has no hunks to choose from"),
        (InboxChoice(Verdict.REJECT, hunks=(1,)), CHANGE, "--hunks goes with approve"),
        (InboxChoice(Verdict.APPROVE, hunks=(1, 4)), CHANGE, "has no hunk 4"),
        (InboxChoice(Verdict.APPROVE, hunks=(0,)), CHANGE, "has no hunk 0"),
    ],
    ids=lambda value: value.verdict if isinstance(value, InboxChoice) else "",
)
async def test_a_choice_that_does_not_fit_is_refused(
    repo: Repo, choice: InboxChoice, proposal: Proposal, why: str
) -> None:
    session = await repo.parked(proposal=proposal)
    with pytest.raises(UsageError, match=why):
        await repo.inbox.decide(await repo.reference(), choice)
    assert await repo.decisions.pending(session) == ()


async def test_a_command_decides_nothing(repo: Repo) -> None:
    session = await repo.parked()

    def nobody() -> str:
        raise TrustError("a command that the agent runs cannot decide")

    inbox = RepoInbox(repo.store, repo.decisions, TickingClock(), nobody)
    with pytest.raises(TrustError):
        await inbox.decide(await repo.reference(), APPROVE)
    assert await repo.decisions.pending(session) == ()


async def test_whoever_has_the_session_open_records_it(repo: Repo) -> None:
    opened = await repo.held()
    deciding = asyncio.create_task(repo.inbox.decide(await repo.reference(), APPROVE))
    (decision,) = await repo.decisions.wait(opened.id)
    await repo.append(opened, e.ActionDecided(COMMAND.id, Verdict.APPROVE, "user", via=decision.via))
    await repo.decisions.remove(decision)
    receipt = await deciding
    assert receipt.recorded
    assert receipt.holder
    await opened.journal.close()


async def test_a_decision_that_came_too_late_is_told_so(repo: Repo) -> None:
    opened = await repo.held()
    deciding = asyncio.create_task(repo.inbox.decide(await repo.reference(), APPROVE))
    (decision,) = await repo.decisions.wait(opened.id)
    await repo.append(opened, e.ActionDecided(COMMAND.id, Verdict.REJECT, "user"))
    await repo.decisions.remove(decision)
    with pytest.raises(DecisionRefused, match="was decided already: rejected by user"):
        await deciding
    assert await repo.decisions.pending(opened.id) == ()
    await opened.journal.close()


async def test_a_decision_that_nobody_took_up_in_time_is_withdrawn_if_it_is_stale(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.subjects.inbox.calls.TAKE_UP_SECONDS", 0.05)
    opened = await repo.held()
    receipt = await repo.inbox.decide(await repo.reference(), APPROVE)
    assert (receipt.recorded, bool(receipt.holder)) == (False, True)
    await repo.decisions.remove(receipt.decision)
    deciding = asyncio.create_task(repo.inbox.decide(receipt.decision.reference, REJECT))
    await repo.decisions.wait(opened.id)
    await repo.append(opened, e.AbortAsked("given up"))
    with pytest.raises(DecisionRefused, match="is not waiting any more"):
        await deciding
    assert await repo.decisions.pending(opened.id) == ()
    await opened.journal.close()


@pytest.mark.parametrize(
    "name", ["T-1", "20260102", "abc", "abc234/P-3", "20260102T030400-abc234/P-3", "abc234/P-3@x", "abc/"]
)
async def test_an_item_is_found_by_its_names(repo: Repo, name: str) -> None:
    await repo.parked()
    assert (await repo.inbox.find(name)).item.proposal == COMMAND


@pytest.mark.parametrize("name", ["", "/P-3", "T-2", "xyz", "abc234/P-4"])
async def test_what_has_another_name_is_not_found(repo: Repo, name: str) -> None:
    await repo.parked()
    with pytest.raises(UsageError, match="no pending proposal is called"):
        await repo.inbox.find(name)


async def test_a_name_of_two_is_refused(repo: Repo) -> None:
    await repo.parked()
    await repo.parked()
    with pytest.raises(UsageError, match="2 pending proposals"):
        await repo.inbox.find("T-1")


async def test_the_highest_risk_is_first_then_the_longest_wait(repo: Repo) -> None:
    script = ExternalProposal(COMMAND.id, COMMAND.tool, COMMAND.text, 1)
    low, high = await repo.parked(proposal=replace(CHANGE, special=())), await repo.parked(proposal=CHANGE)
    lower, higher = await repo.parked(proposal=replace(CHANGE, special=())), await repo.parked(proposal=script)
    items = await repo.inbox.items()
    assert [item.session for item in items] == [high, higher, low, lower]
    assert [item.risk for item in items] == [Risk.HIGH, Risk.HIGH, Risk.LOW, Risk.LOW]


async def test_the_part_that_a_screen_showed_is_approved_with_its_lines_and_reasons(repo: Repo) -> None:
    session = await repo.parked(proposal=CHANGE)
    first, *_, last = selectable_parts(CHANGE.patch)
    left = (LeftOut(first.id, reason="not yet"), LeftOut(last.id, (1,), "keep it"))
    part = partial_diff(CHANGE.patch, HunkChoice(left))
    choice = InboxChoice(Verdict.APPROVE, left=left, result_sha=part.result_sha, special=True)
    for wrong in (replace(choice, result_sha="0" * 64), replace(choice, left=(LeftOut("0" * 64),))):
        with pytest.raises(DecisionRefused, match="changed after it was shown"):
            await repo.inbox.decide(await repo.reference(), wrong)
    nothing = tuple(LeftOut(each.id) for each in selectable_parts(CHANGE.patch))
    empty = partial_diff(CHANGE.patch, HunkChoice(nothing))
    with pytest.raises(UsageError, match="nothing would be taken"):
        await repo.inbox.decide(await repo.reference(), replace(choice, left=nothing, result_sha=empty.result_sha))
    receipt = await repo.inbox.decide(await repo.reference(), choice)
    assert (receipt.decision.left, receipt.decision.result_sha) == (left, part.result_sha)
    assert await repo.decisions.pending(session) == (receipt.decision,)


REJECTS = WorkerSettings("3d", ParkedEnd.REJECT)


class FixedClock(TickingClock):
    """A clock that stands."""

    def __init__(self, now: str) -> None:
        super().__init__()
        self._now = now

    def now(self) -> str:
        return self._now


CONFIGURED = next(each for each in runs.opening() if isinstance(each, e.SessionConfigured))


class TestExpiry:
    """`worker.park_for`: what nobody decided in time is rejected, and never approved."""

    def inbox(self, repo: Repo, now: str, worker: WorkerSettings = REJECTS) -> RepoInbox:
        return RepoInbox(repo.store, repo.decisions, FixedClock(now), lambda: "ada@laptop", worker)

    async def unattended(self, repo: Repo, proposal: Proposal = COMMAND) -> SessionId:
        """Return a session that an unattended run parked."""
        configured = replace(CONFIGURED, headless=True)
        opened = await repo.store.open(SessionQuery(fresh=True))
        for event in (started(opened.id), configured, *STORY[1:3], e.ActionProposed(proposal)):
            await repo.append(opened, event)
        await opened.journal.close()
        return opened.id

    async def test_what_expires_tells_when_and_is_rejected_after_that_once(self, repo: Repo) -> None:
        session = await self.unattended(repo)
        (item,) = await self.inbox(repo, time_of(9)).items()
        assert item.expires == time_after(item.since, 3 * 86_400)
        before, after = time_after(item.expires, -1), time_after(item.expires, 1)
        assert await self.inbox(repo, before).reject_expired() == ()
        (rejected,) = await self.inbox(repo, after).reject_expired()
        (kept,) = await repo.decisions.pending(session)
        assert rejected.decided == kept
        assert (kept.verdict, kept.by, kept.reason) == (Verdict.REJECT, EXPIRED, "nobody decided within 3d")
        assert await self.inbox(repo, after).reject_expired() == ()

    async def test_a_person_who_was_first_is_not_overruled(self, repo: Repo) -> None:
        session = await self.unattended(repo)
        await repo.inbox.decide(await repo.reference(), APPROVE)
        assert await self.inbox(repo, "2027-01-01T00:00:00.000000Z").reject_expired() == ()
        (kept,) = await repo.decisions.pending(session)
        assert (kept.verdict, kept.by) == (Verdict.APPROVE, "user")

    @pytest.mark.parametrize(
        "worker",
        [
            WorkerSettings(),
            WorkerSettings("3d"),
            WorkerSettings("3d", ParkedEnd.KEEP),
            WorkerSettings("", ParkedEnd.REJECT),
        ],
    )
    async def test_nothing_expires_unless_it_is_set(self, repo: Repo, worker: WorkerSettings) -> None:
        await self.unattended(repo)
        inbox = self.inbox(repo, "2027-01-01T00:00:00.000000Z", worker)
        assert await inbox.reject_expired() == ()
        assert [item.expires for item in await inbox.items()] == [""]

    async def test_what_a_person_left_at_a_screen_never_expires(self, repo: Repo) -> None:
        await repo.parked()
        assert await self.inbox(repo, "2027-01-01T00:00:00.000000Z").reject_expired() == ()

    async def test_a_summary_that_the_task_needs_never_expires(self, repo: Repo) -> None:
        await self.unattended(repo, SummaryProposal(COMMAND.id, COMPACT, COMMAND.text, 1, fallback=True))
        assert await self.inbox(repo, "2027-01-01T00:00:00.000000Z").reject_expired() == ()

    async def test_a_clock_that_went_back_rejects_nothing(self, repo: Repo) -> None:
        await self.unattended(repo)
        assert await self.inbox(repo, "1999-01-01T00:00:00.000000Z").reject_expired() == ()
