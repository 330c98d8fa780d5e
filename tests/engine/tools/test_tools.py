import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_workbench.core.events import ScratchpadChanged
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.settings import ALL_TOOLS, DEFAULT_TOOLS, SKILL_TOOLS, TOOL_ALIASES, Settings
from agent_workbench.core.tools.arguments import Arguments, properties_of
from agent_workbench.core.tools.shapes import StringShape
from agent_workbench.engine.runtime.tool import REFUSALS, ToolResult
from agent_workbench.engine.task.task_start import start_task
from agent_workbench.engine.tools.reading_tools import MAX_CHARS, MAX_FILES, MAX_HITS, MAX_LINES
from agent_workbench.engine.tools.registry import builtin_specs, builtin_tools
from tests.engine.stage import T1, Stage, a_stage, task


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, tasks=(task(accept=()),)) as stage:
        stage.user.write("src/shop.py", "def total():\n    return 1\n")
        stage.user.write("long.txt", "".join(f"line {number}\n" for number in range(1, 1001)))
        stage.user.write("wide.txt", "x" * 100_000 + "\n")
        stage.user.write("bytes.bin", b"a\0b")
        stage.user.write("latin.txt", "gr\xfc\xdfe\n".encode("latin-1"))
        stage.user.write("bare.txt", "no end")
        stage.user.commit("More files")
        await start_task(stage.session, T1)
        yield stage


async def use(stage: Stage, tool: str, arguments: dict[str, object]) -> ToolResult:
    text = json.dumps(arguments)
    proposal = KINDS[builtin_tools()[tool].spec.permission](ProposalId("P-1"), tool, text, 1)
    return await builtin_tools()[tool].run(await stage.session.tool_context(), proposal)


async def seen(stage: Stage, tool: str, **arguments: object) -> str:
    return (await use(stage, tool, arguments)).observation


@pytest.mark.parametrize(
    ("arguments", "head", "first", "last"),
    [
        ({}, f"lines 1 to {MAX_LINES} of 1000 (ask for first_line {MAX_LINES + 1} to see more)", 1, MAX_LINES),
        ({"first_line": 990}, "lines 990 to 1000 of 1000:", 990, 1000),
        ({"first_line": 5, "last_line": 7}, "lines 5 to 7 of 1000 (ask for first_line 8 to see more)", 5, 7),
        ({"first_line": 0, "last_line": 2}, "lines 1 to 2 of 1000", 1, 2),
        ({"first_line": 9, "last_line": 2}, "lines 9 to 9 of 1000", 9, 9),
        ({"last_line": 1_000_000, "first_line": 999}, "lines 999 to 1000 of 1000:", 999, 1000),
    ],
)
async def test_lines_of_a_file(stage: Stage, arguments: dict[str, object], head: str, first: int, last: int) -> None:
    shown, *lines = (await seen(stage, "read_file", path="long.txt", **arguments)).split("\n")
    assert head in shown
    assert lines == [f"line {number}" for number in range(first, last + 1)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"path": "nowhere"}, "there is no file 'nowhere'"),
        ({"path": "bytes.bin"}, "binary"),
        ({"path": "long.txt", "first_line": 1001}, "has 1,000 lines, line 1001 was asked for"),
        ({"path": "../outside"}, "outside"),
        ({"path": "/etc/passwd"}, "/etc/passwd"),
        ({"path": ""}, "''"),
        ({"path": "src"}, "src"),
        ({"path": ".git"}, ".git"),
    ],
)
async def test_what_cannot_be_read(stage: Stage, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(REFUSALS) as refused:
        await use(stage, "read_file", arguments)
    assert reason in str(refused.value)


async def test_what_is_wide_is_cut_and_what_is_not_utf8_is_shown(stage: Stage) -> None:
    assert len(await seen(stage, "read_file", path="wide.txt")) < MAX_CHARS + 200
    assert "gr��e" in await seen(stage, "read_file", path="latin.txt")
    assert (await seen(stage, "read_file", path="bare.txt")).endswith("lines 1 to 1 of 1:\nno end")


async def test_what_is_shown_of_files_is_told_line_by_line(stage: Stage) -> None:
    def lines(outcome: ToolResult) -> list[tuple[str, int, int, str]]:
        return [(chunk.path, chunk.first_line, chunk.last_line, chunk.text) for chunk in outcome.shown]

    assert lines(await use(stage, "read_file", {"path": "src/shop.py"})) == [
        ("src/shop.py", 1, 2, "def total():\n    return 1")
    ]
    assert lines(await use(stage, "read_file", {"path": "long.txt", "first_line": 7, "last_line": 7})) == [
        ("long.txt", 7, 7, "line 7")
    ]
    assert lines(await use(stage, "read_file", {"path": "bare.txt"})) == [("bare.txt", 1, 1, "no end")]
    assert lines(await use(stage, "grep", {"text": "return"})) == [("src/shop.py", 2, 2, "    return 1")]
    # Lines that are cut are not shown as they stand.
    assert lines(await use(stage, "read_file", {"path": "wide.txt"})) == []
    assert lines(await use(stage, "grep", {"text": "xxx"})) == []


async def test_an_empty_file_is_shown_as_one(stage: Stage) -> None:
    assert stage.state.run is not None
    (Path(stage.state.run.workspace.path) / "void.txt").touch()
    outcome = await use(stage, "read_file", {"path": "void.txt"})
    assert outcome.observation == "void.txt is empty"
    assert [chunk.path for chunk in outcome.shown] == ["void.txt"]


async def test_files_are_listed(stage: Stage) -> None:
    assert await seen(stage, "list_files", glob="src/**") == "1 files match 'src/**':\nsrc/shop.py"
    assert "README.md" in await seen(stage, "list_files")
    assert await seen(stage, "list_files", glob="*.rs") == "no file matches '*.rs'"


async def test_many_files_are_cut(stage: Stage) -> None:
    run = stage.state.run
    assert run is not None
    for number in range(MAX_FILES + 5):
        (Path(run.workspace.path) / f"many{number}.txt").touch()
    lines = (await seen(stage, "list_files", glob="many*")).split("\n")
    assert lines[-1] == "… 5 more …"
    assert len(lines) == MAX_FILES + 2


async def test_text_is_found_literally(stage: Stage) -> None:
    assert await seen(stage, "grep", text="TOTAL()") == "src/shop.py:1: def total():"
    assert await seen(stage, "grep", text="total", glob="*.txt") == "nothing holds 'total' in '*.txt'"
    assert await seen(stage, "grep", text=".*") == "nothing holds '.*' in '**'"
    many = (await seen(stage, "grep", text="line")).split("\n")
    assert len(many) == MAX_HITS + 1
    assert many[-1] == f"… stopped at {MAX_HITS} hits …"
    with pytest.raises(REFUSALS, match="needs a text"):
        await seen(stage, "grep", text="  ")


async def test_notes_are_lines_of_the_scratchpad(stage: Stage) -> None:
    await use(stage, "note", {"text": "one"})
    await stage.ports.memory.write_scratchpad(T1, "- one\n", "- one\nby hand")
    outcome = await use(stage, "note", {"text": "two\n"})
    (changed,) = outcome.effects
    assert isinstance(changed, ScratchpadChanged)
    assert changed.text == "- one\nby hand\n- two\n"
    assert await stage.ports.memory.read_scratchpad(T1) == changed.text


def test_the_settings_know_every_tool_that_a_model_may_be_given() -> None:
    assert set(ALL_TOOLS) == {*builtin_tools(), *SKILL_TOOLS}
    assert set(TOOL_ALIASES.values()) <= set(ALL_TOOLS)


ODD = [
    "",
    "\0",
    "a\0b",
    "x" * 200,
    "../" * 60,
    "**/" * 66,
    "[" * 200,
    "[!]-a]",
    "[z-a]",
    "\ud83d\ude00",
    "\n",
    "a/\x1b[2J",
    "~",
    "C:\\x",
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("tool", ["read_file", "list_files", "grep", "search_code", "note"])
@pytest.mark.slow(quick=6)
async def test_odd_arguments_are_answered_or_refused(stage: Stage, tool: str, text: str) -> None:
    arguments = properties_of(builtin_tools()[tool].spec)
    for argument in arguments:
        if isinstance(argument.shape, StringShape):
            others = {each.name: "x" for each in arguments if each.required}
            with contextlib.suppress(*REFUSALS):
                assert (await use(stage, tool, {**others, argument.name: text})).observation


async def test_drafts_of_odd_diffs_are_refused(stage: Stage) -> None:
    bench = await stage.session.tool_context()
    for text in [
        *ODD,
        "--- a/x\n+++ b/x\n",
        "--- a/\0\n+++ b/\0\n@@ -1 +1 @@\n-a\n+b\n",
        "@@ -1 +1 @@\n-a\n+b\n",
        "\ud800" * 3,
    ]:
        with pytest.raises(REFUSALS):
            await builtin_tools()["write_diff"].draft(bench, Arguments({}), text)


async def test_tools_that_need_settings_say_so(tmp_path: Path) -> None:
    async with a_stage(tmp_path, tasks=(task(accept=()),), settings=Settings()) as stage:
        await start_task(stage.session, T1)
        bench = await stage.session.tool_context()
        for tool, word in (("run_tests", "test_command"), ("static_analyze", "lint_command")):
            with pytest.raises(REFUSALS) as refused:
                await builtin_tools()[tool].draft(bench, Arguments({}), "{}")
            assert word in refused.value.advice


def test_a_tool_is_what_its_module_says() -> None:
    for name, tool in builtin_tools().items():
        assert name == tool.spec.name
        assert tool.spec.summary
        assert tool.spec.builtin
        assert tool.spec.raw == (name in {"rewrite", "write_diff"})
        assert tool.spec.fenced == (name == "rewrite")
    assert set(DEFAULT_TOOLS) <= set(builtin_tools())


def test_the_order_of_tools_is_the_one_allowed() -> None:
    assert [spec.name for spec in builtin_specs(("finish", "commit", "grep", "nonsense"))] == ["finish", "grep"]
