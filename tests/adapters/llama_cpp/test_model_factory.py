import os
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.model_registry import model_from_settings
from agent_workbench.core.errors import ConfigError, ModelUnavailable
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings.models import ModelSettings
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import END, FaultyServer, delta, stream
from tests.llama_fixtures import LlamaServer


def _say_nothing(_: str) -> None:
    return None


def _model(settings: ModelSettings, **environ: str) -> Model:
    return model_from_settings(settings, {**os.environ, **environ}, Path("unused.log"), _say_nothing)


async def test_an_address_wins_over_a_file(tiny_model_path: Path, llama_server: LlamaServer) -> None:
    settings = ModelSettings(path=str(tiny_model_path), url=llama_server.url, api_key_env="MY_KEY")
    model = _model(settings, MY_KEY=f" {llama_server.api_key}\n")
    assert isinstance(model, LlamaCppModel)
    assert (await model.observe()).endpoint == llama_server.url
    await model.close()


async def test_the_environment_names_an_address() -> None:
    async with FaultyServer().chat(stream(delta("hi"), END)) as server:
        model = _model(ModelSettings(), LLAMA_SERVER_URL=server.url)
        assert (await collect(model, ask())).text == "hi"
        await model.close()
    assert "authorization" not in server.requests[0].headers


async def test_the_settings_win_over_the_environment() -> None:
    async with FaultyServer() as server:
        model = _model(ModelSettings(url=server.url, name="mine"), LLAMA_SERVER_URL="http://127.0.0.1:1")
        facts = await model.observe()
        await model.close()
        assert (facts.endpoint, facts.model) == (server.url, "mine")


async def test_a_context_that_is_set_bounds_that_of_an_address() -> None:
    async with FaultyServer() as server:
        model = _model(ModelSettings(url=server.url, context_tokens=2048))
        facts = await model.observe()
        await model.close()
        assert (facts.context_tokens, facts.context_source) == (2048, "the settings")


async def test_a_file_is_served(tiny_model_path: Path, tmp_path: Path) -> None:
    settings = ModelSettings(path=str(tiny_model_path), context_tokens=1024)
    model = model_from_settings(settings, os.environ, tmp_path / "server.log", _say_nothing)
    assert isinstance(model, EmbeddedModel)
    facts = await model.observe()
    await model.close()
    assert facts.context_tokens == 1024
    assert (tmp_path / "server.log").exists()


def test_a_file_that_was_named_wins_over_the_environment() -> None:
    model = _model(ModelSettings(path="mine.gguf"), LLAMA_SERVER_URL="http://127.0.0.1:1")
    assert isinstance(model, EmbeddedModel)


async def test_the_environment_names_a_server(tiny_model_path: Path) -> None:
    model = _model(ModelSettings(path=str(tiny_model_path)), LLAMA_SERVER="no-such-server")
    with pytest.raises(ModelUnavailable, match="no-such-server"):
        await model.observe()


async def test_nothing_configured_is_said_when_it_is_asked() -> None:
    model = _model(ModelSettings())
    with pytest.raises(ModelUnavailable, match="no model is configured") as caught:
        await model.observe()
    assert "then start again" in caught.value.advice
    assert caught.value.lasting
    with pytest.raises(ModelUnavailable, match="no model is configured"):
        await collect(model, ask())
    assert await model.count_tokens(["a"]) == (0,)
    await model.close()


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8080", "ftp://host", "http://", "nonsense", "http://[::1", "http://host:99999", "http://a..b"),
        *(f"http://{'a' * 70}", "http://xn--", "http://host/%00"),
    ],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _model(ModelSettings(url=url))
    assert "http://127.0.0.1:8080" in caught.value.advice


@pytest.mark.parametrize("key", ["two words", "line\nend", "schlüssel"])
def test_a_key_that_is_none_is_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _model(ModelSettings(url="http://127.0.0.1:1", api_key_env="MY_KEY"), MY_KEY=key)
    assert key not in repr(caught.value)
