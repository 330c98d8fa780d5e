"""A real llama.cpp embeddings server on a tiny BERT in which words of one group have the same vector.

Use in a conftest.py: import the fixtures and list them in `__all__`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from numpy.typing import NDArray

from tests.llama_fixtures import LlamaServer, ServerThread

GROUPS = (
    ("invoice", "bill", "receipt"),
    ("kite", "glider", "wind"),
    ("parse", "tokenize", "syntax"),
)
"""Words with the same vector; all other words are spelled in letters, which have one vector in common."""
CONTEXT_TOKENS = 1_024
_WIDTH = 16
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_tiny_bert(path: Path, groups: Sequence[Sequence[str]] = GROUPS, width: int = _WIDTH) -> None:
    """Write an embedding model (50 kB) that adds up the vectors of a text's words: its one layer does nothing."""
    words = [word for group in groups for word in group]
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    tokens = [*_SPECIAL, *(f"\u2581{word}" for word in (*words, *letters)), *letters]
    # All that is no such word points in one direction of its own, and so tells no texts apart.
    embeddings = np.zeros((len(tokens), width), np.float32)
    embeddings[:, -1] = 1.0
    for number, word in enumerate(words, len(_SPECIAL)):
        embeddings[number, -1] = 0.0
        embeddings[number, next(place for place, group in enumerate(groups) if word in group)] = 1.0
    writer = GGUFWriter(path, "bert")
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(width)
    writer.add_block_count(1)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_uint32("bert.pooling_type", 1)
    writer.add_file_type(0)
    writer.add_tokenizer_model("bert")
    writer.add_token_type_count(2)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(_SPECIAL) + [1] * (len(tokens) - len(_SPECIAL)))
    for name, number in (("bos", 2), ("eos", 3), ("sep", 3), ("cls", 2), ("padding", 0), ("unknown", 1), ("mask", 4)):
        key = "seperator" if name == "sep" else name
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", number)
    tensors: dict[str, NDArray[np.float32]] = {"token_embd.weight": embeddings}
    tensors["token_types.weight"] = np.zeros((2, width), np.float32)
    tensors["position_embd.weight"] = np.zeros((512, width), np.float32)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"):
        tensors[f"blk.0.{part}.weight"] = np.zeros((width, width), np.float32)
        tensors[f"blk.0.{part}.bias"] = np.zeros(width, np.float32)
    for norm in ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"):
        tensors[f"{norm}.weight"] = np.ones(width, np.float32)
        tensors[f"{norm}.bias"] = np.zeros(width, np.float32)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="session")
def embedding_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The GGUF file of the tiny BERT."""
    path = tmp_path_factory.mktemp("embedding-model") / "tiny-bert.gguf"
    write_tiny_bert(path)
    return path


@pytest.fixture(scope="session")
def embedding_server(embedding_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """llama.cpp's embeddings server on the tiny BERT."""
    log = tmp_path_factory.mktemp("embedding-server") / "server.log"
    thread = ServerThread(embedding_model_path, log, CONTEXT_TOKENS, embeddings=True)
    yield thread.start()
    thread.stop()
