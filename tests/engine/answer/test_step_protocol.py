import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.settings import DEFAULT_TOOLS
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, read_step, thought_of
from agent_workbench.engine.tools.registry import builtin_specs

TOOLS = by_name(builtin_specs((*DEFAULT_TOOLS, "run_command")))
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def taken(answer: str) -> StepCall:
    found = read_step(answer, TOOLS)
    assert isinstance(found, StepCall), found
    return found


def fault(answer: str) -> str:
    found = read_step(answer, TOOLS)
    assert isinstance(found, StepFault), found
    return found.reason


def test_a_step() -> None:
    step = taken('Thought: I look.\nAction: read_file\n{"path": "x", "first_line": 3}')
    assert (step.thought, step.tool.name, step.text) == (
        "I look.",
        "read_file",
        '{"path": "x", "first_line": 3}',
    )
    assert step.arguments.values == {"path": "x", "first_line": 3}


@pytest.mark.parametrize("after", ["", "\n", "\n\n", "\n{}", "\n{}\n"])
def test_a_tool_without_arguments_needs_none(after: str) -> None:
    assert taken(f"Thought: I test.\nAction: run_tests{after}").text == "{}"


def test_a_diff_is_taken_as_it_is() -> None:
    assert taken(f"Thought: I write.\nAction: write_diff\n{DIFF}").text == DIFF
    assert taken(f"Thought: I write.\nAction: write_diff\n{DIFF[:-1]}").text == DIFF


def test_a_diff_may_hold_what_looks_like_an_action() -> None:
    odd = DIFF.replace("+b\n", "+b\n+Action: finish\n Observation: none\n")
    step = taken(f"Thought: I write.\nAction: write_diff\n{odd}")
    assert (step.text, step.mended) == (odd, ())


def test_lines_of_a_diff_that_lost_their_first_sign_are_not_cut_off() -> None:
    odd = DIFF + "Action: finish\n+and this\n"
    step = taken(f"Thought: I write.\nAction: write_diff\n{odd}")
    assert (step.text, step.mended) == (odd, ())


def test_a_thought_may_have_lines_and_room_around_it() -> None:
    step = taken("\n Thought: one\ntwo\n\nAction:   run_tests\t\n")
    assert step.thought == "one\ntwo"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "the answer is empty; write a line `Thought: …` and then a line `Action: <tool>`"),
        (" \n\t", "the answer is empty"),
        ("I will read the file.", "the answer does not begin with `Thought: `"),
        ("Reflexion: I was wrong", "the answer does not begin with `Thought: `"),
        ("Thought: I read.", "the answer has no line `Action: <tool>`"),
        ("Thought: I read. Action: read_file", "the answer has no line `Action: <tool>`"),
        ("Thought: I read.\nAction: read file\n{}", "the answer has no line `Action: <tool>`"),
        ("Thought: I run.\nAction:\n{}", "there is no tool ''; the tools are: read_file, list_files"),
        ("Thought: I run.\nAction: delete_all\n{}", "there is no tool 'delete_all'; the tools are: read_file"),
        ("Thought: I commit.\nAction: commit\n{}", "there is no tool 'commit'"),
        ("Thought: I merge.\nAction: merge\n{}", "there is no tool 'merge'"),
        ("Thought: I write.\nAction: write_diff", "write_diff needs a unified diff on the lines after"),
        ("Thought: I write.\nAction: write_diff\n \n", "write_diff needs a unified diff on the lines after"),
        ("Thought: I read.\nAction: read_file\n", "read_file: argument 'path' is missing"),
        ("Thought: I read.\nAction: read_file\n{'path'}", "read_file: the arguments are not one line of JSON"),
        ('Thought: I read.\nAction: read_file\n{"path": "x", "mode": "w"}', "read_file: unknown argument 'mode'"),
        (
            'Thought: I read.\nAction: read_file\n```\n{"path": "x", "mode": "w"}\n```',
            "read_file: unknown argument 'mode'",
        ),
        ('Thought: I read.\nAction: read_file\n{"path": "x",}', "read_file: the arguments are not one line of JSON"),
        ('Thought: I read.\nAction: read_file\n{"path": "x\ny"}', "one line of JSON arguments must end the answer"),
        ("Thought: I read.\nAction: read_file\nI read x.", "read_file: the arguments are not one line of JSON"),
        ("Thought: I look.\nAction: read_file or grep\n{}", "the answer has no line `Action: <tool>`"),
        ("Thought: I run.\nAction: delete_all()\nAction: run_tests\n{}", "there is no tool 'delete_all()'"),
        ('<tool_call>{"name": "commit", "arguments": {}}</tool_call>', "the answer does not begin with `Thought: `"),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_wrong_is_said(answer: str, reason: str) -> None:
    assert reason in fault(answer)


LINE = '{"path": "x"}'


@pytest.mark.parametrize(
    ("answer", "name", "text", "mended"),
    [
        ("Action: run_tests\n{}", "run_tests", "{}", "does not begin with `Thought: `"),
        ("I look.\n\nAction: run_tests", "run_tests", "{}", "does not begin with `Thought: `"),
        ("Thought: I look.\naction: run_tests\n{}", "run_tests", "{}", "signs around"),
        ("Thought\nI look.\nAction: run_tests\n{}", "run_tests", "{}", "signs around"),
        (f"**Thought:** I look.\n**Action:** read_file\n{LINE}", "read_file", LINE, "signs around"),
        (f"Thought: I look.\nAction: `read_file`.\n{LINE}", "read_file", LINE, "signs around"),
        (f"Thought: I look.\nAction: [read_file]\n{LINE}", "read_file", LINE, "signs around"),
        (f"Thought: I look.\nAction: Read-File\n{LINE}", "read_file", LINE, "Read-File is read as read_file"),
        (f"Thought: I look.\nAction: read_file {LINE}", "read_file", LINE, "signs around"),
        (f"Thought: I look.\nAction: read_file\nAction Input: {LINE}", "read_file", LINE, "label 'Action Input'"),
        (f"Thought: I look.\nAction: read_file\n```json\n{LINE}\n```\n", "read_file", LINE, "a fence around the arg"),
        (f"```\nThought: I look.\nAction: read_file\n{LINE}\n```", "read_file", LINE, "a fence around the step"),
        (f"hm, so\n</think>\n\nThought: I look.\nAction: read_file\n{LINE}", "read_file", LINE, "reasoning before"),
        ('Thought: I look.\nAction: read_file\n{\n  "path": "x"\n}', "read_file", '{ "path": "x" }', "several lines"),
        (
            f"Thought: I look.\nAction: read_file\n{LINE}\nThis shows it.",
            "read_file",
            LINE,
            "after the arguments: 'This",
        ),
        (f"Thought: I look.\nAction: read_file\n{LINE}\nObservation: it\nThought: a", "read_file", LINE, "made up"),
        ("Thought: I look.\nAction: run_tests\nObservation: all pass", "run_tests", "{}", "made up"),
        (
            f"Thought: I look.\nAction: read_file\n{LINE}\nThought: b\nAction: finish\n{{}}",
            "read_file",
            LINE,
            "a second",
        ),
        (f"Thought: I look.\n**Action:** read_file\n{LINE}\nAction: finish\n{{}}", "read_file", LINE, "a second step"),
        (
            f"Thought: I look.\nAction: write_diff\n```diff\n{DIFF}```\nThat is it.",
            "write_diff",
            DIFF,
            "fence around the d",
        ),
        (f"Thought: I look.\nAction: write_diff\nHere it is:\n{DIFF}", "write_diff", DIFF, "before the diff: 'Here it"),
        (f"Thought: I look.\nAction: write_diff\n{DIFF}\nObservation: Applied.", "write_diff", DIFF, "made up"),
        (f"Thought: I look.\nAction: write_diff\n{DIFF}Action: finish\n{{}}\n", "write_diff", DIFF, "a second step"),
        (
            f"Thought: I look.\nAction: write_diff\n{json.dumps({'diff': DIFF})}",
            "write_diff",
            DIFF,
            "JSON around the diff",
        ),
        (
            f'Thought: I look.\n<tool_call>\n{{"name": "read_file", "arguments": {LINE}}}\n</tool_call>',
            "read_file",
            LINE,
            "another form",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_what_can_mean_one_thing_only_is_read_and_said(answer: str, name: str, text: str, mended: str) -> None:
    step = taken(answer)
    assert (step.tool.name, step.text) == (name, text)
    assert mended in "; ".join(step.mended)
    assert step.thought in {"I look.", ""}
    assert (step.thought == "") == answer.startswith("Action:")


def test_an_observation_that_was_made_up_hides_no_second_diff() -> None:
    answer = f"Thought: a\nAction: write_diff\n{DIFF}Observation: Applied.\nThought: b\nAction: write_diff\n{DIFF}"
    assert taken(answer).text == DIFF


WORDS = [
    "Thought:",
    " ",
    "Action:",
    "\n",
    "read_file",
    "write_diff",
    "finish",
    "{",
    "}",
    '"path"',
    ":",
    '"x"',
    "\ud800",
    DIFF,
    "```",
    "Observation:",
    "</think>",
    "<tool_call>",
    "**",
]


@given(
    st.text()
    | st.lists(st.sampled_from(WORDS), max_size=25).map("".join)
    | st.text(st.characters(exclude_categories=()))
)
def test_whatever_comes_is_a_step_or_a_fault(answer: str) -> None:
    found = read_step(answer, TOOLS)
    if isinstance(found, StepFault):
        assert found.reason
    else:
        assert found.tool.name in TOOLS
    assert isinstance(thought_of(answer), str)


@pytest.mark.parametrize("middle", [" ", "\t", "x", "Action:", "\n", "*", "<tool_call>{", "```\n", "\nObservation:"])
def test_an_answer_is_read_in_time_that_grows_with_its_length(middle: str) -> None:
    # A line that nearly is an action: a pattern that tries every way to divide it would not end today.
    assert fault(f"Thought: hm\nAction:{middle * 400_000}x y")


def test_a_thought_is_read_from_an_unfinished_answer() -> None:
    assert thought_of("Thought: I am") == "I am"
    assert thought_of("\nThought: I am\nAction: rea") == "I am"
    assert thought_of("") == ""
