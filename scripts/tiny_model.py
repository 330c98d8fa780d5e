"""Writer of a tiny llama model with random weights, which a real server loads at once.

The demo's model is one; `python -m scripts.tiny_model FILE` writes it anew. Tests and benches write others.
"""

import math
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from agent_workbench.adapters.llama_cpp.gbnf import THOUGHT_END, THOUGHT_START

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Template = Literal["plain", "think", "hybrid"]

END_OF_TEXT = "<|endoftext|>"
MESSAGE_START = "<|im_start|>"
MESSAGE_END = "<|im_end|>"

# With these a prompt has about as many tokens as words and signs. A merge adds one letter, so every prefix is a token
# as well. Common words come first, because the tokenizer merges in this order.
_WORDS = (
    "the and that for with not you are this from have was which when will task test tests file files line lines step"
    " return import class self def None True False assert raise error value name path text type list dict string int"
    " Thought: Action: Observation: plan diff patch change changed read write run code function module print index"
    " because should first next then there only must after before content passed failed expected result command"
    " pytest python src init main core true false null"
)
_SIGNS = (
    "    ",
    "\n    ",
    "\n\n",
    "():",
    '": "',
    '", "',
    "---",
    "+++",
    "@@",
    "==",
    "->",
    "('",
    "')",
    '("',
    '")',
    "__",
    "b/",
)


@cache
def byte_letters() -> tuple[str, ...]:
    """Return the printable letter that stands for each of the 256 bytes in a byte-level vocabulary (GPT-2's table)."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in itself else chr(next(others)) for byte in range(256))


def spelled(text: str) -> str:
    """Return `text` in the letters of a byte-level vocabulary."""
    letters = byte_letters()
    return "".join(letters[byte] for byte in text.encode())


class Vocabulary(Struct):
    """Tokens, the merges that produce them, and the special tokens.

    `extra` has the numbers of whole texts that no merge produces: a tokenizer never returns one, a sampler may.
    """

    tokens: list[str] = field(default_factory=lambda: list(byte_letters()))
    merges: list[str] = field(default_factory=list)
    control: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)

    def add(self, token: str) -> int:
        """Append a token and return its number."""
        self.tokens.append(token)
        return len(self.tokens) - 1


def make_vocabulary(extra_tokens: Sequence[str] = (), size: int = 0) -> Vocabulary:
    """Return the tiny model's vocabulary; the numbers of everything but `extra_tokens` never change.

    Invented words that no merge produces fill it up to `size`, so that a sampler does as much work as with a real
    model. Raises `ValueError` for an extra token that exists already.
    """
    made = Vocabulary()
    known = set(made.tokens)
    for left, right in _joins():
        if left + right not in known:
            known.add(left + right)
            made.merges.append(f"{left} {right}")
            made.add(left + right)
    for name in (END_OF_TEXT, MESSAGE_START, MESSAGE_END):
        made.control[name] = made.add(name)
    for name in (THOUGHT_START, THOUGHT_END):
        made.marks[name] = made.add(name)
    known.update(made.tokens)
    for text in dict.fromkeys(extra_tokens):
        # A server aborts on a duplicate token.
        if spelled(text) in known or not text:
            raise ValueError(f"{text!r} is a token already, or nothing, and cannot be an extra one")
        made.extra[text] = made.add(spelled(text))
    known.update(made.tokens)
    unheard = (word for word in _made_up_words() if word not in known)
    while len(made.tokens) < size:
        made.add(next(unheard))
    return made


def _made_up_words() -> Iterator[str]:
    """Yield invented words without end, each once, in byte-level letters; half of them start with a space."""
    syllables = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]
    for length in count(2):
        for parts in product(syllables, repeat=length):
            word = "".join(parts)
            yield from (spelled(f" {word}"), word)


def _joins() -> Iterator[tuple[str, str]]:
    """Yield the merges: each word grows by one letter at a time, alone and after a space."""
    for text in (*(form for word in _WORDS.split() for form in (" " + word, word)), *_SIGNS):
        whole = spelled(text)
        for cut in range(1, len(whole)):
            yield whole[:cut], whole[cut]


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
    Raises `OSError` if the file cannot be written, `ValueError` for an extra token that exists already.
    """
    vocabulary = make_vocabulary(extra_tokens, vocabulary_tokens)
    values = {**_description(context_tokens), **_tokenizer(vocabulary, _TEMPLATES[template])}
    with path.open("wb") as file:
        for piece in _gguf(values, _weights(vocabulary, seed)):
            file.write(piece)
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


if __name__ == "__main__":
    write_tiny_gguf(Path(sys.argv[1]))
