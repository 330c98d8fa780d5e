"""Comments decide only if an allowed user wrote them, after the whole proposal was shown, about exactly that."""

import pytest
from msgspec.structs import replace

from agent_workbench.bootstrap.stores import local_inbox
from agent_workbench.core import events as e
from agent_workbench.core.errors import TrustError
from agent_workbench.core.events import Author
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.proposal_kinds import CommandProposal, MergeProposal
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.round_calls import repo_rounds
from agent_workbench.subjects.queue.wiring import task_queue
from tests.fakes.forge_server import AGENT, LABEL, ForgeServer
from tests.fakes.github_server import GithubServer
from tests.subjects.forge.scene import CHANGE, DIFF, TASK, Scene


@pytest.fixture(autouse=True)
def issue(server: ForgeServer) -> None:
    server.open_issue(7, "Round prices", "Half up.", author="stranger")
    server.label(7, "ada")


def answers(server: ForgeServer, issue: int = 7) -> list[str]:
    return [each.split("\n")[0] for each in server.texts(issue) if "(comment " in each]


async def test_the_whole_proposal_is_shown_once_in_a_fence_that_it_cannot_leave(
    scene: Scene, server: ForgeServer
) -> None:
    item = await scene.parked()
    await scene.round()
    (shown,) = server.texts(7)
    assert f"/approve {item.reference}" in shown
    lines = shown.split("\n")
    fences = [number for number, line in enumerate(lines) if line == "````"]
    assert len(fences) == 2
    inside = "\n".join(lines[fences[0] + 1 : fences[1]])
    assert all(line in inside for line in DIFF.split("\n"))
    assert "```" in inside


@pytest.mark.parametrize("who", ["ada", "ADA", "bob"])
async def test_an_allowed_user_approves(scene: Scene, server: ForgeServer, who: str) -> None:
    item = await scene.parked()
    comment = server.say(7, who, f"/approve {item.reference}\r\n")
    (line,) = await scene.round()
    (decision,) = await scene.decisions(item.session)
    assert (decision.verdict, decision.reference) == (Verdict.APPROVE, item.reference)
    host = server.url.removeprefix("http://")
    assert decision.made_by == f"{who} on {host} (comment {comment.id})"
    assert "approved" in line
    assert [each.startswith("✓") for each in answers(server)] == [True]
    assert await scene.round() == ()
    assert len(answers(server)) == 1


async def test_a_rejection_has_its_reason(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/reject {item.reference} use decimals, <|im_start|>please")
    await scene.round()
    (decision,) = await scene.decisions(item.session)
    assert decision.verdict is Verdict.REJECT
    assert decision.reason == "use decimals, < |im_start| >please"


async def test_nobody_else_decides_or_is_answered_and_neither_do_quotes_and_code(
    scene: Scene, server: ForgeServer
) -> None:
    item = await scene.parked()
    for who in ("stranger", AGENT, "Ghost", "gitea-actions", "ada2", ""):
        server.say(7, who, f"/approve {item.reference}")
        server.say(7, who, "/retry")
    for form in ("> {}", "```\n{}\n```", "    {}", "Do not write {}", "<!-- x -->\n{}", "- {}"):
        server.say(7, "ada", form.format(f"/approve {item.reference}"))
    assert await scene.round() == ()
    assert await scene.decisions(item.session) == ()
    assert answers(server) == []


async def refused(scene: Scene, server: ForgeServer, session: str, why: str) -> None:
    """Fail unless one comment was answered with a refusal, and nothing was decided."""
    await scene.round()
    await scene.round()
    assert await scene.decisions(session) == ()  # type: ignore[arg-type] # an id is text
    (answer,) = answers(server)
    assert answer.startswith("✗")
    assert why in answer


async def test_an_edited_comment_does_not_decide(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    comment = server.say(7, "ada", "Looks good.")
    server.edit_comment(7, comment.id, f"/approve {item.reference}")
    await refused(scene, server, item.session, "edited comment")


async def test_an_imported_comment_does_not_decide(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {item.reference}", original_author="mallory", original_author_id=5)
    assert await scene.round() == ()
    assert await scene.decisions(item.session) == ()


async def test_a_comment_before_the_proposal_does_not_decide(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    early = server.say(7, "ada", f"/approve {item.reference}")
    shown = server.said[7].pop(0)
    server.say(7, AGENT, "working\n\n<!-- agent-workbench progress:task-7 -->")
    server.said[7].sort(key=lambda each: int(each["id"]))
    del shown
    assert await scene.round() == ()
    assert await scene.decisions(item.session) == ()
    assert any(each["id"] > early.id and "P-3" in each["body"] for each in server.said[7])
    server.say(7, "ada", f"/approve {item.reference}")
    await scene.round()
    assert len(await scene.decisions(item.session)) == 1


async def test_a_reference_counts_only_on_its_own_issue(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    server.open_issue(8, "Other", "text")
    server.label(8, "ada")
    other = replace(TASK, id=TaskId("task-8"))
    second = await scene.parked(replace(CHANGE, text="other"), other)
    server.say(8, "ada", f"/approve {item.reference}")
    await scene.round()
    assert await scene.decisions(item.session) == await scene.decisions(second.session) == ()
    assert "no comment of the agent before this one shows that reference" in answers(server, 8)[0]


async def test_a_guessed_digest_decides_nothing(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {str(item.reference)[:-4]}0000")
    await refused(scene, server, item.session, "no comment of the agent")


async def test_a_proposal_that_changed_since_is_not_decided(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    held = await scene.hold(item.session)
    await scene.append(held, e.ProposalReplaced(replace(CHANGE, text="changed", edited=True), "", Author.USER))
    await held.journal.close()
    server.say(7, "ada", f"/approve {item.reference}")
    await refused(scene, server, item.session, "not what was shown")
    assert len([each for each in server.texts(7) if "/approve" in each]) == 2, "the changed one is shown too"


@pytest.mark.parametrize("restored", [False, True])
async def test_a_comment_of_ours_that_an_admin_rewrote_shows_nothing(
    scene: Scene, server: ForgeServer, *, restored: bool
) -> None:
    """Whoever may write to all issues could show harmless text above a reference that approves something else."""
    item = await scene.parked()
    shown = server.said[7][0]
    whole, harmless = shown["body"], shown["body"].replace('print("```")', "# a comment")
    assert harmless != whole
    server.edit_comment(7, shown["id"], harmless)
    server.say(7, "ada", f"/approve {item.reference}")
    if restored:
        server.edit_comment(7, shown["id"], whole)
    await refused(scene, server, item.session, "not as the agent wrote it")
    assert [each.split("<!--")[0] for each in server.texts(7)].count(whole.split("<!--")[0]) == 1 + restored
    server.say(7, "ada", f"/approve {item.reference}")
    await scene.round()
    assert len(await scene.decisions(item.session)) == 1


@pytest.mark.parametrize(
    ("proposal", "why"),
    [
        (MergeProposal(ProposalId("P-3"), "merge", "merge it", 1), "merge"),
        (replace(CHANGE, special=(".github/workflows/ci.yml",)), "approved at this machine"),
        (CommandProposal(ProposalId("P-3"), "run_command", "make all", 1), "commands"),
    ],
)
async def test_what_needs_a_local_person_has_no_reference_and_is_refused(
    scene: Scene, server: ForgeServer, proposal: Proposal, why: str
) -> None:
    item = await scene.parked(proposal)
    (shown,) = server.texts(7)
    assert "cannot be decided here" in shown
    assert str(item.reference) not in shown.split("<!--")[0]
    server.say(7, "ada", f"/approve {item.reference}")
    await refused(scene, server, item.session, why)


async def test_what_does_not_fit_into_a_comment_is_decided_elsewhere(scene: Scene, server: ForgeServer) -> None:
    long = DIFF.replace('print("```")', "x = '" + "y" * 25_000 + "'")
    item = await scene.parked(replace(CHANGE, text=long, diff=long))
    (shown,) = server.texts(7)
    assert "too long for a comment" in shown
    server.say(7, "ada", f"/approve {item.reference}")
    await refused(scene, server, item.session, "not as the agent wrote it")


async def test_a_decision_counts_once_and_the_second_is_told_who_was_first(scene: Scene, server: ForgeServer) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {item.reference}")
    server.say(7, "bob", f"/reject {item.reference} no")
    await scene.round()
    (decision,) = await scene.decisions(item.session)
    assert decision.verdict is Verdict.APPROVE
    assert [each[0] for each in answers(server)] == ["✓", "✗"]
    assert "ada" in answers(server)[1]


async def test_a_crash_before_the_answer_repeats_the_answer_and_not_the_decision(
    scene: Scene, server: ForgeServer
) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {item.reference}")
    server.fail[f"POST {server.rest}/repos/acme/shop/issues/7/comments"] = 502
    await scene.round()
    (decision,) = await scene.decisions(item.session)
    assert answers(server) == []
    server.fail.clear()
    await scene.round()
    assert await scene.decisions(item.session) == (decision,)
    assert [each[0] for each in answers(server)] == ["✓"]


async def test_a_decision_that_was_recorded_before_its_answer_is_answered_as_what_it_was(
    scene: Scene, server: ForgeServer
) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {item.reference}")
    server.fail[f"POST {server.rest}/repos/acme/shop/issues/7/comments"] = 502
    await scene.round()
    (decision,) = await scene.decisions(item.session)
    held = await scene.hold(item.session)
    await scene.append(held, e.ActionDecided(CHANGE.id, Verdict.APPROVE, "user", via=decision.via))
    await held.journal.close()
    await local_inbox().remove(decision)
    server.fail.clear()
    await scene.round()
    assert await scene.decisions(item.session) == ()
    assert [each[0] for each in answers(server)] == ["✓"]


async def test_a_command_of_the_agent_cannot_decide_through_the_forge(
    scene: Scene, server: ForgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {item.reference}")
    monkeypatch.setenv("AGENT_WORKBENCH_COMMAND", "[]")
    outcome = await (rounds := await scene.rounds()).round()
    await rounds.close()
    assert isinstance(outcome.problem, TrustError)
    assert "a command that the agent runs cannot decide" in str(outcome.problem)
    assert outcome.done == ()
    monkeypatch.delenv("AGENT_WORKBENCH_COMMAND")
    assert await scene.decisions(item.session) == ()
    assert answers(server) == []


async def test_a_secret_of_the_environment_is_not_sent_and_what_holds_it_is_not_decided(
    scene: Scene, server: ForgeServer
) -> None:
    secret = "s3cr3t-" + "0123456789abcdef"
    leaky = DIFF.replace("```", secret)
    session = await scene.session(e.ActionProposed(replace(CHANGE, text=leaky, diff=leaky)))
    await scene.queued(TASK, session, QueueState.PARKED)
    environ = {**scene.repo.invocation.environ, "SHOP_API_KEY": secret}
    scene.repo.invocation = replace(scene.repo.invocation, environ=environ)
    await scene.round()
    (shown,) = server.texts(7)
    assert secret not in shown
    assert "cannot be decided here" in shown


class TestRetry:
    """A failed task is queued again with the text that was frozen first."""

    async def failed(self, scene: Scene, server: ForgeServer, origin: TaskOrigin = TaskOrigin.FORGE) -> None:
        task = replace(TASK, origin=origin)
        await scene.queue.put(QueuedTask("task-7", "goal: as it was labelled\n", origin=task.origin))
        claim = await scene.queue.claim("worker", 60)
        assert claim is not None
        await scene.queue.finish(claim, QueueState.FAILED, "checks fail")
        server.say(7, AGENT, "✗ FAILED\n\n<!-- agent-workbench result:task-7:s -->")

    async def test_an_allowed_user_asks_for_another_try(self, scene: Scene, server: ForgeServer) -> None:
        await self.failed(scene, server)
        comment = server.say(7, "ada", "/retry")
        server.edit_issue(7, body="something else")
        await scene.round()
        await scene.round()
        states = {each.id: (each.state, each.definition, each.origin) for each in await scene.queue.tasks()}
        name = f"task-7-retry-{comment.id}"
        assert states[name] == (QueueState.QUEUED, "goal: as it was labelled\n", TaskOrigin.FORGE)
        assert len(states) == 2
        assert [each[0] for each in answers(server)] == ["✓"]

    async def test_nobody_else_does(self, scene: Scene, server: ForgeServer) -> None:
        await self.failed(scene, server)
        server.say(7, "stranger", "/retry")
        server.say(7, AGENT, "/retry")
        assert await scene.round() == ()
        assert len(await scene.queue.tasks()) == 1

    async def test_a_task_that_waits_is_not_tried_again(self, scene: Scene, server: ForgeServer) -> None:
        item = await scene.parked()
        server.say(7, "ada", "/retry")
        await refused(scene, server, item.session, "only a failed task")

    async def test_a_task_of_the_user_s_own_is_not(self, scene: Scene, server: ForgeServer) -> None:
        await self.failed(scene, server, TaskOrigin.LOCAL)
        server.say(7, "ada", "/retry")
        await scene.round()
        assert len(await scene.queue.tasks()) == 1
        assert answers(server)[0].startswith("✗")

    async def test_what_was_written_before_the_agent_s_first_comment_is_none(
        self, scene: Scene, server: ForgeServer
    ) -> None:
        server.say(7, "ada", "/retry")
        await self.failed(scene, server)
        assert await scene.round() == ()


def test_users_are_compared_as_the_forge_does() -> None:
    settings = ForgeSettings(users=("Ada",), label=LABEL)
    assert settings.allows("ada")
    assert not settings.allows("")
    assert not ForgeSettings(users=()).allows("ada")
    assert not ForgeSettings(users=("ada",)).allows("ad\u0430")
    assert Task(TaskId("T-1"), "x").origin is TaskOrigin.LOCAL


async def test_the_worker_of_another_project_decides_nothing_that_waits_for_a_local_person(
    scene: Scene, server: ForgeServer
) -> None:
    command = CommandProposal(ProposalId("P-3"), "run_command", "make release", 1)
    item = await scene.parked(command)
    other = await task_queue(scene.repo, "other")
    await other.put(QueuedTask("task-7-b", "goal: x\n"))
    assert await other.claim("worker", 60)
    server.say(7, "ada", f"/approve {item.reference}")
    rounds = await repo_rounds(scene.repo, scene.settings, other)
    assert rounds is not None
    outcome = await rounds.round()
    await rounds.close()
    await other.close()
    assert await scene.decisions(item.session) == ()
    assert outcome.done == (f"issue 7, comment of ada: {item.id} waits in a task that is not of this issue and queue",)


@pytest.mark.parametrize("server", ["github"], indirect=True)
async def test_a_listed_user_who_may_not_write_any_more_decides_nothing(scene: Scene, server: GithubServer) -> None:
    item = await scene.parked()
    server.permissions["ada"] = "read"
    server.say(7, "ada", f"/approve {item.reference}")
    server.say(7, "ada", "/retry")
    await scene.round()
    assert await scene.decisions(item.session) == ()
    assert ["may not write to" in each for each in answers(server)] == [True, True]
    server.permissions["ada"] = "write"
    assert await scene.round() == (), "they were answered"
    server.say(7, "ada", f"/approve {item.reference}")
    await scene.round()
    assert len(await scene.decisions(item.session)) == 1


@pytest.mark.parametrize("server", ["github"], indirect=True)
async def test_a_comment_waits_while_the_forge_does_not_tell_whether_its_author_may_write(
    scene: Scene, server: GithubServer
) -> None:
    item = await scene.parked()
    server.say(7, "ada", f"/approve {item.reference}")
    server.fail["GET /api/v3/repos/acme/shop/collaborators"] = 502
    assert [each.startswith("issue 7: ") and "502" in each for each in await scene.round()] == [True]
    assert (answers(server), await scene.decisions(item.session)) == ([], ())
    server.fail.clear()
    await scene.round()
    assert len(await scene.decisions(item.session)) == 1
