"""Many texts in two arrays: their letters one behind the other, and where each begins."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Strings:
    """Text `n` is what the bytes `starts[n]` to `starts[n + 1]` of `letters` say in UTF-8, lone surrogates allowed."""

    letters: "NDArray[np.uint8]"
    starts: "NDArray[np.int32]"

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Strings":
        """Store these texts."""
        return cls.of_encoded(text.encode("utf-8", "surrogatepass") for text in texts)

    @classmethod
    def of_encoded(cls, texts: Iterable[bytes]) -> "Strings":
        """Store these texts, given as they are stored."""
        import numpy as np

        some = list(texts)
        starts = np.fromiter(accumulate(map(len, some), initial=0), np.int32, len(some) + 1)
        return cls(np.frombuffer(b"".join(some), np.uint8), starts)

    def __len__(self) -> int:
        """Return how many texts there are."""
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        """Return text `number` (from 0)."""
        start, end = int(self.starts[number]), int(self.starts[number + 1])
        return self.letters[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        """Yield all texts in order."""
        return (text.decode("utf-8", "surrogatepass") for text in self.encoded())

    def encoded(self) -> Iterator[bytes]:
        """Yield all texts in order, as they are stored."""
        letters, start = self.letters.tobytes(), 0
        for end in self.starts[1:].tolist():
            yield letters[start:end]
            start = end
