"""Strings stored in two arrays: their bytes in sequence, and the offset of each."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PackedStrings(Struct, frozen=True):
    """String `n` is bytes `starts[n]` to `starts[n + 1]` of `letters` in UTF-8; lone surrogates are allowed."""

    letters: "NDArray[np.uint8]"
    starts: "NDArray[np.int32]"

    @classmethod
    def of(cls, texts: Iterable[str]) -> "PackedStrings":
        """Return an array of these strings."""
        import numpy as np

        some = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = np.fromiter(accumulate(map(len, some), initial=0), np.int32, len(some) + 1)
        return cls(np.frombuffer(b"".join(some), np.uint8), starts)

    @classmethod
    def joined(cls, parts: "Sequence[PackedStrings]", kept: "Sequence[NDArray[np.bool_]]") -> "PackedStrings":
        """Return the strings of all parts in order, filtered by the mask of each."""
        import numpy as np

        sizes = [np.diff(part.starts) for part in parts]
        letters = [
            part.letters if mask.all() else part.letters[np.repeat(mask, size)]
            for part, mask, size in zip(parts, kept, sizes, strict=True)
        ]
        kept_sizes = np.concatenate([size[mask] for size, mask in zip(sizes, kept, strict=True)])
        starts = np.zeros(len(kept_sizes) + 1, np.int32)
        np.cumsum(kept_sizes, out=starts[1:])
        return cls(np.concatenate(letters), starts)

    def __len__(self) -> int:
        """Return the number of strings."""
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        """Return string `number` (from 0)."""
        start, end = int(self.starts[number]), int(self.starts[number + 1])
        return self.letters[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        """Yield all strings in order."""
        letters, start = self.letters.tobytes(), 0
        for end in self.starts[1:].tolist():
            yield letters[start:end].decode("utf-8", "surrogatepass")
            start = end
