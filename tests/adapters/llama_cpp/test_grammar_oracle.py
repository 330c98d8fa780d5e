from pathlib import Path

import pytest

from tests.adapters.llama_cpp.grammar_oracle import BadGrammar, fits, grammar_oracle

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 'é'\n+    return '😀'\n"
NUMBERS = 'root ::= number ( "," number )*\nnumber ::= "0" | [1-9] [0-9]*\n'
LINES = 'root ::= ( "-" [^\\n]* "\\n" | "+" [^\\n]* "\\n" )+\n'

CASES = [
    ('root ::= "a"', "a", True),
    ('root ::= "a"', "b", False),
    ('root ::= "a"', "aa", False),
    ('root ::= "aa"', "a", False),
    ('root ::= "a"*', "", True),
    ('root ::= "a"*', "a", True),
    ('root ::= "a"*', "aa", True),
    ('root ::= "a"+', "", False),
    (NUMBERS, "12,0,345", True),
    (NUMBERS, "12,,345", False),
    (NUMBERS, "012", False),
    (NUMBERS, "12,", False),
    (LINES, "-x\n+y\n", True),
    (LINES, "-x\n+y", False),
    (LINES, "-x\n y\n", False),
    ("root ::= [^<]*", DIFF, True),
    ("root ::= [a-z]*", DIFF, False),
    ("root ::= [à-ü]", "é", True),
    ("root ::= [à-ü]", "a", False),
    ('root ::= "root" other # root\nother ::= "-" [root]', "root-r", True),
    ('root ::= "root" other # root\nother ::= "-" [root]', "answer-r", False),
]


@pytest.fixture
def sentences() -> list[str]:
    return [sentence for _, sentence, _ in CASES]


async def test_tells_sentences_from_others(tmp_path: Path, sentences: list[str]) -> None:
    async with grammar_oracle(tmp_path, sentences) as server:
        found = [(grammar, sentence, await fits(server, grammar, sentence)) for grammar, sentence, _ in CASES]
    assert found == CASES


async def test_says_when_a_grammar_is_none(tmp_path: Path) -> None:
    async with grammar_oracle(tmp_path, ["a"]) as server:
        with pytest.raises(BadGrammar, match="missing"):
            await fits(server, "root ::= missing (", "a")
