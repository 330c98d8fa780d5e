"""The adapter answers every line, in order, whatever it holds."""

import json
import subprocess
import sys
from pathlib import Path

ADAPTER = Path(__file__).resolve().parents[2] / "bench" / "patch_adapter.py"
CHANGE = "--- a/x\n+++ b/x\n@@ @@\n-a\n+\u00e9\n"


def answers(*lines: str) -> list[dict[str, object]]:
    told = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([sys.executable, ADAPTER], input=told.encode(), capture_output=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def asked(patch: str, pre: dict[str, str], name: str = "1") -> str:
    return json.dumps({"id": name, "patch": patch, "pre": pre})


def test_the_whole_mapping_is_answered_to_the_byte() -> None:
    gone = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    one, two = answers(asked(CHANGE, {"x": "a\r\nb", "y": "k\r"}, "one"), asked(gone, {"x": "a\n", "y": ""}, "two"))
    assert (one["id"], one["post"]) == ("one", {"x": "\u00e9\r\nb", "y": "k\r"})
    assert (two["id"], two["post"], two["repaired"]) == ("two", {"y": ""}, [])


def test_odd_lines_are_answered_with_a_reason() -> None:
    odd = [
        "no json",
        "[1]",
        '{"id": 1}',
        "[" * 5000,
        asked("\ud800", {}),
        asked(CHANGE, {"x": "\ud800"}),
        asked("", {}),
    ]
    found = answers(*odd, asked(CHANGE, {"x": "a\n"}))
    assert [each["post"] for each in found] == [None] * len(odd) + [{"x": "\u00e9\n"}]
    assert all(each["reason"] for each in found[:-1])
