"""`agent --help`: verbs by what one wants to do, short enough for a terminal."""

import pytest

from agent_workbench.cli.main import GROUPS, SHORT_FORMS, VERBS, parser
from agent_workbench.core.errors import ExitCode


def test_every_verb_is_listed_once_and_no_file_of_the_source_tree_is_named() -> None:
    text = parser([]).format_help()
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2].isalpha()]
    assert listed == [verb.name for _, verbs in GROUPS for verb in verbs]
    assert not {verb.name for verb in SHORT_FORMS} & set(listed)
    assert len({verb.name for verb in VERBS}) == len(VERBS)
    assert max(map(len, text.splitlines())) <= 85
    assert ".md" not in text
    assert "docs/" not in text


def test_all_exit_codes_are_told() -> None:
    told = parser([]).format_help().partition("Exit codes:")[2]
    assert [int(word) for word in told.replace(",", " ").split() if word.isdigit()] == [int(code) for code in ExitCode]


@pytest.mark.parametrize("verb", SHORT_FORMS)
def test_a_short_form_of_a_released_version_works(verb: tuple[str, ...]) -> None:
    assert parser([verb[0]]).parse_args([verb[0], "a goal"]).goal
