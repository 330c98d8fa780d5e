import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from agent_workbench.core.errors import ConfigError, RepoError, StorageError, WorkbenchError
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import AnswerQuestion, ApproveProposal, Intent, Leave, StartTask
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports.services import Setup, Trust
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.engine.session.preflight import Preflight
from tests.engine.front import Front


@dataclass
class Repo:
    """A setup, a trust and the doors between; `met` is what happened, in order."""

    files: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    failing: WorkbenchError | None = None
    met: list[str] = field(default_factory=list)
    intents: list[Intent] = field(default_factory=list)

    @property
    def setup(self) -> Setup:
        return self

    async def missing(self) -> tuple[str, ...]:
        return self.files

    async def write(self) -> tuple[str, ...]:
        self.met.append("written")
        return self.files

    async def trust(self) -> Trust:
        return self

    async def question(self) -> tuple[str, ...]:
        return self.lines

    async def accept(self) -> None:
        self.met.append("accepted")

    async def open(self, board: UpdatePublisher, *, trusted: bool) -> "Repo":
        if self.failing:
            raise self.failing
        self.met.append("opened trusted" if trusted else "opened untrusted")
        self.board = board
        return self

    async def submit(self, intent: Intent) -> None:
        self.intents.append(intent)

    async def run(self) -> None:
        self.met.append("lived")
        self.board.end("bye")


@asynccontextmanager
async def threshold_of(doors: Callable[[], Awaitable[Repo]]) -> AsyncIterator[tuple[Preflight, Front]]:
    threshold = Preflight(doors)
    life = asyncio.create_task(threshold.run())
    front = Front(threshold)
    yield threshold, front
    async with asyncio.timeout(20):
        await life


def at(repo: Repo) -> Callable[[], Awaitable[Repo]]:
    async def doors() -> Repo:
        return repo

    return doors


async def asked(front: Front, key: str) -> SessionUpdate:
    return await front.until(lambda it: it.live.question and it.live.question.key == key, f"the question {key}")


async def ended(front: Front) -> SessionUpdate:
    return await front.until(lambda it: it.ended, "the end")


async def test_nothing_to_ask() -> None:
    repo = Repo()
    async with threshold_of(at(repo)) as (threshold, front):
        assert (await ended(front)).farewell == "bye"
    assert repo.met == ["opened trusted", "lived"]
    assert threshold.failure is None


async def test_setting_up_and_trusting() -> None:
    repo = Repo(files=(".agent.yml",), lines=("test_command: pytest",))
    async with threshold_of(at(repo)) as (_, front):
        question = (await asked(front, "init")).live.question
        assert question is not None
        assert "  .agent.yml" in question.lines
        await front.submit(AnswerQuestion("init", yes=True))
        question = (await asked(front, "trust")).live.question
        assert question is not None
        assert question.lines == ("test_command: pytest",)
        await front.submit(AnswerQuestion("trust", yes=True))
        await ended(front)
    assert repo.met == ["written", "accepted", "opened trusted", "lived"]


async def test_not_setting_up_writes_nothing() -> None:
    repo = Repo(files=(".agent.yml",))
    async with threshold_of(at(repo)) as (_, front):
        await asked(front, "init")
        await front.submit(AnswerQuestion("init", yes=False))
        assert "nothing was written" in (await ended(front)).farewell
    assert repo.met == []


async def test_without_trust_nothing_is_obeyed() -> None:
    repo = Repo(lines=("test_command: pytest",))
    async with threshold_of(at(repo)) as (_, front):
        await asked(front, "trust")
        await front.submit(AnswerQuestion("trust", yes=False))
        await ended(front)
    assert repo.met == ["opened untrusted", "lived"]


@pytest.mark.parametrize(("repo", "key"), [(Repo(files=("x",)), "init"), (Repo(lines=("x",)), "trust")])
async def test_leaving_at_a_question(repo: Repo, key: str) -> None:
    async with threshold_of(at(repo)) as (threshold, front):
        await asked(front, key)
        await front.submit(Leave())
        await ended(front)
    assert repo.met == []
    assert threshold.failure is None


async def test_an_answer_counts_for_its_own_question() -> None:
    repo = Repo(files=("x",), lines=("y",))
    async with threshold_of(at(repo)) as (_, front):
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
    async def doors() -> Repo:
        raise error

    async with threshold_of(doors) as (threshold, front):
        farewell = (await ended(front)).farewell
    assert threshold.failure is error
    assert str(error) in farewell
    assert error.advice in farewell


async def test_a_session_that_cannot_be_opened_is_a_failure() -> None:
    repo = Repo(failing=ConfigError("the journal is locked"))
    async with threshold_of(at(repo)) as (threshold, front):
        assert "locked" in (await ended(front)).farewell
    assert threshold.failure is repo.failing


async def test_an_error_nobody_expected_still_ends_the_screen() -> None:
    async def doors() -> Repo:
        raise LookupError("a bug")

    threshold = Preflight(doors)
    life = asyncio.create_task(threshold.run())
    front = Front(threshold)
    await ended(front)
    with pytest.raises(LookupError):
        await life


async def test_intents_go_on_to_the_session_once_it_is_there() -> None:
    repo = Repo()
    open_now = asyncio.Event()

    async def doors() -> Repo:
        await open_now.wait()
        return repo

    threshold = Preflight(doors)
    await threshold.submit(ApproveProposal(ProposalId("P-1"), "typed ahead"))
    await threshold.submit(Leave("typed ahead"))
    life = asyncio.create_task(threshold.run())
    open_now.set()
    await life
    assert repo.intents == [Leave("typed ahead")]
    await threshold.submit(StartTask())
    assert repo.intents[-1] == StartTask()
