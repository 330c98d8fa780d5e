"""Reports say once what became of a task, and a report that fails never fails the task."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core import events as e
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import TaskOrigin, TaskStatus
from agent_workbench.core.ports.task_queue import QueuedTask
from agent_workbench.core.settings.worker import ReportPart
from agent_workbench.core.task_result import TaskResult
from agent_workbench.core.workers import WorkerLine
from agent_workbench.subjects.forge.report_calls import Reports, repo_reports
from agent_workbench.subjects.queue.worker_files_adapter import ReportOutbox
from agent_workbench.subjects.worker.claimed_task_calls import ClaimedTask, WorkerContext
from agent_workbench.subjects.worker.outage_calls import Outages, Pauses
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from agent_workbench.subjects.worker.report_calls import TaskReports
from tests.contracts.clocks import SetClock
from tests.fakes.forge_server import REPO, TOKEN, ForgeServer
from tests.subjects.forge.scene import CHANGE, TASK, Scene


@pytest.fixture(autouse=True)
def issue(server: ForgeServer) -> None:
    server.open_issue(7, "Round prices", "Half up.", author="stranger")
    server.label(7, "ada")


def refs(server: ForgeServer) -> str:
    words = ["git", "--git-dir", str(server.remote), "for-each-ref", "--format=%(refname) %(objectname)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def visible(text: str) -> list[str]:
    return text.split("\n\n<!--", maxsplit=1)[0].split("\n")


async def reported(scene: Scene, result: TaskResult) -> str:
    reports = scene.reports()
    trouble = await reports.ended(result)
    await reports.close()
    return trouble


def world(server: ForgeServer) -> tuple[object, ...]:
    """Return everything that reports can change."""
    return server.texts(7), server.states, [dict(each) for each in server.pulls], refs(server)


async def test_a_result_is_reported_once_in_its_form(scene: Scene, server: ForgeServer) -> None:
    result = await scene.done()
    reports = scene.reports()
    assert await reports.started(TASK, result.session) == ""
    await reports.close()
    assert await reported(scene, result) == ""
    progress, comment = server.texts(7)
    assert visible(comment) == [
        "✓ COMPLETED",
        "",
        "Branch: agent/task-7",
        f"Commit: {result.commit}",
        "Tag: task-7-done",
        f"Pull request: {server.url}/{REPO}/pulls/1000",
        "",
        "Verification results:",
        "- `pytest -q`: passed in 1.5 s",
        "- `ruff check .`: passed in 0.2 s",
        "",
        f"Session `{result.session}`.",
    ]
    assert "is over" in progress
    assert f"refs/heads/agent/task-7 {result.commit}" in refs(server)
    assert "refs/tags/task-7-done" in refs(server)
    (pull,) = server.pulls
    assert pull["title"] == "task-7: Round prices"
    assert pull["body"].startswith("Closes #7\n\n# task-7: Round prices")
    assert "agent sessions verify" in pull["body"]
    (state,) = server.states
    assert (state["sha"], state["status"], state["description"]) == (result.commit, "success", "2 of 2 checks passed")
    before = world(server)
    writes = [each for each in server.requests if not each.startswith("GET")]
    assert await reported(scene, result) == ""
    assert world(server) == before
    assert [each for each in server.requests if not each.startswith("GET")] == writes


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize(
    ("point", "status"),
    [
        (f"GET /{REPO}.git", 401),
        (f"POST /{REPO}.git", 503),
        ("POST REST/repos/acme/shop/statuses", 403),
        ("POST REST/repos/acme/shop/pulls", 500),
        ("POST REST/repos/acme/shop/issues", 503),
        ("GET REST/user", 401),
    ],
)
async def test_a_part_that_fails_fails_no_other_and_comes_with_the_next_report(
    scene: Scene, server: ForgeServer, point: str, status: int
) -> None:
    result = await scene.done()
    server.fail[point.replace("REST", server.rest)] = status
    trouble = await reported(scene, result)
    assert trouble
    assert TOKEN not in trouble
    server.fail.clear()
    assert await reported(scene, result) == ""
    assert visible(server.texts(7)[0])[:5] == [
        *("✓ COMPLETED", "", "Branch: agent/task-7", f"Commit: {result.commit}", "Tag: task-7-done"),
    ]
    assert not any("Not reported" in each for each in server.texts(7))
    assert (len(server.texts(7)), len(server.states), len(server.pulls)) == (1, 1, 1)
    assert refs(server).count("\n") == 2


class Crash(BaseException):
    """The end of the process, between two calls."""


async def test_a_crash_behind_any_call_leaves_nothing_twice(
    scene: Scene, server: ForgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each call that changes something the process ends; the report is then repeated from the beginning."""
    result = await scene.done()
    reports = scene.reports()
    link = reports._link  # the calls that a crash comes between
    assert link is not None
    count = 0
    for owner, name in (
        (link.remote, "push"),
        (link.forge, "set_state"),
        (link.forge, "request_merge"),
        (link.forge, "comment"),
    ):
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name), lambda: count))
    for crash_at in range(1, 5):
        count = crash_at
        with pytest.raises(Crash):
            await reports.ended(result)
    await reports.close()
    assert await reported(scene, result) == ""
    assert (len(server.texts(7)), len(server.states), len(server.pulls)) == (1, 1, 1)
    assert refs(server).count("\n") == 2


def crashing(call: Callable[..., Awaitable[object]], wanted: Callable[[], int]) -> Callable[..., Awaitable[object]]:
    """Return the call, after which the process ends if it is the wanted one."""
    order = {"push": 1, "set_state": 2, "request_merge": 3, "comment": 4}

    async def crash(*arguments: object) -> object:
        answer = await call(*arguments)
        if order[call.__name__] == wanted():
            raise Crash
        return answer

    return crash


async def test_a_failure_is_reported_with_its_reason_and_pushes_nothing(scene: Scene, server: ForgeServer) -> None:
    session = await scene.session(e.TaskFinished(TASK.id, TaskStatus.FAILED, "checks *fail* @everyone"))
    assert await reported(scene, await scene.result(session)) == ""
    first = visible(server.texts(7)[0])
    assert first[0] == "✗ FAILED: checks \\*fail\\* @<!-- -->everyone"
    assert not any(each.startswith(("Branch", "Tag")) for each in first)
    assert refs(server) == ""
    assert (server.pulls, server.states) == ([], [])


async def test_failed_checks_make_a_failed_state(scene: Scene, server: ForgeServer) -> None:
    await reported(scene, await scene.done(passed=False))
    assert [each["status"] for each in server.states] == ["failure"]
    assert "- `pytest -q`: failed with exit code 1 in 1.5 s" in visible(server.texts(7)[0])


async def test_only_the_parts_that_are_set_are_sent(scene: Scene, server: ForgeServer) -> None:
    forge = replace(scene.settings.forge, report=(ReportPart.PUSH,))
    scene.settings = replace(scene.settings, forge=forge)
    await reported(scene, await scene.done())
    assert refs(server).count("\n") == 1
    assert (server.states, server.pulls) == ([], [])
    assert not any("Tag:" in each for each in server.texts(7))
    scene.settings = replace(scene.settings, forge=replace(forge, report=()))


async def test_progress_is_one_comment_and_a_proposal_has_its_own(scene: Scene, server: ForgeServer) -> None:
    session = await scene.session(e.ActionProposed(CHANGE))
    reports = scene.reports()
    for _ in range(2):
        assert await reports.started(TASK, session) == ""
    assert len(server.texts(7)) == 1
    item = await scene.waiting(session)
    for _ in range(2):
        assert await reports.parked(TASK, session, item) == ""
    progress, proposal = server.texts(7)
    assert "waits for a decision" in progress
    assert f"/approve {item.reference}" in proposal
    await reports.close()


async def test_what_was_replaced_meanwhile_is_not_shown_under_the_reference_of_another(
    scene: Scene, server: ForgeServer
) -> None:
    session = await scene.session(e.ActionProposed(CHANGE))
    item = await scene.waiting(session)
    held = await scene.hold(session)
    await scene.append(held, e.ProposalReplaced(replace(CHANGE, text="changed"), "", e.Author.USER))
    await held.journal.close()
    reports = scene.reports()
    assert await reports.parked(TASK, session, item) == ""
    await reports.close()
    assert not any("/approve" in text for text in server.texts(7))


async def test_a_local_task_reports_to_the_issue_that_it_names(scene: Scene, server: ForgeServer) -> None:
    task = replace(TASK, id=TaskId("T-1"), source=f"{server.kind}:chiffon:7", origin=TaskOrigin.LOCAL)
    await reported(scene, await scene.done(task=task))
    assert "Tag: task-T-1-done" in visible(server.texts(7)[0])
    assert "refs/tags/task-T-1-done" in refs(server)


async def test_a_task_that_fails_before_its_session_says_so_is_reported_to_the_issue_it_names(
    scene: Scene, server: ForgeServer
) -> None:
    await scene.queue.put(QueuedTask("fix", f"id: T-42\nsource: {server.kind}:{REPO}#7\ngoal: x\n"))
    claim = await scene.queue.claim("worker", 60)
    assert claim is not None
    gone = replace(claim, task=replace(claim.task, session=SessionId("20260102T030405-abc234")))
    reports, clock = scene.reports(), SetClock()
    log = WorkerLog(list[WorkerLine]().append, clock, str)
    host = LocalSessionHost(scene.repo.invocation)
    outbox = ReportOutbox(Path(scene.user.root).parent / "outbox")
    sent = TaskReports(reports, outbox, scene.queue, log)
    outages, slots = Outages(log, Pauses(), "box"), asyncio.Semaphore(1)
    context = WorkerContext(host, scene.queue, "default", sent, log, outages, clock, lambda: None, slots, waits=False)
    end = await ClaimedTask(context, gone).run()
    await reports.close()
    await host.close()
    assert end.exit_code is ExitCode.JOURNAL, end
    (text,) = server.texts(7)
    assert "T-42" in text
    assert await asyncio.to_thread(outbox.pending) == ()


async def test_a_task_without_an_issue_is_not_reported(scene: Scene, server: ForgeServer) -> None:
    task = replace(TASK, id=TaskId("T-1"), source=f"{server.kind}:acme/other#7", origin=TaskOrigin.LOCAL)
    assert await reported(scene, await scene.done(task=task)) == ""
    assert server.requests == []


async def test_without_a_forge_reports_do_nothing(scene: Scene) -> None:
    assert await Reports().ended(await scene.done()) == ""


async def test_a_missing_token_is_a_sentence(scene: Scene, server: ForgeServer) -> None:
    environ = {name: value for name, value in scene.repo.invocation.environ.items() if name != server.token_env}
    scene.repo.invocation = replace(scene.repo.invocation, environ=environ)
    reports = repo_reports(scene.repo, scene.settings)
    assert "forge.token_env" in await reports.ended(await scene.done())


async def test_the_token_is_in_no_file_of_ours_and_in_no_text_of_the_forge(
    scene: Scene, server: ForgeServer, tmp_path: Path
) -> None:
    server.open_issue(8, f"Say {TOKEN}", f"The token is {TOKEN}.", author="stranger")
    server.label(8, "ada")
    server.fail[f"POST {server.rest}/repos/acme/shop/statuses"] = -3
    assert await reported(scene, await scene.done())
    await scene.round()
    secrets = [TOKEN.encode()]
    found = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    ]
    assert found == []
    assert not any(TOKEN in text for number in (7, 8) for text in server.texts(number))
