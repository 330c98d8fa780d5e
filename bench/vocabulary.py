"""Token counts with the vocabulary of a real model: a `tekken` file of Mistral's, from the wheel `mistral-common`.

`BENCH_VOCABULARY` names the wheel or the file; without it, words and signs are counted, which is no real tokenizer.
"""

import base64
import json
import os
import re
import zipfile
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

Count = Callable[[str], int]

VARIABLE = "BENCH_VOCABULARY"
MEMBER = "mistral_common/data/tekken_240911.json"
# The file's own pattern, with Python's classes of characters.
_UPPER, _LOWER, _LETTER = r"[^\W\d_a-zß-öø-ÿ]", r"[^\W\d_A-ZÀ-ÖØ-Þ]", r"[^\W\d_]"
_SPLIT = re.compile(
    rf"(?:[^\r\n\w]|_)?{_UPPER}*{_LOWER}+|(?:[^\r\n\w]|_)?{_UPPER}+{_LOWER}*|\d"
    r"| ?(?:[^\s\w]|_)+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WORDS = re.compile(r"\w+|[^\w\s]|\n")


def load() -> tuple[str, Count]:
    """Return the name of the vocabulary and its count of a text's tokens."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        return "words and signs", lambda text: len(_WORDS.findall(text))
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            data = json.loads(wheel.read(MEMBER))
        name = f"{Path(path).name}, {Path(MEMBER).name}"
    else:
        data, name = json.loads(Path(path).read_bytes()), Path(path).name
    most = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(each["token_bytes"]): each["rank"] for each in data["vocab"][:most]}
    return name, _counter(ranks)


def _counter(ranks: dict[bytes, int]) -> Count:
    @lru_cache(maxsize=100_000)
    def piece_tokens(piece: str) -> int:
        """Merge the two neighbours of the lowest rank until none is a token."""
        parts = [bytes([byte]) for byte in piece.encode()]
        while len(parts) > 1:
            pairs = [(ranks.get(a + b), at) for at, (a, b) in enumerate(pairwise(parts))]
            best = min(((rank, at) for rank, at in pairs if rank is not None), default=None)
            if best is None:
                break
            at = best[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return len(parts)

    return lambda text: sum(map(piece_tokens, _SPLIT.findall(text)))
