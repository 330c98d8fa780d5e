"""A tiny model with a recurrent layer beside one with attention, as LFM2 has them, made of the tiny model."""

from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

from scripts.tiny_model import write_tiny_gguf

_CONVOLVED = 3


def write_hybrid_gguf(path: Path, *, temperature: float | None = None) -> None:
    """Write the model, which thinks before it answers; `temperature` is what the file recommends."""
    plain = path.with_name("plain.gguf")
    write_tiny_gguf(plain, template="think")
    reader = GGUFReader(plain)
    tensors = {each.name: np.array(each.data) for each in reader.tensors}
    width, head = tensors["blk.0.attn_q.weight"].shape[0], tensors["blk.0.attn_q.weight"].shape[0] // 2
    writer = GGUFWriter(path, "lfm2")
    writer.add_context_length(32768)
    writer.add_embedding_length(width)
    writer.add_block_count(2)
    writer.add_feed_forward_length(tensors["blk.0.ffn_gate.weight"].shape[0])
    writer.add_head_count(2)
    writer.add_head_count_kv([0, 2])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(head)
    writer.add_shortconv_l_cache(_CONVOLVED)
    if temperature is not None:
        writer.add_float32("general.sampling.temp", temperature)
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            kinds = [*field.types, GGUFValueType.STRING]
            writer.add_key_value(name, field.contents(), kinds[0], kinds[1] if len(field.types) > 1 else None)
    for name, tensor in _hybrid(tensors, width, head).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _hybrid(tensors: dict[str, np.ndarray], width: int, head: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)

    def noise(rows: int, columns: int) -> np.ndarray:
        made: np.ndarray = random.standard_normal((rows, columns)) * columns**-0.5
        return made.astype(np.float32)

    made = {name: tensors[name] for name in ("token_embd.weight", "output.weight")}
    made["token_embd_norm.weight"] = tensors["output_norm.weight"]
    for layer in (0, 1):
        names = ("attn_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
        made |= {f"blk.{layer}.{name}.weight": tensors[f"blk.0.{name}.weight"] for name in names}
    made |= {f"blk.1.attn_{part}.weight": tensors[f"blk.0.attn_{part}.weight"] for part in ("q", "k", "v", "output")}
    made |= {f"blk.1.attn_{part}_norm.weight": np.ones(head, np.float32) for part in "qk"}
    output = noise(width, width)
    output[0] = 0  # as in the other layers, so that the constant of the embedding stays
    return made | {
        "blk.0.shortconv.conv.weight": noise(width, _CONVOLVED),
        "blk.0.shortconv.in_proj.weight": noise(3 * width, width),
        "blk.0.shortconv.out_proj.weight": output,
    }
