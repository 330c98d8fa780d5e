"""Stray JSON at the end of an answer, and its length."""

import pytest

from agent_workbench.core.consult_findings import MAX_ANSWER_CHARS, bounded, without_stray_json

REPORT = '```json\n{\n  "status": "ok",\n  "phase": "review"\n}\n```'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"## Findings\n\nAll is well.\n\n{REPORT}", "## Findings\n\nAll is well."),
        (f"## Findings\n\nAll is well.\n\n{REPORT}\n\n  \n", "## Findings\n\nAll is well."),
        ("## Findings\n\nno JSON here  \n", "## Findings\n\nno JSON here"),
        ('An example:\n\n```json\n{"port": 80}\n```', 'An example:\n\n```json\n{"port": 80}\n```'),
        (f"{REPORT}\n\nand then words", f"{REPORT}\n\nand then words"),
        ('words\n```json\n{"status": 1, "phase": 2}', 'words\n```json\n{"status": 1, "phase": 2}'),
        (f"```json\n[1]\n```\nbetween\n{REPORT}", "```json\n[1]\n```\nbetween"),
        ("````md\n```json\n```\n````\n```", "````md\n```json\n```\n````\n```"),
        ("", ""),
        ("```", "```"),
        ("```json", "```json"),
    ],
)
def test_only_a_report_at_the_end_is_cut(text: str, kept: str) -> None:
    assert without_stray_json(text) == kept


def test_a_deep_bomb_is_text() -> None:
    bomb = "```json\n" + "[" * 200_000 + '"status""phase"' + "\n```"
    assert without_stray_json(bomb) == ""


def test_a_long_answer_is_cut_and_says_so() -> None:
    text, cut = bounded("x" * (MAX_ANSWER_CHARS + 7))
    assert (len(text), cut) == (MAX_ANSWER_CHARS, 7)
