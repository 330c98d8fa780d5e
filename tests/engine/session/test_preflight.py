import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from agent_workbench.api.sessions.session_handle import EventFeed, LocalSession, UpdateFeed
from agent_workbench.core.errors import ConfigError, RepoError, StorageError, WorkbenchError
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import AnswerQuestion, ApproveProposal, Intent, Leave, StartTask
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.local_models import FoundModels, FoundServer, ListedModel, ModelChoice
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.ports.repo_files import Setup, Trust
from agent_workbench.core.repo_setup import SetupProposal
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.engine.runtime.intent_queue import IntentQueue
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.session.preflight import NEW_TO_GIT, Preflight
from tests.engine.front import Front


@dataclass
class Repo:
    """A setup, a trust and the find_repo between; `met` is what happened, in order.

    The session takes the `expected` number of intents and ends.
    """

    files: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    models: FoundModels | None = None
    named_url: str = ""
    failing: WorkbenchError | None = None
    met: list[str] = field(default_factory=list)
    expected: int = 0
    intents: list[Intent] = field(default_factory=list)
    taken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def setup(self) -> Setup:
        return self

    async def proposal(self) -> SetupProposal:
        return SetupProposal(self.files, models=self.models, own_file="~/settings.yml", named_url=self.named_url)

    async def write(self, proposal: SetupProposal, choice: ModelChoice | None) -> tuple[str, ...]:
        self.met.append(f"written with {choice.url}" if choice is not None else "written")
        return proposal.files

    async def trust(self) -> Trust:
        return self

    async def question(self) -> tuple[str, ...]:
        return self.lines

    async def accept(self) -> None:
        self.met.append("accepted")

    async def open(self, publisher: UpdatePublisher, intents: IntentQueue, *, trusted: bool) -> "Repo":
        if self.failing:
            raise self.failing
        self.met.append("opened trusted" if trusted else "opened untrusted")
        self.publisher, self.queue = publisher, intents
        return self

    async def run(self) -> SessionEnd:
        self.met.append("lived")
        for _ in range(self.expected):
            submitted = await self.queue.get()
            self.intents.append(submitted.intent)
            submitted.answer(Accepted())
            self.taken.set()
        self.queue.close()
        self.publisher.end("bye")
        return SessionEnd()


def session_in(find_repo: Callable[[], Awaitable[Repo]]) -> LocalSession:
    updates = UpdateFeed()
    return LocalSession(Preflight(find_repo, UpdatePublisher(updates.publish)), updates, EventFeed())


@asynccontextmanager
async def preflight_in(find_repo: Callable[[], Awaitable[Repo]]) -> AsyncIterator[tuple[LocalSession, Front]]:
    session = session_in(find_repo)
    life = asyncio.create_task(session.run())
    front = Front(session)
    yield session, front
    async with asyncio.timeout(20):
        await life


def at(repo: Repo) -> Callable[[], Awaitable[Repo]]:
    async def find_repo() -> Repo:
        return repo

    return find_repo


async def asked(front: Front, key: str) -> SessionUpdate:
    return await front.until(lambda it: it.live.question and it.live.question.key == key, f"the question {key}")


async def ended(front: Front) -> SessionUpdate:
    return await front.until(lambda it: it.ended, "the end")


async def test_nothing_to_ask() -> None:
    repo = Repo()
    async with preflight_in(at(repo)) as (session, front):
        assert (await ended(front)).farewell == "bye"
    assert repo.met == ["opened trusted", "lived"]
    assert session.failure is None


async def test_setting_up_and_trusting() -> None:
    repo = Repo(files=(".agent.yml",), lines=("test_command: pytest",))
    async with preflight_in(at(repo)) as (_, front):
        question = (await asked(front, "init")).live.question
        assert question is not None
        assert "writes  .agent.yml; changes no file" in question.lines
        await front.submit(AnswerQuestion("init", yes=True))
        question = (await asked(front, "trust")).live.question
        assert question is not None
        assert question.lines == ("test_command: pytest",)
        await front.submit(AnswerQuestion("trust", yes=True))
        assert [each.text for each in (await ended(front)).live.notices] == [NEW_TO_GIT]
    assert repo.met == ["written", "accepted", "opened trusted", "lived"]


async def test_not_setting_up_writes_nothing() -> None:
    repo = Repo(files=(".agent.yml",))
    async with preflight_in(at(repo)) as (_, front):
        await asked(front, "init")
        await front.submit(AnswerQuestion("init", yes=False))
        assert "nothing was written" in (await ended(front)).farewell
    assert repo.met == []


RUNNING = FoundModels((FoundServer("Ollama", "http://127.0.0.1:1", (ListedModel("coder:7b"),)),))


async def test_a_found_model_is_offered_with_the_files() -> None:
    repo = Repo(files=(".agent.yml",), models=RUNNING)
    async with preflight_in(at(repo)) as (_, front):
        question = (await asked(front, "init")).live.question
        assert question is not None
        assert question.lines[0] == "model   coder:7b, served by Ollama at http://127.0.0.1:1"
        await front.submit(AnswerQuestion("init", yes=True))
        await ended(front)
    assert repo.met == ["written with http://127.0.0.1:1", "opened trusted", "lived"]


@pytest.mark.parametrize(("yes", "met"), [(True, ["written with http://127.0.0.1:1"]), (False, [])])
async def test_a_repo_that_is_set_up_without_a_model_is_offered_one(yes: bool, met: list[str]) -> None:
    repo = Repo(models=RUNNING)
    async with preflight_in(at(repo)) as (_, front):
        await asked(front, "model")
        await front.submit(AnswerQuestion("model", yes=yes))
        await ended(front)
    assert repo.met == [*met, "opened trusted", "lived"]


@pytest.mark.parametrize(("models", "told"), [(RUNNING, ["agent init --url http://127.0.0.1:1"]), (FoundModels(), [])])
async def test_a_server_that_was_named_for_one_start_can_be_kept(models: FoundModels, told: list[str]) -> None:
    repo = Repo(models=models, named_url="http://127.0.0.1:1")
    async with preflight_in(at(repo)) as (_, front):
        notices = (await ended(front)).live.notices
    assert [each.text.partition("repos: ")[2] for each in notices] == told
    assert repo.met == ["opened trusted", "lived"], "who named it is not asked"


async def test_without_any_model_the_question_says_what_to_do() -> None:
    repo = Repo(files=(".agent.yml",), models=FoundModels())
    async with preflight_in(at(repo)) as (_, front):
        question = (await asked(front, "init")).live.question
        assert question is not None
        assert "agent model pull" in "\n".join(question.lines)
        await front.submit(AnswerQuestion("init", yes=True))
        await ended(front)
    repo = Repo(models=FoundModels())
    async with preflight_in(at(repo)) as (_, front):
        notices = (await ended(front)).live.notices
    assert "agent model pull" in notices[0].text
    assert repo.met == ["opened trusted", "lived"], "nothing can be asked, so nothing is"


async def test_without_trust_nothing_is_obeyed() -> None:
    repo = Repo(lines=("test_command: pytest",))
    async with preflight_in(at(repo)) as (_, front):
        await asked(front, "trust")
        await front.submit(AnswerQuestion("trust", yes=False))
        await ended(front)
    assert repo.met == ["opened untrusted", "lived"]


@pytest.mark.parametrize(
    ("repo", "key"), [(Repo(files=("x",)), "init"), (Repo(lines=("x",)), "trust"), (Repo(models=RUNNING), "model")]
)
async def test_leaving_at_a_question(repo: Repo, key: str) -> None:
    async with preflight_in(at(repo)) as (session, front):
        await asked(front, key)
        await front.submit(Leave())
        await ended(front)
    assert repo.met == []
    assert session.failure is None


async def test_an_answer_counts_for_its_own_question() -> None:
    repo = Repo(files=("x",), lines=("y",))
    async with preflight_in(at(repo)) as (_, front):
        await asked(front, "init")
        await front.submit(AnswerQuestion("trust", yes=True))
        await front.submit(AnswerQuestion("init", yes=True))
        await front.submit(AnswerQuestion("init", yes=True))
        await asked(front, "trust")
        assert repo.met == ["written"]
        await front.submit(AnswerQuestion("trust", yes=False))
        await ended(front)
    assert repo.met == ["written", "opened untrusted", "lived"]


@pytest.mark.parametrize(
    "error", [RepoError("not a repo", advice="git init"), ConfigError("bad key"), StorageError("full")]
)
async def test_what_keeps_it_from_opening_is_said_and_kept(error: WorkbenchError) -> None:
    async def find_repo() -> Repo:
        raise error

    async with preflight_in(find_repo) as (session, front):
        farewell = (await ended(front)).farewell
    assert session.failure is error
    assert str(error) in farewell
    assert error.advice in farewell


async def test_a_session_that_cannot_be_opened_is_a_failure() -> None:
    repo = Repo(failing=ConfigError("the journal is locked"))
    async with preflight_in(at(repo)) as (session, front):
        assert "locked" in (await ended(front)).farewell
    assert session.failure is repo.failing


async def test_an_error_nobody_expected_still_ends_the_screen() -> None:
    async def find_repo() -> Repo:
        raise LookupError("a bug")

    session = session_in(find_repo)
    life = asyncio.create_task(session.run())
    front = Front(session)
    await ended(front)
    with pytest.raises(LookupError):
        await life


class OpeningRepo(Repo):
    """Waits to be opened, or fails then."""

    def __init__(self, failing: WorkbenchError | None = None) -> None:
        super().__init__(failing=failing, expected=1)
        self.opening, self.go_on = asyncio.Event(), asyncio.Event()

    async def open(self, publisher: UpdatePublisher, intents: IntentQueue, *, trusted: bool) -> "Repo":
        self.opening.set()
        await self.go_on.wait()
        return await super().open(publisher, intents, trusted=trusted)


@pytest.mark.parametrize("failing", [None, StorageError("full")])
async def test_an_intent_during_the_opening_waits_for_the_session(failing: WorkbenchError | None) -> None:
    repo = OpeningRepo(failing)
    async with preflight_in(at(repo)) as (session, _):
        await repo.opening.wait()
        submitted = session.submit(StartTask())
        repo.go_on.set()
        assert await submitted == (Refused("the session has ended") if failing else Accepted())
    assert repo.intents == ([] if failing else [StartTask()])


async def test_intents_go_on_to_the_session_once_it_is_there() -> None:
    repo = Repo(expected=2)
    open_now = asyncio.Event()

    async def find_repo() -> Repo:
        await open_now.wait()
        return repo

    session = session_in(find_repo)
    early = await session.submit(ApproveProposal(ProposalId("P-1"), "typed ahead"))
    assert early == Refused("the session is not open yet")
    await session.submit(Leave("typed ahead"))
    life = asyncio.create_task(session.run())
    open_now.set()
    await repo.taken.wait()
    assert await session.submit(StartTask()) == Accepted()
    await life
    assert repo.intents == [Leave("typed ahead"), StartTask()]
    assert await session.submit(StartTask()) == Refused("the session has ended")
