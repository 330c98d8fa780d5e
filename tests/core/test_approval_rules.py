"""What a rule lets through and, above all, what it does not."""

import pytest

from agent_workbench.core.approval_rules import (
    is_wide,
    offered_rules,
    rule_allows,
    rule_problem,
    rule_words,
    runs_only,
)
from agent_workbench.core.events import ActionDecided, ActionProposed, Event, ProposalReplaced, Recorded
from agent_workbench.core.events.plan import Author
from agent_workbench.core.history.past_actions import PastActions, session_actions, would_be_allowed
from agent_workbench.core.ids import SessionId
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.proposals import ANSWER_SERVER, Proposal, Verdict
from agent_workbench.core.settings import Permission, Rule
from tests.fakes.runs import made_of

CALLS = frozenset(kind for kind in Permission if KINDS[kind].calls)

SESSION = SessionId("20260102T030405-abc234")

DIGEST = "0123456789abcdef"


def proposal(
    kind: Permission,
    text: str = "",
    *,
    number: str = "P-1",
    tool: str = "grep",
    commands: tuple[str, ...] = (),
    paths: tuple[str, ...] = (),
    special: tuple[str, ...] = (),
    spec: str = "",
) -> Proposal:
    return made_of(kind, tool, text, id=number, commands=commands, paths=paths, special=special, spec=spec)


def diff(*paths: str, special: tuple[str, ...] = ()) -> Proposal:
    return proposal(Permission.DIFF, paths=paths, special=special)


@pytest.mark.parametrize(
    "line",
    [
        "pytest; rm -rf /",
        "pytest;rm -rf /",
        "pytest && rm x",
        "pytest || rm x",
        "pytest & rm x",
        "pytest | sh",
        "pytest > ~/.bashrc",
        "pytest >> x",
        "pytest < x",
        "pytest 2>&1",
        "pytest <<EOF",
        "pytest $(rm x)",
        "pytest `rm x`",
        'pytest "$(rm x)"',
        'pytest "`rm x`"',
        "pytest $HOME",
        "pytest ${X:=rm}",
        "pytest <(rm x)",
        "pytest\nrm x",
        "pytest\r\nrm x",
        "pytest -q\nrm x",
        "pytest \\\nrm",
        "pytest\\;rm",
        "pytest\x00rm",
        "pytest\trm",
        "pytest\u00a0x",
        "pytest\u2028rm x",
        "pytest\x1b[2J",
        "(pytest)",
        "{ pytest; }",
        "! pytest",
        "PYTHONPATH=x pytest",
        "X=1 pytest",
        "env pytest",
        "time pytest",
        "sudo pytest",
        " pytest",
        "pytest2",
        "pytest-x",
        "./pytest",
        "../pytest",
        "/tmp/pytest",
        "Pytest",
        "'pytest' -q",
        '"pytest" -q',
        "pytest'' -q",
        "py'test' -q",
        "pytest 'open",
        'pytest "open',
        "rm pytest",
        "",
    ],
)
def test_a_program_with_any_arguments_is_nothing_else(line: str) -> None:
    rule = Rule(Permission.COMMAND, program="pytest")
    assert not runs_only(line, "pytest")
    assert not rule_allows(rule, proposal(Permission.COMMAND, line))


@pytest.mark.parametrize(
    "line", ["pytest", "pytest -q", "pytest -k 'a and b' tests/test_x.py::test_é", 'pytest "a b" *.py']
)
def test_a_program_with_any_arguments_is_let_through(line: str) -> None:
    assert rule_allows(Rule(Permission.COMMAND, program="pytest"), proposal(Permission.COMMAND, line))


def test_a_line_that_no_shell_can_be_given_is_let_through_by_no_program() -> None:
    assert runs_only("pytest " + "x" * 131_064, "pytest")
    assert not runs_only("pytest " + "x" * 131_065, "pytest")


@pytest.mark.parametrize(
    "program",
    [
        *("sh", "bash", "/bin/sh", "Bash", "env", "sudo", "xargs", "eval", "exec", "command", "python", "python3.12"),
        *("zsh-5.9", "rbash", "perl5.36", "node18", "npx", "coproc", "flock", "chroot"),
        *("perl", "node", "find", "awk", "ssh", "time", "if", ".", "source", "busybox"),
        *("py test", "pytest;rm", "A=1", "$X", "~/x", "../x", "a/../sh", "-c", "", "pytest\n"),
    ],
)
def test_what_runs_anything_is_no_program_for_a_rule(program: str) -> None:
    rule = Rule(Permission.COMMAND, program=program)
    assert rule_problem(rule)
    assert not rule_allows(rule, proposal(Permission.COMMAND, f"{program} x"))


@pytest.mark.parametrize(
    ("globs", "paths"),
    [
        (("src/**",), ("src/a.py", "tests/a.py")),
        (("src/**",), ("src",)),
        (("src/**",), ("SRC/a.py",)),
        (("src/**",), ("src2/a.py",)),
        (("src/**",), ("src/../setup.py",)),
        (("src/**",), ("./src/a.py",)),
        (("src/**",), ("/src/a.py",)),
        (("src/**",), ("src//a.py",)),
        (("src/**",), ("src\\..\\a.py",)),
        (("src/**",), ("src/.git/config",)),
        (("**",), ("../x",)),
        (("**",), ("a/.GIT/hooks/x",)),
        (("**",), ("a\nb",)),
        (("**",), ()),
        (("*.py",), ("src/a.py",)),
        (("src/a.py",), ("src/A.py",)),
        (("src/[[]id].py",), ("src/i.py",)),
        (("../**",), ("a.py",)),
        (("src/../**",), ("a.py",)),
        (("/**",), ("a.py",)),
        (("",), ("a.py",)),
    ],
)
def test_a_diff_that_touches_anything_else_is_asked_about(globs: tuple[str, ...], paths: tuple[str, ...]) -> None:
    assert not rule_allows(Rule(Permission.DIFF, paths=globs), diff(*paths))


def test_special_paths_are_never_let_through() -> None:
    special = diff(".github/workflows/test.yml", special=(".github/workflows/test.yml",))
    assert not rule_allows(Rule(Permission.DIFF, paths=("**",)), special)
    assert offered_rules(special) == ()


@pytest.mark.parametrize(
    "rule",
    [
        Rule(Permission.MERGE, any=True),
        Rule(Permission.INFRASTRUCTURE, any=True),
        Rule(Permission.COMMAND, any=True),
        Rule(Permission.DIFF, any=True),
        Rule(Permission.READ, any=True),
        Rule(Permission.CHECK),
        Rule(Permission.CHECK, any=True, commands=("a",)),
        Rule(Permission.CHECK, commands=("a", " ")),
        Rule(Permission.COMMIT, paths=("**",)),
        Rule(Permission.DIFF, paths=("**",), tool="write_diff"),
    ],
)
def test_a_rule_that_does_not_say_exactly_one_thing_is_none(rule: Rule) -> None:
    assert rule_problem(rule)
    everything = proposal(rule.kind, "a", tool="write_diff", commands=("a",), paths=("a",))
    assert not rule_allows(rule, everything)


def test_checks_are_let_through_by_all_of_their_lines() -> None:
    rule = Rule(Permission.CHECK, commands=("pytest -q", "ruff check ."))
    assert rule_allows(rule, proposal(Permission.CHECK, commands=("pytest -q",)))
    assert not rule_allows(rule, proposal(Permission.CHECK, commands=("pytest -q", "make")))
    assert not rule_allows(rule, proposal(Permission.CHECK))
    assert not rule_allows(rule, proposal(Permission.COMMAND, "pytest -q", commands=("pytest -q",)))


def test_a_tool_is_let_through_by_its_alias_too() -> None:
    rule = Rule(Permission.READ, tool="vector_search")
    assert rule_allows(rule, proposal(Permission.READ, tool="search_code"))
    assert not rule_allows(rule, proposal(Permission.READ, tool="grep"))
    assert (
        rule_problem(Rule(Permission.READ, tool="serch_code"))
        == "there is no tool 'serch_code'; did you mean 'search_code'?"
    )


@pytest.mark.parametrize("kind", Permission)
def test_what_is_offered_fits_and_grows(kind: Permission) -> None:
    spec = DIGEST if kind in CALLS else ""
    waits = proposal(kind, "make all", commands=("make all",), paths=("src/[id]/a.py", "b.py"), spec=spec)
    rules = offered_rules(waits)
    assert all(rule_allows(each, waits) and not rule_problem(each) for each in rules)
    assert not any(is_wide(each) for each in rules[:1])
    assert [rule_words(each) for each in rules] == {
        Permission.READ: ["tool grep"],
        Permission.DIFF: ["diff of src/[id]/a.py b.py", "diff of src/[id]/** b.py", "diff of any file"],
        Permission.CHECK: ["check make all", "any check"],
        Permission.COMMAND: ["command make all", "command make with any arguments"],
        Permission.COMMIT: ["any commit"],
        Permission.MERGE: [],
        Permission.INFRASTRUCTURE: [],
        Permission.SUMMARY: ["any summary"],
        Permission.FINISH: ["any finish"],
        Permission.KNOWLEDGE: ["any knowledge"],
        **{each: [f"{each} tool {waits.rule_tool}"] for each in CALLS},
        Permission.SCRIPT: [f"one script, {waits.rule_tool}"],
    }[kind]


@pytest.mark.parametrize("kind", sorted(CALLS - {Permission.SCRIPT}))
def test_a_tool_of_a_source_is_let_through_as_long_as_its_spec_stays(kind: Permission) -> None:
    rule = Rule(kind, tool=f"weather@{DIGEST}")
    assert rule_allows(rule, proposal(kind, tool="weather", spec=DIGEST))
    assert not rule_allows(rule, proposal(kind, tool="weather", spec=DIGEST[::-1]))
    assert not rule_allows(rule, proposal(kind, tool="other", spec=DIGEST))
    other = next(each for each in sorted(CALLS) if each is not kind)
    assert not rule_allows(rule, proposal(other, tool="weather", spec=DIGEST))
    assert not rule_allows(Rule(kind, tool="weather"), proposal(kind, tool="weather"))


def test_a_rule_for_a_script_approves_this_script_and_no_other() -> None:
    script = '{"skill_name": "sums", "script": "print(1)"}'
    waits = proposal(Permission.SCRIPT, script, tool="run_python_script", spec=DIGEST)
    (rule,) = offered_rules(waits)
    assert rule_allows(rule, waits)
    for text in (script.replace("1", "2"), script.replace("sums", "other")):
        assert not rule_allows(rule, proposal(Permission.SCRIPT, text, tool="run_python_script", spec=DIGEST))
    assert not rule_allows(rule, proposal(Permission.SCRIPT, script, tool="run_python_script", spec=DIGEST[::-1]))
    by_spec = Rule(Permission.SCRIPT, tool=f"run_python_script@{DIGEST}")
    assert rule_problem(by_spec)
    assert not rule_allows(by_spec, waits)


def test_no_rule_answers_a_server() -> None:
    asked = proposal(Permission.EXTERNAL, "{}", tool=ANSWER_SERVER, spec=DIGEST)
    rule = Rule(Permission.EXTERNAL, tool=f"{ANSWER_SERVER}@{DIGEST}")
    assert rule_problem(rule) == ""
    assert (rule_allows(rule, asked), offered_rules(asked)) == (False, ())


@pytest.mark.parametrize("tool", ["weather", "weather@", f"@{DIGEST}", f"a b@{DIGEST}", f"weather@{DIGEST}0", "*"])
def test_a_rule_for_a_tool_of_a_source_names_its_spec(tool: str) -> None:
    assert "NAME@DIGEST" in rule_problem(Rule(Permission.EXTERNAL, tool=tool))
    assert rule_problem(Rule(Permission.EXTERNAL, any=True)) == "a rule for external needs tool, and nothing else"


@pytest.mark.parametrize("line", ["pytest -q | tee x", "bash x.sh", "python -m pytest", "X=1 make"])
def test_a_line_that_is_more_than_a_program_is_offered_as_it_stands_only(line: str) -> None:
    assert offered_rules(proposal(Permission.COMMAND, line)) == (Rule(Permission.COMMAND, commands=(line,)),)


def test_a_rule_is_tried_on_what_was_decided_as_it_was_in_the_end() -> None:
    first, edited = proposal(Permission.COMMAND, "make"), proposal(Permission.COMMAND, "make test")
    other, open_ = proposal(Permission.COMMAND, "ls", number="P-2"), proposal(Permission.COMMAND, "make", number="P-3")
    events: tuple[Event, ...] = (
        ActionProposed(first),
        ProposalReplaced(edited, "edited", Author.USER),
        ActionDecided(first.id, Verdict.REJECT, "user"),
        ActionProposed(other),
        ActionDecided(other.id, Verdict.APPROVE, "user"),
        ActionProposed(open_),
    )
    recorded = tuple(Recorded(seq, "", event) for seq, event in enumerate(events))
    actions = session_actions(SESSION, recorded, Permission.COMMAND)
    assert [each.proposal.text for each in actions] == ["ls", "make test"]
    (passed,) = would_be_allowed(Rule(Permission.COMMAND, program="make"), PastActions(actions, 1))
    assert (passed.proposal.text, passed.verdict) == ("make test", Verdict.REJECT)
    # What a fork copied was decided in its parent.
    assert [each.proposal.text for each in session_actions(SESSION, recorded, Permission.COMMAND, 2)] == ["ls"]
