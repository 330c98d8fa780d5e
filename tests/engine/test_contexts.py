"""Servers that fail, refuse, or have less room than the one before; and what a budget leaves for an answer."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from math import ceil
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core import events as e
from agent_workbench.core.errors import ExitCode, ModelUnavailable
from agent_workbench.core.intents import DropChunk, PinChunk, SayToModel
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.plan import Budget
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Permission, Settings
from agent_workbench.core.task_estimates import Complexity
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, WRITES_DIFFS, a_stage, call, kinds, task
from tests.engine.test_compaction import READS, RIGHT, SUMMARY, add_long_files, compacted, of, text_of
from tests.engine.test_executor import run
from tests.fakes.faulty_server import DONE, Answer, FaultyServer, Request, as_json, delta, event, stream
from tests.fakes.ports import FACTS, GivenChunks, Hang
from tests.llama_fixtures import SMALL_CONTEXT_TOKENS, LlamaServer

FEW_TOOLS = Settings(tools_allowed=("read_file", "write_diff", "finish"))


async def test_the_next_endpoint_is_asked_where_one_fails(tmp_path: Path) -> None:
    gone = ModelUnavailable("nobody there", partial="Thought: I was")
    gone.another = True
    async with a_stage(tmp_path, [gone, RIGHT, FINISH], approvals=OPEN, headless=True, settings=WRITES_DIFFS) as stage:
        assert (await run(stage)).reason == "T-1 done: committed"
        (passed,) = of(stage, e.EndpointPassed)
        assert passed == e.EndpointPassed(Purpose.EXECUTOR, "http://fake", "nobody there")
        story = kinds(stage.events)
        at = story.index("EndpointPassed")
        assert story[at - 2 : at + 2] == ["PromptBuilt", "ModelInterrupted", "EndpointPassed", "PromptBuilt"]
        assert stage.model.requests[0].messages == stage.model.requests[1].messages


async def test_the_next_endpoint_is_asked_for_a_summary_too(tmp_path: Path) -> None:
    gone = ModelUnavailable("nobody there")
    gone.another = True
    async with a_stage(
        tmp_path, [*READS, gone, SUMMARY, RIGHT, FINISH], approvals=OPEN, headless=True, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage)
        assert (await run(stage)).reason == "T-1 done: committed"
        assert compacted(stage).by is e.Author.MODEL
        assert len(of(stage, e.EndpointPassed)) == 1


async def test_an_answer_is_no_longer_than_the_budget_lets_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [call("list_files")], approvals=OPEN, headless=True, settings=WRITES_DIFFS) as stage:
        stage.plan.plan = replace(stage.plan.plan, tasks=(replace(task(), budget=Budget(tokens=600)),))
        ending = await run(stage, "T-1")
        assert ending.exit_code is ExitCode.FAILED
        (request,) = stage.model.requests
        assert request.answer_tokens == 600 - request.prompt_tokens
        assert "tokens were used of the 600 in the task's budget, and the next prompt has" in ending.reason
        run_ = stage.state.run
        assert run_ is not None
        assert run_.tokens <= 600


async def test_a_budget_is_kept_where_nobody_counts_a_prompt(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [call("list_files")], approvals=OPEN, headless=True, settings=WRITES_DIFFS) as stage:
        stage.model.facts = replace(FACTS, context_tokens=0, counts_tokens=False)
        stage.plan.plan = replace(stage.plan.plan, tasks=(replace(task(), budget=Budget(tokens=1_400)),))
        ending = await run(stage, "T-1")
        (request,) = stage.model.requests
        assert request.answer_tokens < 1_400 - sum(len(message.text) for message in request.messages) // 4
        assert "of the 1400 in the task's budget, and the next prompt has about" in ending.reason


async def test_a_word_that_comes_while_the_prompt_is_made_is_in_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, settings=WRITES_DIFFS) as stage:
        count, said = stage.model.count_tokens, False

        async def counting(texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
            nonlocal said
            if not said:
                said = True
                await stage.session.record(e.UserSaid("wait a moment"))
            return await count(texts, purpose)

        stage.model.count_tokens = counting  # type: ignore[method-assign]
        assert (await run(stage)).reason == "T-1 done: committed"
        assert "> wait a moment" in text_of(stage, 0)
        story = kinds(stage.events)
        assert story.index("UserSaid") < story.index("PromptBuilt")


class Boasting:
    """The scripted model on a server that is said to have more context than it has."""

    def __init__(self, inner: ScriptedModel) -> None:
        self._inner = inner
        self.answer, self.count_tokens, self.close = inner.answer, inner.count_tokens, inner.close

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return replace(await self._inner.observe(purpose), context_tokens=16_384)


async def test_a_real_server_that_refuses_a_prompt_is_asked_for_a_summary(
    tmp_path: Path, small_llama_server: LlamaServer
) -> None:
    script = [*READS, READS[0], RIGHT, FINISH]
    inner = ScriptedModel(small_llama_server.model(), {"T-1": script, "T-1:summary": [SUMMARY]})
    async with a_stage(tmp_path, settings=FEW_TOOLS, approvals=OPEN, headless=True, model=Boasting(inner)) as stage:
        add_long_files(stage, 22)
        assert (await run(stage)).reason == "T-1 done: committed"
        filled = [event for event in stage.events if isinstance(event, e.ContextFilled)]
        assert {event.context_tokens for event in filled} == {SMALL_CONTEXT_TOKENS}
        assert all(event.prompt_tokens > SMALL_CONTEXT_TOKENS for event in filled)
        assert not of(stage, e.TroubleMet)


class Swapped:
    """A model behind which another one can be put."""

    def __init__(self, model: ScriptedModel) -> None:
        self.now = model

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return await self.now.observe(purpose)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        async with contextlib.aclosing(self.now.answer(request)) as items:
            async for item in items:
                yield item

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self.now.count_tokens(texts, purpose)

    async def close(self) -> None:
        await self.now.close()


@pytest.mark.slow
async def test_a_real_server_swapped_for_one_with_a_quarter_of_its_context(
    tmp_path: Path, llama_server: LlamaServer, small_llama_server: LlamaServer
) -> None:
    scripts = {"T-1": [*READS, *READS, RIGHT, FINISH], "T-1:summary": [SUMMARY]}
    large, small = (ScriptedModel(server.model(), scripts) for server in (llama_server, small_llama_server))
    model = Swapped(large)
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    async with a_stage(tmp_path, settings=FEW_TOOLS, approvals=approvals, model=model) as stage:
        add_long_files(stage, 30)
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            model.now = small
            await front.approve(Permission.DIFF)
            await front.gate(Permission.MERGE)
        await large.close()
        met = [event.facts.context_tokens for event in stage.events if isinstance(event, e.ModelObserved)]
        assert met == [8192, SMALL_CONTEXT_TOKENS]
        assert compacted(stage).by is e.Author.WORKBENCH, "the small one could not even have read what there was"
        last = [event.figures for event in stage.events if isinstance(event, e.ModelAnswered)][-1]
        assert 0 < last.prompt_tokens < SMALL_CONTEXT_TOKENS


async def test_only_what_was_shown_can_be_pinned_or_dropped(tmp_path: Path) -> None:
    retriever = GivenChunks((Chunk("answer.txt", 1, 1, "wrong", 1.0),))
    async with a_stage(
        tmp_path, [Hang("Thought: hm")], approvals=OPEN, retriever=retriever, settings=WRITES_DIFFS
    ) as stage:
        async with in_front_of(stage) as front:
            for intent in (SayToModel("hello"), PinChunk("answer.txt:1-1"), DropChunk("answer.txt:1-1")):
                assert "no task is being worked on" in await front.notice(intent)
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            assert "no code at other.txt:1-1" in await front.notice(PinChunk("other.txt:1-1"))
            assert "never shown answer.txt:1-2" in await front.notice(DropChunk("answer.txt:1-2"))
            assert "is not pinned" in await front.notice(PinChunk("answer.txt:1-1", pinned=False))
            assert "nothing to say" in await front.notice(SayToModel("  \n"))
            assert "at most 16000" in await front.notice(SayToModel("long " * 4_000))
            await front.submit(PinChunk("answer.txt:1-1"))
            assert "pinned already" in await front.notice(PinChunk("answer.txt:1-1"))
            await front.submit(DropChunk("answer.txt:1-1"))
            assert "dropped already" in await front.notice(DropChunk("answer.txt:1-1"))
        assert [kind for kind in kinds(stage.events) if "Chunk" in kind] == ["ChunkPinned", "ChunkDropped"]


class CuttingServer(FaultyServer):
    """A server that counts no texts, and reads of a prompt without room what it pleases, as Ollama does.

    That is half its context, or all of it in the versions without a route that `states` it. `sizes` are the tokens of
    the prompts that were sent. A prompt that was cut gets an answer that nobody asked for.
    """

    def __init__(self, sayings: Sequence[str], context: int, *, states: bool) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self._context, self._read = context, context // 2 + 2 if states else context
        self._sayings = list(sayings)
        self.on("/health").on("/props").on("/tokenize").on("/v1/models", as_json({"data": [{"id": "coder:latest"}]}))
        if states:
            loaded = {"name": "coder:latest", "context_length": context}
            self.on("/api/version", as_json({"version": "0.32.5"})).on("/api/generate", as_json({"done": True}))
            self.on("/api/ps", as_json({"models": [loaded]}))
        self.chat(self._answer)

    def _answer(self, request: Request) -> Answer:
        messages = request.json["messages"]
        assert isinstance(messages, list)
        self.sizes.append(sum(ceil(len(each["content"]) / 4) + 4 for each in messages))
        cut = self.sizes[-1] >= self._context
        figures = {"prompt_tokens": self._read if cut else self.sizes[-1], "completion_tokens": 9}
        said = "Sure!" if cut else self._sayings.pop(0)
        return stream(delta(said), delta("", "stop"), event({"choices": [], "usage": figures}), DONE)


@pytest.mark.parametrize("states", [True, False])
async def test_a_server_that_cuts_without_a_word_is_sent_nothing_that_it_would_cut(
    tmp_path: Path, states: bool
) -> None:
    said: list[str] = []
    server = CuttingServer([*READS, SUMMARY, RIGHT, FINISH], 2_600, states=states)
    async with server:
        model = LlamaCppModel(server.url, on_status=said.append)
        async with a_stage(tmp_path, settings=FEW_TOOLS, approvals=OPEN, headless=True, model=model) as stage:
            add_long_files(stage, 90)
            assert (await run(stage)).reason == "T-1 done: committed"
            filled = of(stage, e.ContextFilled)
            observed = of(stage, e.ModelObserved)
        await model.close()
    cut = [size for size in server.sizes if size >= 2_600]
    # That little is missing of a prompt shows when it does not grow any more.
    assert len(cut) == (0 if states else 2), server.sizes
    assert filled
    sources = [each.facts.context_source for each in observed if isinstance(each, e.ModelObserved)]
    assert list(dict.fromkeys(sources)) == (["/api/ps"] if states else ["", "measured"])
