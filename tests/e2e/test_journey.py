"""One journey through skills, scripts, knowledge and consultants: the second task is told what the first one learnt."""

import json
import os
import shutil
from pathlib import Path

import pytest

from agent_workbench.adapters.demo import PLAN, SCRIPTS, T1_AT_ONCE, T1_FINISH, T2_DIFF, T2_FINISH
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.set_up import write_demo
from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.core.session_request import Invocation, SessionRequest
from agent_workbench.core.settings import Permission
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.session.window import AppEnvironment
from tests.e2e.keyboard import Keyboard
from tests.fakes.scripted_session import FakeClock

pytestmark = pytest.mark.slow

REPO = Path(__file__).parents[2]
CALCULATOR = REPO / "examples/skills/calculator"
RUN = """\
Thought: A sum that has to be exact; I calculate what three pens and a pad cost.
Action: run_python_script
{"skill_name": "calculator", "script": "from scripts.calculate import calculate\\nprint(calculate('3 * 120 + 450'))"}"""
ASK = """\
Thought: Perhaps it was written down how prices are kept.
Action: query_knowledge
{"query": "prices in cents"}"""
REMEMBER = """\
Thought: That the total multiplies is worth knowing for the discount.
Action: remember
{"title": "Totals of the cart", "text": "total() multiplies price and quantity; a discount is taken off its sum."}"""
REVIEW = """\
The change is right.

SUGGESTION shop/cart.py:17 - say in the docstring that quantities count.

0 critical, 0 warnings, 1 suggestions"""
JOURNEY = ("run_python_script", "query_knowledge", "write_diff", "remember", "finish", "commit", "merge")
NOTE = "---\ntitle: Prices\n---\nPrices are whole cents everywhere, never floats.\n"


def write_journey(repo: Path) -> None:
    """Add to the demo's repository a skill with a script, a note, and a first task that needs both."""
    shutil.copytree(CALCULATOR, repo / "skills/calculator")
    notes = repo / "memory/knowledge"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "prices.md").write_text(NOTE)
    plan = PLAN.replace(
        "Make the cart's total count quantities", "Calculate the exact total of the cart, with quantities"
    )
    (repo / "memory/plans/PLAN.yaml").write_text(plan)


async def test_what_one_task_learns_the_next_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setitem(SCRIPTS, "T-1", (RUN, ASK, T1_AT_ONCE, REMEMBER, T1_FINISH))
    monkeypatch.setitem(SCRIPTS, "T-2", (T2_DIFF, T2_FINISH))
    monkeypatch.setitem(SCRIPTS, "review:consultant", (REVIEW,))
    repo, clock = tmp_path / "shop", FakeClock()
    invocation = await write_demo(repo, Invocation(repo, {**os.environ}, {}, unconfined=True))
    write_journey(repo)
    trust = await (await find_repo(invocation)).trust()
    assert any("skill files in skills" in line for line in await trust.question())
    await trust.accept()
    host = LocalSessionHost(invocation)
    app = WorkbenchApp(host, SessionRequest(), clock=clock, first_run=False, environment=AppEnvironment(None))
    async with app.run_test(size=(120, 40)) as pilot:
        keyboard = Keyboard(app, pilot, clock)
        await keyboard.until(lambda: keyboard.state.plan.next_task() is not None)
        await keyboard.go_on(lambda: _waits_for(keyboard, Permission.DIFF))
        await pilot.press("C")
        await keyboard.until(lambda: keyboard.state.consultations and "0 critical" in keyboard.shown)
        await pilot.press("0")
        await keyboard.go_on(lambda: keyboard.state.run and keyboard.state.run.merged)
        keyboard.pressed.clear()
        await keyboard.go_on(lambda: keyboard.asks_to_send)
        assert "knowledge memory/knowledge/totals-of-the-cart.md" in keyboard.shown
        await keyboard.merge()
        await app.leave("done")
    await host.join()
    _check_journal(repo)


def _waits_for(keyboard: Keyboard, kind: Permission) -> bool:
    return keyboard.state.waiting is not None and keyboard.state.waiting.kind is kind


def _check_journal(repo: Path) -> None:
    """Check that all of it stands in the journal, in its order, and in the prompt of the second task."""
    (journal,) = (repo / "memory/sessions").glob("*/journal.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    told = [line["body"]["proposal"]["tool"] for line in lines if line["kind"] == "action_proposed"]
    assert [tool for tool in told if tool in JOURNEY][: len(JOURNEY)] == list(JOURNEY)
    chosen = next(line["body"] for line in lines if line["kind"] == "skills_chosen")
    assert "calculator" in [skill["name"] for skill in chosen["skills"]]
    found = [line["body"] for line in lines if line["kind"] == "knowledge_found"]
    assert [note["path"] for note in found[-1]["notes"]] == ["memory/knowledge/totals-of-the-cart.md"]
    assert [line["body"]["status"] for line in lines if line["kind"] == "consultant_answered"] == ["ok"]
