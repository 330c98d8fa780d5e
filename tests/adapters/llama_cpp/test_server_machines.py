"""Flags of a server on a dozen machines: what a person there would choose, each choice with its reason."""

from pathlib import Path

import pytest
from msgspec import Struct

from agent_workbench.adapters.llama_cpp.embedded_server import server_command
from agent_workbench.core.local_models import GgufFacts, ServerOptions, server_options
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.core.workers import Gpu, MachineResources

OURS, OWN = "", "sh"  # the built-in server, and one of the user's own


class Model(Struct, frozen=True):
    """A model as its header states it, and the size of its file in GB of 10⁹ bytes, as Q4_K_M."""

    facts: GgufFacts
    gigabytes: float


def dense(layers: int, gigabytes: float, heads: int = 8) -> Model:
    facts = GgufFacts("qwen2", "", "", 300, layers, 131_072, (heads,) * layers, 128, 128)
    return Model(facts, gigabytes)


CODER_3B = dense(36, 2.1, heads=2)
CODER_7B = dense(28, 4.7, heads=4)
LLAMA_8B = dense(32, 4.9)
QWEN_14B = dense(48, 9.0)
QWEN_32B = dense(64, 19.9)
LLAMA_70B = dense(80, 42.5)
# 30 billion weights with 3 active ones; and 80 with 3, where one layer of four has attention.
MOE_30B = Model(GgufFacts("qwen3moe", "", "", 579, 48, 262_144, (4,) * 48, 128, 128, experts=128), 18.6)
HYBRID_80B = Model(
    GgufFacts("qwen3next", "", "", 800, 48, 262_144, (0, 0, 0, 2) * 12, 256, 256, experts=512, recurrent=True), 48.5
)
GPT_OSS = Model(
    GgufFacts("gpt-oss", "", "", 459, 24, 131_072, (8,) * 24, 64, 64, experts=32, sampling=(("temp", 1.0),)), 12.1
)


def machine(free: float, *vram: float, cores: int = 8, physical: int | None = None) -> MachineResources:
    """Return a machine with so many GiB of free memory, and cards with so many."""
    cards = tuple(Gpu("card", each + 1, each) for each in vram)
    return MachineResources(
        cores=cores, physical_cores=physical or cores, memory_total_gb=free * 1.3, memory_available_gb=free, gpus=cards
    )


def options(model: Model, where: MachineResources, server: str) -> ServerOptions:
    return server_options(model.facts, int(model.gigabytes * 1e9), where, ServingSettings(server=server))


def flags(made: ServerOptions, server: str) -> str:
    """Return the flags that differ from machine to machine."""
    command = server_command(Path("/m.gguf"), options=made, server=server, api_key="k", environ={"PATH": "/bin"})
    pairs = zip(command.argv, command.argv[1:], strict=False)
    wanted = ("-c", "-t", "-ngl", "-ctk", "--context-tokens", "--threads", "--gpu-layers", "--cache-type")
    return " ".join(f"{name} {value}" for name, value in pairs if name in wanted)


@pytest.mark.parametrize(
    ("model", "where", "server", "expected", "reason"),
    [
        pytest.param(
            *(CODER_3B, machine(5, cores=4), OURS),
            *("--context-tokens 32768 --threads 4 --cache-type f16", "context 32,768: KV cache 1.2 GB of 5.4 GB free"),
            id="8 GB laptop without a GPU, 3B",
        ),
        pytest.param(
            *(CODER_7B, machine(6, cores=4), OURS),
            *("--context-tokens 4096 --threads 4 --cache-type q8_0", "it needs flash attention (auto)"),
            id="8 GB laptop with little open, 7B",
        ),
        pytest.param(
            *(LLAMA_8B, machine(11, cores=8), OURS),
            *("--context-tokens 32768 --threads 8 --cache-type f16", "GPU layers: left to llama.cpp"),
            id="16 GB Apple, 8B",
        ),
        pytest.param(
            *(QWEN_14B, machine(11, cores=10), OWN),
            *("-c 4096 -t 10", "GPU layers: left to llama.cpp"),
            id="16 GB Apple with a llama-server of its own, 14B",
        ),
        pytest.param(
            *(QWEN_14B, machine(12, 7), OWN),
            *("-c 32768 -t 8 -ngl 18", "GPU layers 18 of 48: 6.3 GB of GPU memory are free"),
            id="16 GB laptop with a card of 8 GB, 14B",
        ),
        pytest.param(
            *(QWEN_14B, machine(28, 23, cores=16, physical=8), OWN),
            *("-c 32768 -t 8 -ngl 49", "GPU layers all: 22.7 GB of GPU memory are free"),
            id="card of 24 GB, 14B",
        ),
        pytest.param(
            *(QWEN_32B, machine(28, 23), OWN),
            *("-c 32768 -t 8 -ngl 50", "GPU layers 50 of 64"),
            id="card of 24 GB, 32B",
        ),
        pytest.param(
            *(MOE_30B, machine(28, 23), OWN),
            *("-c 32768 -t 8 -ngl 49", "GPU layers all"),
            id="card of 24 GB, experts that fit",
        ),
        pytest.param(
            *(HYBRID_80B, machine(60, 23, cores=16), OWN),
            *("-c 32768 -t 16", "left to llama.cpp's --fit, which keeps experts (of 512) in memory"),
            id="card of 24 GB and 64 GB, experts that do not fit",
        ),
        pytest.param(
            *(QWEN_32B, machine(28, 15, 15), OWN),
            *("-c 24576 -t 8 -ngl 65", "GPU layers all: 28.5 GB of GPU memory are free"),
            id="two cards of 16 GB, 32B",
        ),
        pytest.param(
            *(LLAMA_70B, machine(60, 23, 23), OWN),
            *("-c 32768 -t 8 -ngl 67", "GPU layers 67 of 80"),
            id="two cards of 24 GB, 70B",
        ),
        pytest.param(
            *(HYBRID_80B, machine(120, cores=32, physical=16), OURS),
            *("--context-tokens 32768 --threads 16 --cache-type f16", "checkpoints: llama.cpp's own"),
            id="128 GB without a GPU, a hybrid model",
        ),
        pytest.param(
            *(MOE_30B, machine(120, cores=4, physical=16), OURS),
            *("--context-tokens 32768 --threads 4 --cache-type f16", "as many cores as the container may use"),
            id="container with 4 of 16 cores, experts",
        ),
        pytest.param(
            *(GPT_OSS, machine(14, cores=8), OURS),
            *("--context-tokens 16384 --threads 8 --cache-type f16", "sampling: the file recommends temp 1"),
            id="16 GB without a GPU, 20B of which 4 are active",
        ),
    ],
)
def test_what_is_computed_for_a_machine(
    model: Model, where: MachineResources, server: str, expected: str, reason: str
) -> None:
    made = options(model, where, server)
    assert made.fits
    assert flags(made, server) == expected
    assert any(reason in each for each in made.reasons), made.reasons


@pytest.mark.parametrize(
    ("model", "where", "server"),
    [
        (LLAMA_8B, machine(5, cores=4), OURS),
        (QWEN_32B, machine(11), OURS),
        (LLAMA_70B, machine(28, 15), OWN),
        # The built-in server computes on the CPU.
        (QWEN_14B, machine(6, 23), OURS),
    ],
)
def test_what_does_not_fit_is_said(model: Model, where: MachineResources, server: str) -> None:
    made = options(model, where, server)
    assert not made.fits
    assert made.reasons[-1].startswith("does not fit: it needs ")
    assert "take a smaller model or quantization" in made.reasons[-1]
