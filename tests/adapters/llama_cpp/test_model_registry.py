"""The models of all roles as settings name them: what is shared, what is refused, and where keys go."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.llama_cpp.endpoint_chain import ChainedModel
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.llama_cpp.model_registry import ModelRegistry
from agent_workbench.core.diagnostics import endpoint_lines, settings_for
from agent_workbench.core.errors import ConfigError, ModelRefused, ModelUnavailable, UsageError
from agent_workbench.core.model import Purpose
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings, RoleSettings, TokenPrice
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import END, FaultyServer, delta, error, stream

PRICE = TokenPrice(1_000, 1_000)


def board(settings: Settings, folder: Path, environ: Mapping[str, str] | None = None) -> ModelRegistry:
    return ModelRegistry(settings, environ or {}, folder / "model.log", folder, lambda _: None)


def test_one_model_for_everything_is_asked_directly(tmp_path: Path) -> None:
    settings = Settings(model=ModelSettings(url="http://127.0.0.1:9"))
    assert isinstance(board(settings, tmp_path).for_roles(), LlamaCppModel)
    with pytest.raises(ConfigError):
        board(Settings(model=ModelSettings(url="nonsense")), tmp_path).for_roles()


async def test_roles_ask_their_own_endpoints(tmp_path: Path) -> None:
    async with FaultyServer().chat(stream(delta("a"), END)) as one, FaultyServer().chat(stream(delta("b"), END)) as two:
        settings = Settings(
            endpoints=(("one", EndpointSettings(url=one.url)), ("two", EndpointSettings(url=two.url))),
            roles=RoleSettings(executor=("one",), reflexion=("two", "one")),
        )
        model = board(settings, tmp_path).for_roles()
        asked = {purpose: (await model.observe(purpose)).endpoint.split(" ")[0] for purpose in Purpose}
        await model.close()
    assert asked == {
        Purpose.EXECUTOR: "one",
        Purpose.SUMMARY: "one",
        Purpose.REFLEXION: "two",
        Purpose.PLANNER: "one",
        Purpose.CONSULTANT: "one",
        Purpose.CHAT: "one",
    }


async def test_endpoints_with_one_file_share_one_server(tiny_model_path: Path, tmp_path: Path) -> None:
    path = str(tiny_model_path)
    settings = Settings(
        endpoints=(
            ("small", EndpointSettings(path=path, context_tokens=512)),
            ("large", EndpointSettings(path=path, context_tokens=1024)),
        ),
        roles=RoleSettings(executor=("small",), reflexion=("large",)),
    )
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    model = ModelRegistry(settings, os.environ, tmp_path / "model.log", tmp_path, lambda _: None).for_roles()
    small, large = await model.observe(Purpose.EXECUTOR), await model.observe(Purpose.REFLEXION)
    started = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    servers = [child for child in started if str(tiny_model_path) in " ".join(child.cmdline()[3:])]
    assert small.context_tokens == large.context_tokens == 1024
    assert len({child.cmdline()[-1] for child in servers}) == 1
    assert list(tmp_path.glob("*.log")) == [tmp_path / "model-small.log"]
    await model.close()
    assert not any(child.is_running() for child in started)


async def test_a_key_reaches_no_other_server_no_child_and_no_error(tiny_model_path: Path, tmp_path: Path) -> None:
    key = "opensesame0123"
    environ = {**os.environ, "MY_SERVER": key}
    async with FaultyServer().on("/props", error(500, f"cannot do {key}")) as first:
        settings = Settings(
            endpoints=(
                ("first", EndpointSettings(url=first.url, api_key_env="MY_SERVER")),
                ("second", EndpointSettings(path=str(tiny_model_path), context_tokens=512)),
            )
        )
        said: list[str] = []
        model = ModelRegistry(settings, environ, tmp_path / "model.log", tmp_path, said.append).for_roles()
        facts = await model.observe()
        children = psutil.Process().children(recursive=True)
        seen = [f"{child.cmdline()} {child.environ()}" for child in children if child.is_running()]
        await model.close()
    assert seen
    assert {request.headers["authorization"] for request in first.requests} == {f"Bearer {key}"}
    assert not [text for text in (*seen, *said, repr(facts), repr(model)) if key in text]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


async def test_a_key_that_is_missing_or_malformed_passes_its_endpoint(tmp_path: Path) -> None:
    async with FaultyServer() as server:
        settings = Settings(
            endpoints=(
                ("missing", EndpointSettings(url=server.url, api_key_env="MISSING")),
                ("odd", EndpointSettings(url=server.url, api_key_env="ODD")),
            )
        )
        model = board(settings, tmp_path, {"ODD": "two words", "MISSING": " "}).for_roles()
        with pytest.raises(ModelUnavailable) as caught:
            await model.observe()
        await model.close()
    assert server.requests == []
    assert "missing: the environment variable MISSING with the API key of missing is not set" in str(caught.value)
    assert "odd: the API key contains a space" in str(caught.value)
    assert "two words" not in f"{caught.value} {caught.value.advice}"


async def test_one_endpoint_keeps_to_the_cap(tmp_path: Path) -> None:
    async with FaultyServer().chat(stream(delta("dear"), END)) as server:
        paid = EndpointSettings(url=server.url, dollars_per_million_tokens=PRICE)
        settings = Settings(endpoints=(("paid", paid),), cost_cap_daily=1.0)
        model = board(settings, tmp_path).for_one("paid")
        assert isinstance(model, ChainedModel)
        assert (await collect(model, ask(prompt_tokens=84))).end.figures.dollars > 0
        with pytest.raises(ModelRefused, match="cost_cap_daily"):
            await collect(model, ask(answer_tokens=2000))
        await model.close()


async def test_what_is_looked_at_is_not_started(tiny_model_path: Path, tmp_path: Path) -> None:
    settings = Settings(
        endpoints=(
            ("file", EndpointSettings(path=str(tiny_model_path))),
            ("gone", EndpointSettings(path=str(tmp_path / "gone.gguf"))),
        )
    )
    switchboard = board(settings, tmp_path)
    assert await asyncio.to_thread(switchboard.looked_at, "file") is None
    with pytest.raises(ModelUnavailable, match=r"gone\.gguf cannot be read"):
        await asyncio.to_thread(switchboard.looked_at, "gone")
    with pytest.raises(ConfigError, match="there is no endpoint 'nobody'"):
        switchboard.for_one("nobody")
    assert switchboard.log == tmp_path / "model-file.log"
    await switchboard.close()


def test_lines_tell_each_role_without_asking() -> None:
    settings = Settings(
        model=ModelSettings(path="a.gguf"),
        endpoints=(("paid", EndpointSettings(url="https://x", api_key_env="K", dollars_per_million_tokens=PRICE)),),
        roles=RoleSettings(executor=("model", "paid"), skills=(("review", ("paid",)),)),
    )
    lines = endpoint_lines(settings, {"K": "secret"})
    assert [(line.role, line.name, line.where, line.key_variable, line.key_set) for line in lines] == [
        ("executor", "model", "a.gguf", "", False),
        ("executor", "paid", "https://x", "K", True),
        ("reflexion", "model", "a.gguf", "", False),
        ("planner", "model", "a.gguf", "", False),
        ("skills.review", "paid", "https://x", "K", True),
    ]
    assert not any(line.key_set for line in endpoint_lines(settings, {"K": "  "}))
    assert "secret" not in repr(lines)


def test_a_name_an_address_or_a_file_is_meant() -> None:
    settings = Settings(
        model=ModelSettings(url="http://x:1", name="m", api_key_env="K"),
        endpoints=(("gpu", EndpointSettings(url="http://gpu")),),
    )
    assert settings_for(settings, "gpu", bool) == ("gpu", settings)
    assert settings_for(settings, "http://x:1/", bool) == ("model", settings), "its own key goes with it"
    name, other = settings_for(settings, "http://y", bool)
    assert (name, other.model.url, other.model.name, other.model.api_key_env) == ("model", "http://y", "", "")
    name, served = settings_for(settings, "a.gguf", lambda path: path == "a.gguf")
    assert (name, served.model.path, served.model.url) == ("model", "a.gguf", "")
    with pytest.raises(UsageError, match="'gpuu' is not an endpoint, an address or a file; did you mean 'gpu'"):
        settings_for(settings, "gpuu", lambda _: False)
