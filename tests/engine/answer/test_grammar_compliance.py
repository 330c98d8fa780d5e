"""A server that takes a grammar and does not keep to it, over a real socket."""

from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.events import ActionProposed, ActionRejected, Event, GrammarIgnored, PromptBuilt
from agent_workbench.core.settings import Limits, Settings
from tests.engine.stage import FINISH, OPEN, a_stage, call, change
from tests.engine.test_executor import run
from tests.fakes.faulty_server import END, FaultyServer, delta, stream


async def _run(folder: Path, *said: str) -> tuple[list[Event], list[bool], str]:
    """Run a task on what a server says; return the events, which requests had a grammar, and the server's address."""
    server = FaultyServer().chat(*(stream(delta(text), END) for text in said))
    settings = replace(Settings(), limits=Limits(max_tool_calls_per_task=6, consecutive_failure_threshold=3))
    async with (
        server,
        a_stage(folder, model=LlamaCppModel(server.url), approvals=OPEN, settings=settings) as stage,
    ):
        await run(stage)
        sent = [bool(request.json.get("grammar")) for request in server.asked("/v1/chat/completions")]
        return stage.events, sent, server.url


async def test_an_answer_that_is_no_step_is_the_last_that_is_asked_for_with_a_grammar(tmp_path: Path) -> None:
    events, sent, url = await _run(tmp_path, "Sure! Here is what I do.", "Still not.", change("wrong", "right"), FINISH)
    (ignored,) = (event for event in events if isinstance(event, GrammarIgnored))
    assert (ignored.endpoint, ignored.step) == (url, 1)
    assert "does not begin with `Thought: `" in ignored.what
    assert sent == [True, False, False, False]
    assert [bool(event.grammar_sha) for event in events if isinstance(event, PromptBuilt)] == sent


async def test_a_step_in_another_form_is_taken_and_proves_it_too(tmp_path: Path) -> None:
    events, sent, _ = await _run(tmp_path, change("wrong", "right").replace("Action:", "**Action:**"), FINISH)
    (ignored,) = (event for event in events if isinstance(event, GrammarIgnored))
    assert "signs around the action" in ignored.what
    assert sent == [True, False]
    proposed = [event.proposal for event in events if isinstance(event, ActionProposed)]
    assert [each.repaired for each in proposed if each.tool == "write_diff"] == [("signs around the action's name",)]


async def test_a_diff_that_fits_nowhere_proves_nothing(tmp_path: Path) -> None:
    events, sent, _ = await _run(
        tmp_path,
        change("nowhere", "right"),
        call("read_file", '{"path": "answer.txt"}'),
        change("wrong", "right"),
        FINISH,
    )
    assert len([event for event in events if isinstance(event, ActionRejected)]) == 1
    assert not [event for event in events if isinstance(event, GrammarIgnored)]
    assert all(sent)
