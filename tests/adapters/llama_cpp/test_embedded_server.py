import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.settings.models import ServingSettings
from tests.adapters.llama_cpp.answers import ask, collect

LOOKALIKE = Path(__file__).with_name("llama_server_lookalike.py")


@pytest.fixture
async def server(tiny_model_path: Path, tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(
        tiny_model_path, log=tmp_path / "state" / "server.log", environ=os.environ, serving=ServingSettings(1024)
    )
    yield server
    await server.stop()


async def test_listens_on_this_machine_alone_and_asks_for_the_key(server: EmbeddedServer) -> None:
    url, key = await server.start()
    listening = [
        connection.laddr
        for connection in psutil.Process(server.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert [address.ip for address in listening] == ["127.0.0.1"]
    assert url == f"http://127.0.0.1:{listening[0].port}"
    assert len(key) > 30
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        assert (await client.get("/props")).status_code == 401
        assert (await client.post("/v1/chat/completions", json={"messages": []})).status_code == 401
        allowed = await client.get(
            "/props", headers={"Authorization": f"Bearer {key}", "Origin": "http://evil.example"}
        )
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] != "http://evil.example"


async def test_each_start_has_another_key(server: EmbeddedServer) -> None:
    assert len({(await server.start())[1] for _ in range(2)}) == 2


async def test_the_key_is_in_no_command_line_and_no_log(server: EmbeddedServer, tmp_path: Path) -> None:
    url, key = await server.start()
    model = LlamaCppModel(url, api_key=key)
    await collect(model, ask(answer_tokens=3))
    await model.close()
    process = psutil.Process(server.pid)
    lines = [" ".join(found.cmdline()) for found in (process, *process.parents())]
    await server.stop()
    log = (tmp_path / "state" / "server.log").read_text()
    assert not [line for line in (*lines, log) if key in line]
    assert "model loaded" in log


async def test_gets_only_what_it_needs_of_the_environment(tiny_model_path: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "GITHUB_TOKEN": "planted", "GGML_PLANTED": "wanted"}
    server = EmbeddedServer(tiny_model_path, log=tmp_path / "server.log", environ=environ, serving=ServingSettings(512))
    await server.start()
    given = psutil.Process(server.pid).environ()
    await server.stop()
    assert "planted" not in given.values()
    assert given["GGML_PLANTED"] == "wanted"


async def test_does_not_load_modules_from_where_we_stand(
    tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("xllamacpp.py", "argparse.py", "agent_workbench.py"):
        (tmp_path / name).write_text("raise SystemExit('obeyed')")
    monkeypatch.chdir(tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    server = EmbeddedServer(tiny_model_path, log=tmp_path / "server.log", environ=environ, serving=ServingSettings(512))
    url, _ = await server.start()
    await server.stop()
    assert url


async def test_the_users_own_server_is_started_instead(tiny_model_path: Path, tmp_path: Path) -> None:
    binary = tmp_path / "llama-server"
    root = LOOKALIKE.parents[3]
    binary.write_text(f'#!/bin/sh\nPYTHONPATH={root}/src exec {sys.executable} {LOOKALIKE} "$@"\n')
    binary.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for named in ("llama-server", str(binary)):
        server = EmbeddedServer(
            tiny_model_path, log=tmp_path / "log", environ=environ, serving=ServingSettings(768, server=named)
        )
        model = EmbeddedModel(server)
        facts = await model.observe()
        await model.close()
        assert facts.model == f"{tiny_model_path.name} by a lookalike"
        assert facts.context_tokens == 768


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read: No such file"), (b"PK\x03\x04", "no GGUF file"), (b"", "no GGUF file")],
)
async def test_a_model_that_is_none(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "some.gguf"
    if content is not None:
        path.write_bytes(content)
    model = EmbeddedModel(EmbeddedServer(path, log=tmp_path / "log", environ=os.environ))
    with pytest.raises(ModelUnavailable, match=words) as caught:
        await model.observe()
    assert str(path) in str(caught.value)
    assert "model.path" in caught.value.advice


async def test_a_model_that_was_cut_says_what_the_server_said(tiny_model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny_model_path.read_bytes()[:100_000])
    model = EmbeddedModel(EmbeddedServer(path, log=tmp_path / "log", environ=os.environ))
    with pytest.raises(ModelUnavailable, match="failed to load model") as caught:
        await model.observe()
    assert "whole" in caught.value.advice


async def test_a_server_that_is_not_there(tiny_model_path: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(
        tiny_model_path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(server="no-such-server")
    )
    with pytest.raises(ModelUnavailable, match="no-such-server") as caught:
        await server.start()
    assert "LLAMA_SERVER" in caught.value.advice


async def test_a_server_that_says_nothing_is_given_up_and_ended(tiny_model_path: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nsleep 60\n")
    silent.chmod(0o755)
    said: list[str] = []
    server = EmbeddedServer(
        tiny_model_path,
        log=tmp_path / "log",
        environ=os.environ,
        serving=ServingSettings(server=str(silent)),
        on_status=said.append,
        start_seconds=1.2,
    )
    with pytest.raises(ModelUnavailable, match="did not listen within"):
        await server.start()
    assert not server.running
    assert any("loads tiny.gguf" in line for line in said)
