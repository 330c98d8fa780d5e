"""Facts in the header of a GGUF file that decide how much memory its model needs."""

from msgspec import Struct

# A pooling type makes a model one of embeddings or of rankings: it returns vectors, not text.
_NO_POOLING = 0
_NO_LANGUAGE_MODEL = {
    "adapter": "it is an adapter for another model",
    "imatrix": "it holds measurements for quantization",
    "mmproj": "it is a projector for images, part of another model",
    "vocab": "it is a vocabulary without weights",
}
_IMAGES = frozenset({"clip", "mllama", "mtmd"})
_BERT = "bert"


class GgufFacts(Struct, frozen=True):
    """Architecture, kind and sizes of a model; 0 or empty is unknown.

    `kv_heads` has the number of heads in the KV cache for each layer (0: the layer needs no cache). A head stores
    `key_length` and `value_length` numbers for each token. `trained_tokens` is the context of the training.
    """

    architecture: str = ""
    name: str = ""
    kind: str = ""
    tensors: int = 0
    layers: int = 0
    trained_tokens: int = 0
    kv_heads: tuple[int, ...] = ()
    key_length: int = 0
    value_length: int = 0
    pooling: int = _NO_POOLING

    @property
    def cached_numbers(self) -> int:
        """Numbers that the KV cache stores for each token, at most; 0 if the header does not say it.

        Layers with a sliding window count as if they had none.
        """
        return sum(self.kv_heads) * (self.key_length + self.value_length)

    @property
    def no_language_model(self) -> str:
        """Reason why this file cannot answer, empty if it can."""
        if self.kind in _NO_LANGUAGE_MODEL:
            return _NO_LANGUAGE_MODEL[self.kind]
        if self.architecture in _IMAGES:
            return _NO_LANGUAGE_MODEL["mmproj"]
        if self.pooling or _BERT in self.architecture:
            return "it makes embeddings, no text"
        return "" if self.tensors else _NO_LANGUAGE_MODEL["vocab"]
