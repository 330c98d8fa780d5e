"""What a model that makes vectors is asked: texts of a file, of which its vector is the mean."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Models of this kind read a few hundred tokens; of a long file the beginning says most.
PART_CHARS = 1_200
MOST_PARTS = 6
MOST_DIMENSIONS = 8_192


class EmbeddingFailed(Exception):
    """The model gave no vectors; the text says why, and it may be asked again later."""


class EmbeddingModel(Protocol):
    """Something that makes vectors of texts."""

    @property
    def name(self) -> str:
        """What tells its vectors from those of others, fit for a folder's name."""

    async def embed(self, texts: Sequence[str]) -> "Floats":
        """Return a vector of length 1 for each text; raise `EmbeddingFailed`."""

    async def close(self) -> None:
        """End what runs for it."""


def parts_of(data: bytes) -> list[str]:
    """Return the texts that stand for a file, at least one."""
    text = data[: PART_CHARS * MOST_PARTS * 4].decode("utf-8", "replace")
    parts: list[str] = []
    while text and len(parts) < MOST_PARTS:
        cut = text.rfind("\n", 0, PART_CHARS) + 1 if len(text) > PART_CHARS else 0
        cut = cut or PART_CHARS
        parts.append(text[:cut])
        text = text[cut:]
    return [part for part in parts if part.strip()] or ["empty"]
