"""GGUF headers byte by byte, also such as no writer makes."""

import struct
from collections.abc import Mapping
from pathlib import Path

Value = int | str | bool | list[int]


def header(values: Mapping[str, Value], *, tensors: int = 1, version: int = 3, keys: int | None = None) -> bytes:
    """Return a header; whole numbers are signed and have 64 bits."""
    said = struct.pack("<4sIQQ", b"GGUF", version, tensors, len(values) if keys is None else keys)
    return said + b"".join(text(key) + value(each) for key, each in values.items())


def text(said: str) -> bytes:
    """Return a text as the format has it."""
    data = said.encode()
    return struct.pack("<Q", len(data)) + data


def value(said: Value) -> bytes:
    """Return a value with its kind."""
    match said:
        case bool():
            return struct.pack("<I?", 7, said)
        case int():
            return struct.pack("<Iq", 11, said)
        case str():
            return struct.pack("<I", 8) + text(said)
        case _:
            return struct.pack(f"<IIQ{len(said)}q", 9, 11, len(said), *said)


def model_values(**other: Value) -> dict[str, Value]:
    """Return the values of a model of 8 billion weights; `other` are keys below `llama`."""
    return {
        "general.architecture": "llama",
        "general.name": "Coder",
        "llama.block_count": 32,
        "llama.context_length": 32768,
        "llama.embedding_length": 4096,
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
        **{f"llama.{key}": each for key, each in other.items()},
    }


def write_model(path: Path, values: Mapping[str, Value] | None = None, *, size: int = 0, tensors: int = 1) -> Path:
    """Write a file with such a header that has `size` bytes, of which the rest is a hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(header(model_values() if values is None else values, tensors=tensors))
        file.truncate(max(size, file.tell()))
    return path
