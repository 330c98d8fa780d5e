"""Endpoints that a worker tells of: those that this machine could use."""

from pathlib import Path

from agent_workbench.adapters.llama_cpp.embedded_server import ENDPOINT
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings, RoleSettings, TokenPrice
from agent_workbench.subjects.worker.membership_calls import WorkerEndpoint
from agent_workbench.subjects.worker.run_calls import worker_endpoints


def test_only_endpoints_with_their_key_and_file_count_and_a_paid_one_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").touch()
    paid = TokenPrice(1.0, 2.0)
    settings = Settings(
        model=ModelSettings(path=str(tmp_path / "own.gguf")),
        endpoints=(
            ("near", EndpointSettings(url="http://127.0.0.1:1")),
            ("gone", EndpointSettings(path=str(tmp_path / "gone.gguf"))),
            ("keyless", EndpointSettings(url="http://far", api_key_env="NO_KEY")),
            ("paid", EndpointSettings(url="http://paid", api_key_env="KEY", dollars_per_million_tokens=paid)),
            ("unused", EndpointSettings(url="http://unused")),
        ),
        roles=RoleSettings(executor=("near", "gone", "keyless", "paid"), planner=("model", "near")),
    )
    assert set(worker_endpoints(settings, {"KEY": "k"})) == {
        WorkerEndpoint("near"),
        WorkerEndpoint("paid", model="paid"),
        WorkerEndpoint("model", ENDPOINT, "own.gguf"),
    }
