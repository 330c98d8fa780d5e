"""A little of each language, and what it defines; read from `snippets.txt`."""

import re
from pathlib import Path

_HEAD = re.compile(r"^==== (?P<name>\S+) ==== (?P<symbols>.+)\n", re.MULTILINE)


def _read() -> dict[str, tuple[str, set[str]]]:
    _, *parts = _HEAD.split(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
    return {
        name: (text, set(symbols.split(" | ")))
        for name, symbols, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


# By file name: the text, and the symbols of its pieces (it may have more).
SNIPPETS = _read()
