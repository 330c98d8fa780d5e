"""The page about `--json` has a section for each verb with that flag; runs of all tests are compared with it."""

import argparse
from collections.abc import Iterator

import pytest

from agent_workbench.cli.main import parser
from tests.documented_json import assert_documented, documents


def verbs_with_json(verb: argparse.ArgumentParser, words: str = "") -> Iterator[str]:
    for action in verb._actions:
        if "--json" in action.option_strings:
            yield words
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from verbs_with_json(below, f"{words} {name}".strip())


def test_each_verb_has_a_section() -> None:
    # `agent consult NAME` is one verb for the parser.
    assert {each for each in documents() if not each.startswith("consult ")} == set(verbs_with_json(parser()))


def test_what_is_documented_passes() -> None:
    assert_documented(["sessions", "fork", "x", "--json"], '{"session": "S"}\n')
    assert_documented(["sessions", "fork", "x"], "forked: S")
    assert_documented(["replay", "--rerun", "--json"], '{"prompts": 1, "compared": 1, "identical": 1}')
    assert_documented(["knowledge", "--json"], "")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ('{"session": "S", "new": 1}', "\\* \\(new\\) is not listed"),
        ("{}", "session is missing"),
        ('{"session": null}', "session is None, not text"),
    ],
)
def test_what_is_not_documented_fails(printed: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said.replace("(", r"\(").split(" ")[0]):
        assert_documented(["sessions", "fork", "x", "--json"], printed)
