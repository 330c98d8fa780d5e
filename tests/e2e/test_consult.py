"""Consultants from the shell, over a real server: the answer, its exit code, its record, and its re-run."""

import json

from tests.e2e.machine import Machine, bodies, journal_lines

REVIEW = "CRITICAL calc.py:2 - it subtracts\n\n1 critical, 0 warnings, 0 suggestions"
SCRIPTS = {"review:consultant": [REVIEW], "tdd_red:consultant": ["test_add fails"]}
CODE = {"calc.py": "def add(a, b):\n    return a - b\n", ".env": "KEY=1\n", ".gitignore": "memory/\n"}


def test_a_review_is_answered_recorded_and_made_again(served: Machine) -> None:
    repo = served.new_repo("calc", CODE)
    done = served.scripted(SCRIPTS, "consult", "review", "calc.py", "--json", "--session", "a/../b", cwd=repo)
    assert done.code == 1, done.said
    answer = json.loads(done.out)
    assert (answer["text"], answer["critical"]) == (REVIEW, 1)
    assert answer["findings"] == [
        {"severity": "critical", "path": "calc.py", "line": 2, "text": "calc.py:2 - it subtracts"}
    ]
    (asked,) = bodies(journal_lines(repo), "consultant_asked")
    assert "    2 |     return a - b" in asked["contents"]
    again = served.agent("replay", "--rerun", cwd=repo)
    assert "1 prompt, 1 identical" in again.out, again.said
    assert "review" in served.agent("consult", "log", "a/../b", cwd=repo).out
    assert "100%" in served.agent("consult", "stats", cwd=repo).out
    assert served.agent("consult", "tier", cwd=repo).out.startswith("local")
    refused = served.agent("consult", "review", ".env", cwd=repo)
    assert refused.code == 2
    assert "'.env' holds secrets" in refused.said
