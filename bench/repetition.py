"""`python -m bench.repetition [FOLDER ...]`: what the guard against loops in answers stops, and when.

Files are read as answers that write them, plain and as the new lines of a diff: each alarm is a false one. Loops are
blocks of one to eight lines of these files, written again and again after the file's beginning: counted are the tokens
from the end of the first copy to the stop.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

if __package__ in {None, ""}:  # run as a file: the repository's root is where `bench` is found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agent_workbench.core.text.repetition import find_repetition
from bench.edit_sources import library_files, odd_files
from bench.figures import Figure
from bench.vocabulary import Count, load

MOST_CHARS = 200_000
LOOP_CHARS = 6_000
_ENDINGS = frozenset(
    [
        ".py",
        ".pyi",
        ".js",
        ".mjs",
        ".ts",
        ".css",
        ".json",
        ".c",
        ".h",
        ".cpp",
        ".hpp",
        ".sql",
        ".txt",
        ".md",
        ".rst",
        ".html",
        ".xml",
        ".svg",
        ".yml",
        ".yaml",
        ".toml",
        ".csv",
        ".rs",
        ".go",
        ".java",
        ".rb",
        ".lua",
        ".pl",
        ".sh",
        ".vim",
        ".map",
        ".po",
        ".ipynb",
    ]
)


def tables() -> dict[str, str]:
    """Return tables and data as programs generate them, which repeat more than what people write."""
    random = Random(3)
    numbers = [random.randrange(256) for _ in range(4_000)]
    return {
        "bytes.h": "static const unsigned char data[] = {\n"
        + "".join(f"  {', '.join(f'0x{each:02x}' for each in numbers[at : at + 12])},\n" for at in range(0, 4_000, 12)),
        "sparse.h": "".join(f"  {{ {at}, 0, 0, 0, 0, 0, {at % 7}, 0 }},\n" for at in range(600)),
        "unicode.py": "".join(f"    (0x{at:04X}, 0x{at + 3:04X}, 'Lu'),\n" for at in range(0, 9_000, 16)),
        "charmap.py": "".join(f"    '\\ufffe',  # {at:#04x} -> UNDEFINED\n" for at in range(128)),
        "insert.sql": "".join(
            f"INSERT INTO orders (id, customer, total) VALUES ({at}, {at % 40}, {numbers[at]}.00);\n"
            for at in range(500)
        ),
        "grid.css": "".join(f".col-{at} {{ flex: 0 0 {at * 100 / 48:.4f}%; max-width: 100%; }}\n" for at in range(48)),
        "rows.json": "".join(
            f'    {{"id": {at}, "name": "row {at}", "active": true, "parent": null, "tags": []}},\n'
            for at in range(400)
        ),
        "min.js": "".join(f"function a{at}(b,c){{return b[{at}]+c[{at}]}}var d{at}=a{at};" for at in range(300)),
        "cases.py": "".join(f"    assert area({at}, {at + 1}) == {at * (at + 1)}\n" for at in range(200)),
        "truth.csv": "".join(",".join(str(at >> bit & 1) for bit in range(10)) + "\n" for at in range(1_024)),
    }


def folder_files(folders: list[str], seconds: float) -> Iterator[tuple[str, str]]:
    """Yield text files below folders in an order by chance, for so many seconds."""
    found = [
        Path(at, name)
        for folder in folders
        for at, _, names in os.walk(folder)
        for name in names
        if Path(name).suffix in _ENDINGS
    ]
    Random(5).shuffle(found)
    until = time.monotonic() + seconds
    for path in found:
        if time.monotonic() > until:
            return
        try:
            yield str(path), path.read_text("utf-8")[:MOST_CHARS]
        except (OSError, UnicodeDecodeError):
            continue


def alarms(name: str, text: str) -> list[str]:
    """Return the false alarms of a file, written plain and as new lines of a diff."""
    told = []
    for form, written in (("plain", text), ("diff", "".join(f"+{line}\n" for line in text.split("\n")))):
        if found := find_repetition(written):
            block = written[found.end : found.end + min(found.period, 60)]
            told.append(f"{name} ({form}): {found.chars} characters of period {found.period} at {found.end}: {block!r}")
    return told


def loop_tokens(text: str, random: Random, count: Count) -> int | None:
    """Return the tokens written into a loop of a block of `text` before it is stopped, None if it is not."""
    lines = text.split("\n")
    size = random.randint(1, 8)
    first = random.randrange(max(1, len(lines) - size))
    block = "\n".join(lines[first : first + size]) + "\n"
    if len(block.strip()) < 8 or len(block) > 800:
        return 0
    before = "\n".join(lines[max(0, first - 20) : first]) + "\n"
    answer = before + block * (2 + LOOP_CHARS // len(block))
    found = find_repetition(answer)
    if found is None:
        return None
    return count(answer[len(before) + len(block) : found.end + found.chars])


def measure(files: int = 250, loops: int = 300) -> list[Figure]:
    """Return the figures of the bench."""
    _, count = load()
    library = {name: data.decode("utf-8", "replace") for name, data in library_files(files, Random(11)).items()}
    odd = {name: data.decode("utf-8", "replace") for name, data in odd_files().items()}
    texts = library | odd | tables()
    false = [each for name, text in texts.items() for each in alarms(name, text)]
    print("\n".join(false), end="\n" if false else "", file=sys.stderr)
    return [
        Figure(
            f"false alarms on {len(texts)} files, {sum(map(len, texts.values())) / 1e6:.1f} MB",
            len(false),
            "files",
            "0",
        ),
        *_loop_figures(list(library.values()), loops, count),
    ]


def _loop_figures(texts: list[str], loops: int, count: Count) -> list[Figure]:
    random = Random(13)
    stopped = [loop_tokens(random.choice(texts), random, count) for _ in range(loops)]
    tokens = sorted(each for each in stopped if each)
    return [
        Figure("tokens written into a loop before it is stopped, median", median(tokens), "tokens", "150 or less"),
        Figure("the same, 95 of 100 loops", tokens[len(tokens) * 95 // 100], "tokens"),
        Figure(f"loops that are not stopped, of {len(tokens)}", stopped.count(None), "loops", "0"),
    ]


def main(arguments: list[str]) -> int:
    """Print the false alarms in files below folders, or the figures."""
    parser = argparse.ArgumentParser(prog="bench.repetition", description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="read all text files there (none: the figures)")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long files are read")
    options = parser.parse_args(arguments)
    if not options.folders:
        print("\n".join(figure.line() for figure in measure()))
        return 0
    files = size = found = 0
    for name, text in folder_files(options.folders, options.seconds):
        files, size = files + 1, size + len(text)
        for alarm in alarms(name, text):
            found += 1
            print(alarm, flush=True)
    print(f"{found} false alarms in {files:,} files, {size / 1e6:.1f} MB")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
