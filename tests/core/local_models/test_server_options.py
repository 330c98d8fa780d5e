import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.local_models import CONTEXTS, GgufFacts, ServerOptions, server_options
from agent_workbench.core.settings.models import CacheType, ServingSettings
from agent_workbench.core.workers import Gpu, MachineResources

GB = 10**9
# 131 kB of f16 for each token, as Llama 3 with 8 billion weights has.
FACTS = GgufFacts("llama", "Coder", "", 290, 32, 131072, (8,) * 32, 128, 128)
SIZE = 5 * GB


def options(
    free_gb: float, said: ServingSettings | None = None, *gpus: Gpu, facts: GgufFacts = FACTS, size: int = SIZE
) -> ServerOptions:
    machine = MachineResources(
        cores=8, physical_cores=6, memory_total_gb=64, memory_available_gb=free_gb / 1.073741824, gpus=gpus
    )
    return server_options(facts, size, machine, said or ServingSettings())


@pytest.mark.parametrize(
    ("free_gb", "tokens", "kind", "fits"),
    [
        (30, 32768, CacheType.F16, True),
        (10, 24576, CacheType.F16, True),
        (9, 16384, CacheType.F16, True),
        # With f16 less than the usual context has room.
        (8, 16384, CacheType.Q8_0, True),
        (7, 4096, CacheType.Q8_0, True),
        (4, 4096, CacheType.Q8_0, False),
    ],
)
def test_the_context_is_what_the_memory_has_room_for(free_gb: float, tokens: int, kind: CacheType, fits: bool) -> None:
    made = options(free_gb)
    assert (made.context_tokens, made.cache_type, made.fits) == (tokens, kind, fits)
    assert f"context {tokens:,}: KV cache " in made.reasons[0]
    assert f"of {free_gb:.1f} GB free" in made.reasons[0]
    assert "trained for 131,072" in made.reasons[0]
    assert made.reasons[-1].startswith("does not fit: it needs 5.8 GB") != fits


def test_a_context_is_not_larger_than_that_of_the_training() -> None:
    short = GgufFacts("llama", layers=32, tensors=1, trained_tokens=2048, kv_heads=(8,) * 32, key_length=128)
    assert options(60, facts=short).context_tokens == 2048
    assert options(60, ServingSettings(context_tokens=9000), facts=short).context_tokens == 9000


def test_what_the_user_says_is_taken() -> None:
    said = ServingSettings(9000, 3, 12, CacheType.Q4_0)
    made = options(60, said)
    assert (made.context_tokens, made.threads, made.gpu_layers, made.cache_type) == (9000, 3, 12, CacheType.Q4_0)
    assert sum("set in the settings" in each for each in made.reasons) == 4


def test_threads_are_physical_cores_within_the_limits() -> None:
    assert options(30).threads == 6
    machine = MachineResources(cores=2, physical_cores=6, memory_total_gb=8, memory_available_gb=8)
    limited = server_options(FACTS, SIZE, machine, ServingSettings())
    assert limited.threads == 2
    assert (
        "threads 2: as many cores as the container may use, which sleep while they wait for each other"
        in limited.reasons
    )
    assert options(30, size=600_000).threads == 1
    assert server_options(FACTS, SIZE, MachineResources(), ServingSettings()).threads == 0


def test_layers_go_to_the_gpu_of_ones_own_server() -> None:
    own, card = ServingSettings(server="llama-server"), Gpu("card", 24, 22)
    assert options(30, own, card).gpu_layers == 33
    assert "GPU layers all" in options(30, own, card).reasons[-1]
    part = options(30, own, Gpu("card", 8, 5))
    assert part.gpu_layers is not None
    assert 8 < part.gpu_layers < 24
    assert f"GPU layers {part.gpu_layers} of 32" in part.reasons[-1]
    assert options(30, own).gpu_layers is None
    # The built-in server may have no support for it, so its memory counts for nothing.
    assert options(4, None, card).gpu_layers is None
    assert not options(4, None, card).fits
    assert options(4, own, card).fits


def test_what_is_unknown_is_said() -> None:
    unknown = server_options(GgufFacts(), SIZE, MachineResources(), ServingSettings())
    assert (unknown.context_tokens, unknown.fits) == (16384, True)
    assert "unknown here" in unknown.reasons[0]
    assert "does not say" in options(30, facts=GgufFacts()).reasons[0]
    assert not options(3, facts=GgufFacts()).fits


def test_prompts_of_others_are_kept_in_what_is_left() -> None:
    assert options(60).prompt_cache_bytes == 2 << 30
    assert 0 <= options(10).prompt_cache_bytes < 1 << 30
    assert options(4).prompt_cache_bytes == 0


@given(
    st.floats(0, 1e6),
    st.integers(0, 10**15),
    st.integers(0, 1 << 30),
    st.integers(0, 2000),
    st.integers(0, 1 << 20),
    st.one_of(st.none(), st.integers(1, 1 << 30)),
    st.sampled_from(CacheType),
    st.lists(st.builds(Gpu, st.just(""), st.floats(0, 1e4), st.floats(0, 1e4)), max_size=3),
)
def test_any_model_on_any_machine_has_options(
    free: float,
    size: int,
    trained: int,
    layers: int,
    length: int,
    tokens: int | None,
    kind: CacheType,
    gpus: list[Gpu],
) -> None:
    facts = GgufFacts("x", layers=layers, trained_tokens=trained, kv_heads=(8,) * layers, key_length=length)
    said = ServingSettings(tokens, cache_type=kind, server="s")
    made = options(free, said, *gpus, facts=facts, size=size)
    assert made.context_tokens == tokens or made.context_tokens in {*CONTEXTS, trained}
    assert 0 <= (made.gpu_layers or 0) <= layers + 1
    assert made.cache_type is not CacheType.AUTO
    assert all(len(each) < 200 for each in made.reasons)
