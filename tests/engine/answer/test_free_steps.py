import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionFinished, ActionProposed, ActionRejected, PatchApplied, TaskFinished
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import DEFAULT_TOOLS, Approval, Limits, Settings
from agent_workbench.core.settings.models import ModelSettings, ServingSettings
from agent_workbench.core.task_estimates import Complexity
from tests.engine.stage import OPEN, a_stage
from tests.engine.test_executor import run
from tests.llama_fixtures import LlamaServer

# `tests/e2e/test_random.py` takes more, through the whole command.
STEPS = 20
# No command of its own: what a random model says is not to run here.
TOOLS = tuple(name for name in DEFAULT_TOOLS if name != "finish")


class Unbound:
    """A model that takes no grammar."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return replace(await self._inner.observe(purpose), takes_grammar=False)

    def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        assert not request.grammar
        return self._inner.answer(request)

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self._inner.count_tokens(texts)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.slow
@pytest.mark.parametrize("bound", [True, False], ids=["grammar", "free"])
async def test_a_random_model_breaks_nothing(
    tmp_path: Path,
    llama_server: LlamaServer,
    bound: bool,
) -> None:
    server = EmbeddedServer(
        llama_server.model_path, log=tmp_path / "server.log", environ=os.environ, serving=ServingSettings(32_768)
    )
    url, key = await server.start()
    answer_tokens = 400 if bound else 60
    settings = Settings(
        model=ModelSettings(answer_tokens=answer_tokens),
        tools_allowed=TOOLS,
        limits=Limits(max_tool_calls_per_task=STEPS, max_reflexion_retries=1000, consecutive_failure_threshold=1000),
    )
    client = LlamaCppModel(url, api_key=key)
    approvals = replace(OPEN, knowledge=Approval.AUTO)
    try:
        model = client if bound else Unbound(client)
        async with a_stage(tmp_path, settings=settings, approvals=approvals, headless=True, model=model) as stage:
            ending = await run(stage, "T-1")
            assert (ending.exit_code, "max_tool_calls_per_task" in ending.reason) == (ExitCode.FAILED, True), ending
            events = stage.events
            run_ = stage.state.run
            assert run_ is not None
            assert run_.tool_calls == STEPS
            assert [event for event in events if isinstance(event, TaskFinished)]
            called = {event.proposal.tool for event in events if isinstance(event, ActionProposed)}
            told = [event for event in events if isinstance(event, ActionFinished | ActionRejected)]
            assert told
            assert len(called) > (3 if bound else 0)
            assert stage.git("status", "--porcelain") in {"", "?? memory/"}
            assert not [event for event in events if isinstance(event, PatchApplied) and "answer.txt" in event.paths]
    finally:
        await server.stop()
