import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.adapters.llama_cpp.gguf_files import HeaderError, read_gguf_facts, read_model_file
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.local_models import GgufFacts
from tests.adapters.llama_cpp.gguf_bytes import Value, header, model_values, text, write_model


def read(folder: Path, data: bytes) -> GgufFacts:
    path = folder / "m.gguf"
    path.write_bytes(data)
    return read_gguf_facts(path)


def test_a_model_that_the_writer_of_llama_cpp_wrote(tiny_model_path: Path) -> None:
    facts = read_gguf_facts(tiny_model_path)
    assert (facts.architecture, facts.layers, facts.trained_tokens) == ("llama", 1, 32768)
    assert facts.cached_numbers == 2 * (32 + 32)
    assert facts.no_language_model == ""


def test_the_size_of_the_cache_is_read_for_each_layer(tmp_path: Path) -> None:
    assert read(tmp_path, header(model_values())).cached_numbers == 32 * 8 * (128 + 128)
    own = model_values(**{"attention.key_length": 256, "attention.value_length": 64})
    assert read(tmp_path, header(own)).cached_numbers == 32 * 8 * (256 + 64)
    mixed = model_values(**{"attention.head_count_kv": [8, 0] * 16})
    assert read(tmp_path, header(mixed)).cached_numbers == 16 * 8 * 256
    every_fourth = read(tmp_path, header(model_values(full_attention_interval=4)))
    assert every_fourth.kv_heads == (0, 0, 0, 8) * 8


def test_experts_states_and_recommended_sampling_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, header(model_values())).sampling == ()
    said = model_values(**{"expert_count": 128, "ssm.state_size": 128})
    recommended: dict[str, Value] = {"general.sampling.top_k": 20, "general.sampling.top_p": -1}
    facts = read(tmp_path, header({**said, **recommended, "general.sampling.temp": "hot"}))
    assert (facts.experts, facts.recurrent, facts.sampling) == (128, True, (("top_k", 20),))
    assert not read(tmp_path, header(model_values(expert_count=-3))).experts


@pytest.mark.parametrize(
    ("values", "tensors", "reason"),
    [
        ({"general.architecture": "clip"}, 1, "images"),
        ({"general.architecture": "llama", "general.type": "mmproj"}, 1, "images"),
        ({"general.architecture": "llama", "general.type": "adapter"}, 1, "adapter"),
        ({"general.architecture": "nomic-bert"}, 1, "embeddings"),
        ({"general.architecture": "qwen3", "qwen3.pooling_type": 3}, 1, "embeddings"),
        ({"general.architecture": "llama"}, 0, "vocabulary without weights"),
    ],
)
def test_what_is_no_language_model_says_why(
    tmp_path: Path, values: dict[str, Value], tensors: int, reason: str
) -> None:
    assert reason in read(tmp_path, header(values, tensors=tensors)).no_language_model


@pytest.mark.parametrize("number", [-1, 0, -(2**63), 2**62, 2**31])
def test_absurd_numbers_are_unknown(tmp_path: Path, number: int) -> None:
    names = ("block_count", "context_length", "embedding_length", "attention.head_count", "attention.key_length")
    values = model_values(**dict.fromkeys((*names, "attention.head_count_kv", "pooling_type"), number))
    facts = read(tmp_path, header(values))
    assert (facts.layers, facts.trained_tokens, facts.cached_numbers, facts.pooling) == (0, 0, 0, 0)
    one_absurd = read(tmp_path, header(model_values(**{"attention.head_count_kv": [number] * 3})))
    assert one_absurd.cached_numbers == 32 * 32 * 256, "a list of another length is none"


def test_values_of_other_kinds_are_unknown(tmp_path: Path) -> None:
    facts = read(tmp_path, header({"general.architecture": 3, "general.name": [1, 2], ".block_count": "x"}))
    assert facts == GgufFacts(tensors=1)
    assert read(tmp_path, header(model_values(block_count=True))).layers == 0


def test_a_name_cannot_control_a_terminal(tmp_path: Path) -> None:
    name = read(tmp_path, header({**model_values(), "general.name": "a\x1b]52;c;x\x07\n" + "b" * 900})).name
    assert name.isprintable()
    assert len(name) <= 80


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04", "not with GGUF"),
        (b"", "not with GGUF"),
        (header({}, version=1), "version 1"),
        (header({}, keys=2**63), "entries"),
        (header({}, keys=3), "cut off"),
        (header({}, keys=1) + struct.pack("<Q", 2**63), "key of"),
        (header({}, keys=1) + text("k") + struct.pack("<I", 99), "unknown kind 99"),
        (header({}, keys=1) + text("k") + struct.pack("<IQ", 8, 2**63), "cut off"),
        (header({}, keys=1) + text("k") + struct.pack("<IIQ", 9, 9, 5), "unknown kind 9"),
        (header({}, keys=1) + text("k") + struct.pack("<IIQ", 9, 12, 2**63), "cut off"),
        (header({}, keys=1) + text("k") + struct.pack("<IIQQ", 9, 8, 5, 2**64 - 1), "cut off"),
    ],
)
def test_damage_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(HeaderError, match=said):
        read(tmp_path, data)


def test_the_vocabulary_is_not_read(tmp_path: Path) -> None:
    data = header(model_values(), keys=8) + text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2**63)
    assert read(tmp_path, data).layers == 32


def test_many_lists_are_read_no_further_than_one(tmp_path: Path) -> None:
    lists = b"".join(text(f"k{number}") + struct.pack("<IIQ", 9, 8, 9_000) + bytes(8 * 9_000) for number in range(3))
    values = model_values()
    with pytest.raises(HeaderError, match="unknown kind 99"):
        read(tmp_path, header({**values}, keys=8) + text("k") + struct.pack("<I", 99))
    # The second list has more texts than are left, so what is behind it is not looked at.
    whole = header(values, keys=len(values) + 4) + lists + text("k") + struct.pack("<I", 99)
    assert read(tmp_path, whole).layers == 32


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_any_bytes_are_facts_or_an_error(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    whole = header(model_values())
    path = tmp_path_factory.getbasetemp() / "noise.gguf"
    path.write_bytes(whole[:at] + noise + whole[at:])
    with contextlib.suppress(HeaderError):
        assert read_gguf_facts(path).cached_numbers >= 0


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gguf")
    with pytest.raises(OSError, match="not a regular file"):
        read_gguf_facts(tmp_path / "m.gguf")


def test_parts_count_together_and_a_missing_one_is_named(tmp_path: Path) -> None:
    first = write_model(tmp_path / "m-00001-of-00002.gguf", size=1000)
    second = write_model(tmp_path / "m-00002-of-00002.gguf", size=500)
    assert read_model_file(first).size == 1500
    second.unlink()
    with pytest.raises(ModelUnavailable, match=r"m-00001-of-00002\.gguf cannot be read: No such file"):
        read_model_file(first)


def test_a_damaged_header_is_left_to_the_server(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf", {"x": 1}, size=100)
    path.write_bytes(b"GGUF" + bytes(60))
    assert read_model_file(path).facts == GgufFacts()
