"""The gate of a playbook: its values, access and lines are shown as they are, and approved only when they were."""

from msgspec.structs import replace

from agent_workbench.core.events import ActionProposed
from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.playbooks import HostRecap, PlaybookRequest, PlaybookRun, RunAccess
from agent_workbench.core.proposals import is_too_long, shown_sha
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import WHOLE_CHARS
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, driving

REQUEST = PlaybookRequest("deploy.yml", "inventory/prod", "web", "", '{"version": "1.2"}')
RUN = PlaybookRun(REQUEST, "- hosts: web\n", RunAccess(("~/.ssh/deploy",), agent=True), ("ansible.cfg",))


def with_run(run: PlaybookRun) -> ScriptedSession:
    proposal = runs.proposed(Permission.INFRASTRUCTURE, "run_playbook", "P-90", "{}", playbook=run)
    return ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposal))


async def test_all_of_a_run_is_shown_and_approved_by_one_key() -> None:
    session = with_run(RUN)
    async with driving(session, LARGE) as bench:
        shown = bench.text()
        for part in (
            "Check mode",
            "inventory/prod",
            "Limit: web",
            '"version": "1.2"',
            "~/.ssh/deploy",
            "the SSH agent",
        ):
            assert part in shown, part
        assert "ansible.cfg" in shown
        assert "- hosts: web" in shown
        await bench.look()
        await bench.press("A")
        assert bench.session.intents == [], "no rule can approve it"
        await bench.press("a")
        waiting = bench.session.newest.state.waiting
        assert waiting is not None
        assert bench.session.intents == [ApproveProposal(waiting.id, shown_sha(waiting))]


async def test_a_real_run_says_so_and_how_the_check_ended() -> None:
    checked = (HostRecap("web1", ok=3, changed=2), HostRecap("\x1b[2J[@click=app.quit]db", unreachable=1))
    run = replace(RUN, request=replace(REQUEST, check=False), checked=checked, check_failed=True)
    async with driving(with_run(run), LARGE) as bench:
        shown = bench.text()
        assert "This run changes the hosts." in shown
        assert "The run in check mode failed: 2 hosts: ok=3 changed=2 unreachable=1 failed=0" in shown
        assert "[@click=app.quit]db" in shown
        assert "␛" in shown


async def test_a_long_playbook_is_approved_only_when_its_end_was_on_screen() -> None:
    text = "- hosts: web\n" + "".join(f"# line {number}\n" for number in range(80)) + "# hidden \u202e code\n"
    async with driving(with_run(replace(RUN, text=text))) as bench:
        await bench.look()
        while bench.diff.unseen:
            await bench.press("a")
            assert bench.session.intents == []
            await bench.look()
        assert "‹202E›" in bench.text()
        await bench.press("a")
        assert len(bench.session.intents) == 1


def test_what_is_too_long_to_be_shown_cannot_be_approved() -> None:
    proposal = runs.proposed(Permission.INFRASTRUCTURE, "run_playbook", "P-90", "{}", playbook=RUN)
    assert not is_too_long(proposal)
    assert is_too_long(replace(proposal, playbook=replace(RUN, text="a" * (WHOLE_CHARS + 1))))
