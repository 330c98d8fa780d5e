"""Files for `bench.edits`: from the standard library, and generated ones with unusual content."""

import sysconfig
from pathlib import Path
from random import Random

MOST_BYTES = 200_000


def library_files(count: int, random: Random) -> dict[str, bytes]:
    """Return files of the standard library by a path below `lib/`."""
    root = Path(sysconfig.get_paths()["stdlib"])
    found = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    chosen = random.sample(found, min(count, len(found)))
    return {f"lib/{path.relative_to(root)}": path.read_bytes()[:MOST_BYTES] for path in chosen}


def given_files(paths: list[str]) -> dict[str, bytes]:
    """Return these files by their names, the later of two of the same name below a folder of its own."""
    files: dict[str, bytes] = {}
    for number, path in enumerate(map(Path, paths)):
        name = path.name if path.name not in files else f"{number}/{path.name}"
        files[name] = path.read_bytes()
    return files


def odd_files() -> dict[str, bytes]:
    """Return files with every kind of line end, line and last line, and with lines that read like a diff."""
    code = [f"value_{number} = {number}" for number in range(60)]
    repeated = ["def f():", "    return 1", ""] * 12 + ["x = 1", ""] + ["def f():", "    return 1", ""] * 8
    texts = {
        "crlf.txt": "\r\n".join([*code, ""]),
        "crlf_open.txt": "\r\n".join(code),
        "mixed.txt": "".join(line + ("\r\n" if at % 3 else "\n") for at, line in enumerate(code)),
        "open.txt": "\n".join(code),
        "open_repeated.txt": "a\nb\na\nb\na",
        "tabs.mk": "".join(f"target{at}:\n\tdo {at}\n\t\tmore\t{at}  \n" for at in range(20)),
        "form feed.el": "".join(f";; part {at}\n\f\n(part {at})\n" for at in range(20)),
        "one.txt": "only\n",
        "one_open.txt": "only",
        "blank.txt": "\n",
        "blanks.txt": "\n\n\n  \n\nx\n\n\n",
        "empty.txt": "",
        "long.js": "".join(f"var v{at} = '{'x' * (at * 97)}';\n" for at in range(30)) + "y" * 9_000 + "\nlast();\n",
        "größe.md": "".join(f"Größe {at}: 大きさ 😀 {chr(0x3B1 + at)}\n" for at in range(20)),
        "repeated.py": "\n".join(repeated) + "\n",
        "same.txt": "same\n" * 30,
        "query.sql": "".join(
            f"-- part {at}\n++ plus {at}\n- minus {at}\n+ more {at}\n@@ at {at}\n-\n" for at in range(12)
        ),
        "patch.diff": "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-only\n+other\n\\ No newline at end of file\n",
        "quotes.txt": '"a" \\ \'b\' \\n [c] {d}\n`e` $f\n"""\n\\\n#\n',
        "space.txt": " lead\n  more\ntrail \n \n\t\n",
        "bom.txt": "\ufefffirst\nsecond\n\u2028third\n\u0085fourth\n",
    }
    files = {f"odd/{name}": text.encode() for name, text in texts.items()}
    return files | {
        "odd/latin.txt": "".join(f"line {at}\ngr\xfc\xdfe {at}\n" for at in range(20)).encode("latin-1"),
        "odd/bare_cr.txt": b"a\rb\nc\r\rd\r\ne\n",
    }
