import hashlib
import time
from pathlib import Path

import pytest

from agent_workbench.adapters.demo import MODEL
from scripts.tiny_model import Template, byte_letters, make_vocabulary, spelled, write_tiny_gguf
from tests.llama_fixtures import LlamaServer


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_arguments_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_tiny_gguf(tmp_path / name, seed=3, extra_tokens=["a b"])
    write_tiny_gguf(tmp_path / "other", seed=4, extra_tokens=["a b"])
    assert _hash(tmp_path / "one") == _hash(tmp_path / "two") != _hash(tmp_path / "other")


def test_is_small_and_quick(tmp_path: Path) -> None:
    begun = time.process_time()
    write_tiny_gguf(tmp_path / "tiny.gguf")
    assert time.process_time() - begun < 1.0
    assert (tmp_path / "tiny.gguf").stat().st_size < 1_000_000


@pytest.mark.parametrize("template", ["plain", "think", "hybrid"])
def test_templates_differ(tmp_path: Path, template: Template) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", template=template)
    assert (b"<think>" in (tmp_path / "tiny.gguf").read_bytes().split(b"chat_template")[1]) is (template != "plain")


def test_every_byte_has_a_letter_of_its_own() -> None:
    letters = byte_letters()
    assert len(set(letters)) == 256
    assert spelled("a b\né") == "aĠbĊÃ©"


def test_extra_tokens_change_no_number_and_no_merge_leads_to_them() -> None:
    plain, more = make_vocabulary(), make_vocabulary(["def x():\n", "é", "é"])
    assert more.tokens[: len(plain.tokens)] == plain.tokens
    assert more.merges == plain.merges
    assert list(more.extra.values()) == [len(plain.tokens), len(plain.tokens) + 1]


def test_the_model_of_the_demo_is_what_the_writer_writes(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    assert _hash(tmp_path / "tiny.gguf") == _hash(MODEL)


@pytest.mark.parametrize("text", ["", "a", " the"])
def test_refuses_extra_tokens_that_are_there_already(text: str) -> None:
    with pytest.raises(ValueError, match="token already"):
        make_vocabulary([text])


def test_tokens_are_distinct() -> None:
    tokens = make_vocabulary().tokens
    assert len(tokens) == len(set(tokens))


def test_a_vocabulary_of_any_size_begins_as_the_tiny_one_does() -> None:
    tiny, large = make_vocabulary(), make_vocabulary(size=30_000)
    assert len(large.tokens) == len(set(large.tokens)) == 30_000
    assert large.tokens[: len(tiny.tokens)] == tiny.tokens
    assert (large.merges, large.control, large.marks) == (tiny.merges, tiny.control, tiny.marks)
    assert make_vocabulary(size=30_000).tokens == large.tokens


async def test_a_server_reads_words_as_tokens(llama_server: LlamaServer) -> None:
    model = llama_server.model()
    text = "Please read the file and run the tests: é😀\n"
    (count,) = await model.count_tokens([text])
    await model.close()
    assert 8 <= count <= len(text.encode()) // 2
