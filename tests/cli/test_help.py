"""`agent --help`: verbs by what one wants to do, short enough for a terminal."""

import argparse
from collections.abc import Iterator

import pytest

from agent_workbench.cli.main import GROUPS, SHORT_FORMS, VERBS, execute, parser
from agent_workbench.core.errors import ExitCode, UsageError


def test_every_verb_is_listed_once_and_no_file_of_the_source_tree_is_named() -> None:
    text = parser([]).format_help()
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2].isalpha()]
    assert listed == [verb.name for _, verbs in GROUPS for verb in verbs]
    assert not {verb.name for verb in SHORT_FORMS} & set(listed)
    assert len({verb.name for verb in VERBS}) == len(VERBS)
    assert max(map(len, text.splitlines())) <= 80
    assert ".md" not in text
    assert "docs/" not in text


def test_all_exit_codes_are_told() -> None:
    told = parser([]).format_help().partition("Exit codes:")[2]
    assert [int(word) for word in told.replace(",", " ").split() if word.isdigit()] == [int(code) for code in ExitCode]


@pytest.mark.parametrize("verb", SHORT_FORMS)
def test_a_short_form_of_a_released_version_works(verb: tuple[str, ...]) -> None:
    assert parser([verb[0]]).parse_args([verb[0], "a goal"]).goal


def test_every_help_fits_a_terminal_and_tells_each_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for verb in _parsers(parser(None)):
        text = verb.format_help()
        assert [line for line in text.splitlines() if len(line) > 80] == [], verb.prog
        arguments = (each for each in verb._actions if not isinstance(each, argparse._SubParsersAction))
        assert [action.dest for action in arguments if not action.help] == [], verb.prog
        assert text.startswith(f"usage: {verb.prog} [")
        assert not {"src/", ".py", "agent_workbench"} & set(text.split()), verb.prog


@pytest.mark.parametrize(
    ("line", "said", "advice"),
    [
        ("seesions", "agent has no verb 'seesions'; did you mean 'sessions'?", "`agent --help` lists the verbs"),
        ("ne", "agent has no verb 'ne'", "`agent --help` lists the verbs"),
        ("sessions lst", "agent sessions has no verb 'lst'; did you mean 'list'?", "`agent sessions --help`"),
        ("consult reveiw", "'reveiw' is not known; did you mean 'review'?", "one of: tdd_red"),
        ("rules schema", "agent rules has no verb 'schema'", "use `agent rules check FILE`"),
        (
            "sessions export --format otlp",
            "'otlp' is not a value of --format",
            "use `agent sessions export --format json`",
        ),
        ("\x1b]0;x\x07", "agent has no verb '\\x1b]0;x\\x07'", ""),
    ],
)
def test_a_misspelled_word_is_told_with_the_nearest_one(
    capsys: pytest.CaptureFixture[str], line: str, said: str, advice: str
) -> None:
    assert execute(line.split()) == ExitCode.USAGE
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"agent: {said}"
    assert advice in second


def test_a_flag_that_is_gone_is_told_with_what_replaces_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        execute(["worker", "--webhook"])
    assert "unrecognized arguments: --webhook; use `agent worker --watch`" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["9" * 30, "9" * 5_000, "-1", "\u0663", "\u00b2", "1e3", "", "one"])
def test_each_number_of_the_command_line_is_bounded(text: str) -> None:
    actions = [each for verb in _parsers(parser(None)) for each in verb._actions]
    readers = [each.type for each in actions if callable(each.type) and each.metavar == "N"]
    assert len(readers) > 10
    assert int not in {each.type for each in actions}
    for read in readers:
        with pytest.raises((argparse.ArgumentTypeError, UsageError)):
            read(text)


def _parsers(root: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield root
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _parsers(below)
