"""Models of a server are listed, loaded and unloaded; whatever it answers stays bounded and is never trusted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from agent_workbench.adapters.llama_cpp import model_servers
from agent_workbench.adapters.llama_cpp.model_servers import ServedModels
from agent_workbench.core.errors import ModelError, ModelRefused, ModelUnavailable
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from tests.fakes.faulty_server import Answer, FaultyServer, as_json
from tests.fakes.model_servers import GENERATE, ManyModels, lm_studio, ollama, router
from tests.llama_fixtures import CONTEXT_TOKENS

LOADED, UNLOADED = ModelStatus.LOADED, ModelStatus.UNLOADED
PROGRAMS = {"llama-server": router, "Ollama": ollama, "LM Studio": lm_studio}


@asynccontextmanager
async def models_of(server: FaultyServer, said: list[str] | None = None) -> AsyncIterator[ServedModels]:
    async with server:
        models = ServedModels(server.url, "near", (said if said is not None else []).append)
        try:
            yield models
        finally:
            await models.close()


async def listing(models: ServedModels) -> dict[str, ModelStatus]:
    return {each.name: each.status for each in (await models.list()).models}


@pytest.mark.parametrize("program", PROGRAMS)
async def test_each_program_lists_loads_and_unloads(program: str) -> None:
    said: list[str] = []
    server = PROGRAMS[program]("small:7b", "large:70b", loaded=("small:7b",))
    async with models_of(server, said) as models:
        found = await models.list()
        assert (found.program, found.manages, found.endpoint) == (program, True, "near")
        assert await listing(models) == {"small:7b": LOADED, "large:70b": UNLOADED}
        loaded = await models.load("large:70b")
        assert (loaded.name, loaded.status, loaded.context_tokens > 0) == ("large:70b", LOADED, True)
        assert said == [f"the server at {server.url} loads large:70b"]
        await models.unload("small:7b")
        assert await listing(models) == {"large:70b": LOADED, "small:7b": UNLOADED}


async def test_what_is_loaded_is_not_loaded_again_and_what_is_not_is_not_unloaded() -> None:
    server = ollama("a", "b", loaded=("a",))
    async with models_of(server) as models:
        await models.load("a")
        await models.unload("b")
    assert server.asked(GENERATE) == []


async def test_a_router_is_waited_for_until_the_model_is_in_memory() -> None:
    server = router("a")
    server.loads_after = 3
    async with models_of(server) as models:
        assert (await models.load("a")).status is LOADED
    assert len(server.asked("/models/load")) == 1


async def test_a_model_that_a_router_cannot_load_is_said_at_once() -> None:
    server = router("a", loaded=())
    server.broken.add("a")
    async with models_of(server) as models:
        with pytest.raises(ModelUnavailable, match="could not load a"):
            await models.load("a")


async def test_a_model_of_the_router_that_never_loads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_servers, "LOAD_SECONDS", 0.3)
    server = router("a")
    server.loads_after = 1_000_000
    async with models_of(server) as models:
        with pytest.raises(ModelUnavailable, match="a is loading after all the time it had"):
            await models.load("a")


async def test_the_errors_of_a_server_are_passed_on() -> None:
    server = ollama("a").on(GENERATE, as_json({"error": "model requires more system memory"}, 500))
    async with models_of(server) as models:
        with pytest.raises(ModelError, match="requires more system memory"):
            await models.load("a")


async def test_only_what_the_server_lists_is_named_in_a_request() -> None:
    server = router("a", loaded=("a",))
    async with models_of(server) as models:
        for name in ("b", "--models-dir", "../../etc/passwd", "a\n", "", "\x1b]0;x\x07"):
            with pytest.raises(ModelRefused, match="has no model"):
                await models.unload(name)
    assert server.asked("/models/unload") == []


async def test_a_server_of_one_model_is_listed_and_manages_nothing(keyless_server: str) -> None:
    models = ServedModels(keyless_server, "model", print)
    try:
        found = await models.list()
        assert found == FoundServer(
            *("llama-server", keyless_server, (ListedModel("tiny", CONTEXT_TOKENS),)),
            names_needed=False,
            endpoint="model",
        )
        with pytest.raises(ModelRefused, match="loads and unloads no models on request"):
            await models.unload("tiny")
    finally:
        await models.close()


async def test_a_huge_list_is_cut_and_says_so() -> None:
    names = [f"model-{number}" for number in range(2_000)]
    async with models_of(ollama(*names, loaded=("model-1999",))) as models:
        found = await models.list()
    assert len(found.models) + found.left_out == 2_000
    assert len(found.models) == 500
    assert list(found.lines())[-1].startswith("and 1,500 more")


async def test_names_that_would_control_a_terminal_or_a_file_are_not_listed() -> None:
    names = ("\x1b]52;c;aGk=\x07", "a\nurl: http://evil", "x" * 500, "\u202eabc", "", "--help", "ok")
    async with models_of(ollama(*names)) as models:
        found = await models.list()
    assert {each.name for each in found.models} == {"--help", "ok"}


def endless() -> Answer:
    return Answer(200, [b'{"data":[', b'{"id":"x"},' * 4_000], endless=True)


def hanging() -> Answer:
    return Answer(200, [b'{"data":[', asyncio.Event()])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (hanging, "was not done in time"),
        (endless, "does not list its models"),
        (lambda: Answer(302, headers={"Location": "http://169.254.169.254/v1/models"}), "redirects to another"),
        (lambda: Answer(200, [b"[" * 100_000]), "does not list its models"),
        (lambda: as_json({"data": "x"}), "does not list its models"),
        (lambda: as_json({"data": [{"id": ["x"], "status": 3}, 7, None]}), "lists no model of text"),
        (lambda: as_json({}, 401), "wants an API key"),
    ],
)
async def test_a_server_that_answers_otherwise_is_told_with_the_reason(
    answer: Callable[[], Answer], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_servers, "LIST_SECONDS", 0.5)
    async with models_of(FaultyServer().on("/v1/models", answer())) as models:
        found = await models.list()
        assert (found.models, found.endpoint) == ((), "near")
        assert why in found.problem
        with pytest.raises(ModelError):
            await models.load("x")


async def test_a_redirect_of_a_load_is_not_followed() -> None:
    elsewhere = ManyModels()
    async with elsewhere:
        server = router("a").on("/models/load", Answer(307, headers={"Location": f"{elsewhere.url}/models/load"}))
        async with models_of(server) as models:
            with pytest.raises(ModelRefused, match="redirects to another address"):
                await models.load("a")
    assert elsewhere.requests == []


async def test_a_load_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_servers, "LOAD_SECONDS", 0.3)
    async with models_of(ollama("a").on(GENERATE, Answer(200, [b"{", asyncio.Event()]))) as models:
        with pytest.raises(ModelUnavailable, match="was not done in time"):
            await models.load("a")
