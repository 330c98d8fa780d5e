"""`python -m agent_workbench.adapters.retrieval.vectors.onnx_server FOLDER`: vectors by the model in a folder."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.vectors.lsa import unit
from agent_workbench.adapters.retrieval.worker_processes.messages import Message, serve_messages, unpack_texts

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

_NAMES = ("model.onnx", "model_quantized.onnx", "model_int8.onnx", "model_quint8_avx2.onnx")
_MOST_TOKENS = 256
_THREADS = 2
MOST_SECONDS = 120


class Encoder:
    """The model, loaded when the first text comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: onnxruntime.InferenceSession | None = None
        self._tokenizer: tokenizers.Tokenizer | None = None

    def embed(self, message: Message) -> Message:
        """Return a vector of length 1 for each text: the mean of its tokens' vectors."""
        import numpy as np

        texts = unpack_texts(message.array("texts", "uint8", 1))
        session, tokenizer = self._loaded()
        encoded = tokenizer.encode_batch(texts or [" "])
        given = {
            "input_ids": np.array([each.ids for each in encoded], dtype=np.int64),
            "attention_mask": np.array([each.attention_mask for each in encoded], dtype=np.int64),
            "token_type_ids": np.array([each.type_ids for each in encoded], dtype=np.int64),
        }
        wanted = {each.name for each in session.get_inputs()}
        states = np.asarray(session.run(None, {name: given[name] for name in wanted})[0], dtype=np.float32)
        if states.ndim == 3:
            mask = given["attention_mask"][:, :, None].astype(np.float32)
            states = (states * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1.0)
        return Message("embedded", {}, {"vectors": unit(states)})

    def _loaded(self) -> "tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer]":
        if self._session is None or self._tokenizer is None:
            import onnxruntime
            import tokenizers

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = _THREADS
            # Else what the longest text took is never given back.
            options.enable_cpu_mem_arena = False
            options.enable_mem_pattern = False
            self._tokenizer = tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            self._tokenizer.enable_truncation(_MOST_TOKENS)
            self._tokenizer.enable_padding()
            path = str(find_model(self._folder))
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return self._session, self._tokenizer


def find_model(folder: Path) -> Path:
    """Return the model's file in a folder; raise `FileNotFoundError`."""
    for place in (folder, folder / "onnx"):
        for name in _NAMES:
            if (place / name).is_file():
                return place / name
    raise FileNotFoundError(f"there is no {_NAMES[0]} in {folder}")


if __name__ == "__main__":
    serve_messages({"embed": Encoder(Path(sys.argv[1])).embed}, MOST_SECONDS)
