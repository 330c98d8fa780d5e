import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedModel, EmbeddedServer
from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings.models import ServingSettings
from tests.adapters.llama_cpp.contract import ModelContract
from tests.llama_fixtures import LlamaServer


class TestLlamaCppModel(ModelContract):
    @pytest.fixture
    async def model(self, llama_server: LlamaServer) -> AsyncIterator[Model]:
        model = llama_server.model()
        yield model
        await model.close()


class TestScriptedModel(ModelContract):
    @pytest.fixture
    async def model(self, llama_server: LlamaServer) -> AsyncIterator[Model]:
        model = ScriptedModel(llama_server.model(), {"T-1": ["never asked for"]})
        yield model
        await model.close()


class TestEmbeddedModel(ModelContract):
    @pytest.fixture
    async def model(self, tiny_model_path: Path, tmp_path: Path) -> AsyncIterator[Model]:
        serving = ServingSettings(8192)
        server = EmbeddedServer(tiny_model_path, log=tmp_path / "server.log", environ=os.environ, serving=serving)
        model = EmbeddedModel(server)
        yield model
        await model.close()
