"""Writer of a tiny llama model with random weights, which a real server loads at once."""

import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_workbench.adapters.llama_cpp.vocabulary import (
    END_OF_TEXT,
    MESSAGE_END,
    THOUGHT_END,
    Vocabulary,
    make_vocabulary,
    spelled,
)
from agent_workbench.core.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Template = Literal["plain", "think", "hybrid"]

_WIDTH = 64
_LAYERS = 1
_HEADS = 2
_FEED_FORWARD = 64
# Dimension 0 of the hidden state is set by the embedding and written by no layer, so that its column of the output
# matrix is a bias for each token. The bias gives the noise roughly the token frequencies of text.
_CONSTANT = 4.0
_NEVER = -14.0

_MESSAGES = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
"""
_THINKING_MESSAGES = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' and message.reasoning_content -%}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' -}}
{%- endif -%}
{{- message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
"""
_ASK = "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
_ASK_THINKING = "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}"
# `think` opens the thought itself; with `hybrid` the model may open one.
_TEMPLATES: Mapping[Template, str] = {
    "plain": _MESSAGES + _ASK,
    "think": _THINKING_MESSAGES + _ASK_THINKING,
    "hybrid": _THINKING_MESSAGES + _ASK,
}


def write_tiny_gguf(
    path: Path,
    *,
    seed: int = 1,
    context_tokens: int = 32768,
    template: Template = "plain",
    extra_tokens: Sequence[str] = (),
    vocabulary_tokens: int = 0,
) -> dict[str, int]:
    """Write the model to `path` (0.6 MB, the same bytes for the same arguments) and return the extra tokens' numbers.

    With `vocabulary_tokens` it has at least so many (120,000 make 61 MB). An extra token is a whole text that the
    tokenizer never produces, and that the model never says without a bias.
    Raises `StorageError` if the file cannot be written, `UsageError` for an extra token that exists already.
    """
    vocabulary = make_vocabulary(extra_tokens, vocabulary_tokens)
    values = {**_description(context_tokens), **_tokenizer(vocabulary, _TEMPLATES[template])}
    # A server may be reading the file that is replaced.
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            for piece in _gguf(values, _weights(vocabulary, seed)):
                file.write(piece)
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return vocabulary.extra


_Value = bool | int | float | str | Sequence[int] | Sequence[str]
_GGUF_VERSION, _ALIGNMENT, _F32 = 3, 32, 0
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9


def _gguf(values: Mapping[str, _Value], tensors: "Mapping[str, NDArray[np.float32]]") -> Iterator[bytes]:
    """Yield the bytes of a GGUF file: header, values, a table of the tensors, and their numbers."""
    head = struct.pack("<4sIQQ", b"GGUF", _GGUF_VERSION, len(tensors), len(values))
    table, offset = b"", 0
    for key, value in values.items():
        head += _text(key) + _typed(value)
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        table += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, _F32, offset)
        offset += len(_padded(tensor.tobytes()))
    yield _padded(head + table)
    for tensor in tensors.values():
        yield _padded(tensor.tobytes())


def _typed(value: _Value) -> bytes:
    """Return a value with its type before it; whole numbers are unsigned, those of a list signed."""
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case str():
            return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value[0], str):
        items = b"".join(_text(str(each)) for each in value)
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + items
    return struct.pack(f"<IIQ{len(value)}i", _ARRAY, _INT32, len(value), *value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def _description(context_tokens: int) -> Mapping[str, _Value]:
    return {
        "general.architecture": "llama",
        "general.name": "tiny-random",
        "general.description": "random weights, for trying out and testing; says nothing sensible",
        "llama.context_length": context_tokens,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": _LAYERS,
        "llama.feed_forward_length": _FEED_FORWARD,
        "llama.attention.head_count": _HEADS,
        "llama.attention.head_count_kv": _HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "general.file_type": _F32,
    }


def _tokenizer(vocabulary: Vocabulary, template: str) -> Mapping[str, _Value]:
    kinds = [_NORMAL] * len(vocabulary.tokens)
    for number in vocabulary.control.values():
        kinds[number] = _CONTROL
    for number in vocabulary.marks.values():
        kinds[number] = _USER_DEFINED
    return {
        "llama.vocab_size": len(vocabulary.tokens),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": vocabulary.tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": vocabulary.merges,
        "tokenizer.ggml.bos_token_id": vocabulary.control[END_OF_TEXT],
        "tokenizer.ggml.eos_token_id": vocabulary.control[MESSAGE_END],
        "tokenizer.ggml.padding_token_id": vocabulary.control[END_OF_TEXT],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": template,
    }


def _weights(vocabulary: Vocabulary, seed: int) -> "dict[str, NDArray[np.float32]]":
    """Return all tensors by name, random except in dimension 0."""
    import numpy as np

    random = np.random.default_rng(seed)

    def noise(rows: int, columns: int, deviation: float) -> "NDArray[np.float32]":
        return (random.standard_normal((rows, columns)) * deviation).astype(np.float32)

    def layer_output(columns: int) -> "NDArray[np.float32]":
        made = noise(_WIDTH, columns, columns**-0.5)
        made[0] = 0
        return made

    ones = np.ones(_WIDTH, np.float32)
    count = len(vocabulary.tokens)
    embedding = noise(count, _WIDTH, 1.0)
    embedding[:, 0] = _CONSTANT
    tensors = {"token_embd.weight": embedding, "output_norm.weight": ones}
    for layer in range(_LAYERS):
        block = f"blk.{layer}."
        tensors |= {
            block + "attn_norm.weight": ones,
            **{f"{block}attn_{part}.weight": noise(_WIDTH, _WIDTH, _WIDTH**-0.5) for part in "qkv"},
            block + "attn_output.weight": layer_output(_WIDTH),
            block + "ffn_norm.weight": ones,
            block + "ffn_gate.weight": noise(_FEED_FORWARD, _WIDTH, _WIDTH**-0.5),
            block + "ffn_up.weight": noise(_FEED_FORWARD, _WIDTH, _WIDTH**-0.5),
            block + "ffn_down.weight": layer_output(_FEED_FORWARD),
        }
    # The last norm divides dimension 0 by about this; the other dimensions have a variance near 2 there.
    norm = math.sqrt((_CONSTANT**2 + 2.0 * (_WIDTH - 1)) / _WIDTH)
    output = noise(count, _WIDTH, _WIDTH**-0.5)
    output[:, 0] = np.array(_biases(vocabulary), np.float32) * (norm / _CONSTANT)
    return tensors | {"output.weight": output}


def _biases(vocabulary: Vocabulary) -> list[float]:
    """Return the log-likelihood of each token: words are common, and messages end after some 60 tokens."""
    biases = [_likelihood(token) for token in vocabulary.tokens]
    for number in (*vocabulary.control.values(), *vocabulary.marks.values(), *vocabulary.extra.values()):
        biases[number] = _NEVER
    # Also what closes JSON, so that a bounded answer comes to its end.
    for token in ('"', "}", "]"):
        biases[vocabulary.tokens.index(token)] = math.log(1 / 60)
    for number in (vocabulary.control[MESSAGE_END], vocabulary.marks[THOUGHT_END]):
        biases[number] = math.log(1 / 60)
    return biases


def _likelihood(token: str) -> float:
    """Return the approximate log-frequency of a token; bytes outside ASCII never occur."""
    if len(token) == 1 and not token.isascii() and token not in {spelled(" "), spelled("\n")}:
        return _NEVER
    return math.log((2 if len(token) > 1 else 1) / 1000)
