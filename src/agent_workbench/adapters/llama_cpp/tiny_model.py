"""Writer of a tiny llama model with random weights, which a real server loads at once."""

import math
import os
from collections.abc import Mapping, Sequence
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
    from gguf import GGUFWriter
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
    from gguf import GGUFWriter

    vocabulary = make_vocabulary(extra_tokens, vocabulary_tokens)
    # A server may be reading the file that is replaced.
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    writer = GGUFWriter(part, "llama")
    _describe(writer, context_tokens)
    _add_tokens(writer, vocabulary, _TEMPLATES[template])
    for name, tensor in _weights(vocabulary, seed).items():
        writer.add_tensor(name, tensor)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        writer.close()
        part.unlink(missing_ok=True)
    return vocabulary.extra


def _describe(writer: "GGUFWriter", context_tokens: int) -> None:
    writer.add_name("tiny-random")
    writer.add_description("random weights, for trying out and testing; says nothing sensible")
    writer.add_context_length(context_tokens)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_file_type(0)


def _add_tokens(writer: "GGUFWriter", vocabulary: Vocabulary, template: str) -> None:
    from gguf import TokenType

    kinds = [TokenType.NORMAL] * len(vocabulary.tokens)
    for number in vocabulary.control.values():
        kinds[number] = TokenType.CONTROL
    for number in vocabulary.marks.values():
        kinds[number] = TokenType.USER_DEFINED
    writer.add_vocab_size(len(vocabulary.tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(vocabulary.merges)
    writer.add_bos_token_id(vocabulary.control[END_OF_TEXT])
    writer.add_eos_token_id(vocabulary.control[MESSAGE_END])
    writer.add_pad_token_id(vocabulary.control[END_OF_TEXT])
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)


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
