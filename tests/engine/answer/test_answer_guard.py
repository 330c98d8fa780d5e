"""Answers that the workbench ends in the stream: loops, and a second step."""

from pathlib import Path

import pytest

from agent_workbench.core.events import FAILING_FIRST, InterruptCause, ModelAnswered, ModelInterrupted, PatchApplied
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import Message, ModelFacts, ModelRequest, Role, StopCause, TextDelta, ThoughtDelta
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.answer_guard import AnswerGuard, AnswerStop
from agent_workbench.engine.prompt.prompt_text import LOOPED
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.tools.registry import builtin_specs
from tests.engine.stage import ANSWER, FINISH, OPEN, a_stage, call, change
from tests.engine.test_executor import run

TOOLS = by_name(builtin_specs(("write_diff", "rewrite", "read_file", "list_files")))
LOOP = "".join("+def area(width, height):\n+    return width * height\n+\n" for _ in range(40))
TABLE = "    '\\ufffe',\n" * 120


def stopped(text: str, *, prompt: str = "", thought: bool = False, grammar: str = "") -> AnswerStop | None:
    """Return where an answer is stopped that comes in pieces of four characters."""
    request = ModelRequest((Message(Role.USER, prompt),), grammar=grammar)
    guard = AnswerGuard(request, TOOLS)
    shown = ""
    for at in range(0, len(text), 4):
        piece = text[at : at + 4]
        shown += piece
        if thought:
            stop = guard.stop(ThoughtDelta(piece), Streaming(thought=shown))
        else:
            stop = guard.stop(TextDelta(piece), Streaming(text=shown))
        if stop is not None:
            return stop
    return None


async def test_an_answer_in_a_loop_is_stopped_and_not_executed_and_the_model_is_told(tmp_path: Path) -> None:
    begun = change("wrong", "right") + f"--- /dev/null\n+++ b/more.py\n@@ -0,0 +1,9 @@\n{LOOP}"
    async with a_stage(tmp_path, [begun, change("wrong", "right"), FINISH], approvals=OPEN, headless=True) as stage:
        await run(stage)
        (cut,) = (event for event in stage.events if isinstance(event, ModelInterrupted))
        assert stage.state.run is not None
        assert stage.state.run.wording >= FAILING_FIRST
        assert [event.paths for event in stage.events if isinstance(event, PatchApplied)] == [(ANSWER,)]
        told = stage.model.requests[1].messages[-1].text
        assert stage.model.streams_ended == 3
        assert [each.difference for each in rerun(stage.journal())] == [None] * 3
    assert cut.cause is InterruptCause.REPETITION
    assert "the same 3 lines" in cut.what
    assert cut.partial.count("def area") == 1
    assert begun.startswith(cut.partial)
    assert cut.figures.answer_tokens < len(begun) / 40
    assert told.endswith(LOOPED)


@pytest.mark.parametrize("grammar", ["", "root ::= [^x]*"])
def test_a_loop_is_stopped_with_a_grammar_and_in_a_thought_too(grammar: str) -> None:
    text = stopped(f"Thought: so\nAction: write_diff\n--- /dev/null\n+++ b/a.py\n@@\n{LOOP}", grammar=grammar)
    assert text is not None
    assert (text.cause, text.text.count("def area")) == (StopCause.REPETITION, 1)
    thought = stopped("Wait, is it 3? " * 60, thought=True)
    assert thought is not None
    assert (thought.text, thought.thought.count("Wait")) == ("", 1)


@pytest.mark.parametrize("sign", ["", "+"])
def test_a_table_of_the_prompt_may_be_copied_and_no_longer_one_written(sign: str) -> None:
    def written(table: str) -> str:
        return "table = (\n" + "".join(f"{sign}{line}\n" for line in table.splitlines())

    prompt = f"codec.py:\n1 def f():\ntable = (\n{TABLE})\n"
    assert stopped(written(TABLE) + ")\n", prompt=prompt) is None
    assert stopped(written(TABLE) + ")\n") is not None
    assert stopped(written(TABLE * 2) + ")\n", prompt=prompt) is not None


FIRST = "Thought: I look.\nAction: read_file\n" + '{"path": "a.py"}\n'
DIFF = "Thought: so\nAction: write_diff\n--- a/a.md\n+++ b/a.md\n@@\n-a\n+b\n"


REWRITTEN = "Thought: so\nAction: rewrite\nPiece 1:\n````python\n```\nThought: in the text\nAction: none\n```\n````\n"


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (REWRITTEN + "\nThought: and now\nAction: finish\n{}", REWRITTEN),
        (REWRITTEN, None),
        (FIRST + "\nThought: and now\nAction: finish\n", FIRST),
        (DIFF + "\nThought: and now\nAction: read_file\n{}", DIFF),
        (DIFF + "Thought: a line whose sign is lost\n+c\n+Action: none\nAction: last\n", None),
        (DIFF + " Thought: a line of the file\n+Thought: another\n+c\n", None),
        ("Thought: I think.\nThought: I still think.\nAction: list_files\n{}", None),
        ("Thought: a\nAction: no_tool\n{}\nThought: b\nAction: list_files\n{}", None),
        (
            "Thought: so\nAction: write_diff\n```diff\n--- a/a.md\n+++ b/a.md\n@@\n-a\nThought: x\nAction: y\n```\n",
            None,
        ),
    ],
)
def test_one_answer_is_one_step(answer: str, kept: str | None) -> None:
    stop = stopped(answer)
    assert (stop.text if stop is not None else None) == kept
    assert stopped(answer, grammar="root ::= [^x]*") is None


async def test_a_second_step_is_neither_waited_for_nor_recorded(tmp_path: Path) -> None:
    both = f"{call('list_files')}\n\n{change('wrong', 'bad')}"
    facts = ModelFacts("test", "saying", 8192, takes_grammar=False)
    async with a_stage(tmp_path, [both, change("wrong", "right"), FINISH], headless=True, approvals=OPEN) as stage:
        stage.model.facts = facts
        await run(stage)
        answers = [event.text for event in stage.events if isinstance(event, ModelAnswered)]
        assert answers == [f"{call('list_files')}\n", change("wrong", "right"), FINISH]
        assert not [event for event in stage.events if isinstance(event, ModelInterrupted)]


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("    return width\n", "the same 'return width'"),
        ("    return width\n\n", "the same 'return width'"),
        ("a = read_file(1)\nb = read_file(2)\n", "the same 2 lines"),
    ],
)
def test_what_was_repeated_is_counted_in_its_own_lines(block: str, told: str) -> None:
    # What stands before the first copy may end as each copy does, so that a copy begins within a line.
    for begin in ("", "x", "def area_of(width", f"other {block[-7:]}"):
        found = stopped(begin + block * 90)
        assert found is not None
        assert told in found.what
