import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters import demo as script
from agent_workbench.adapters.demo import FILES as FILES_OF_DEMO
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import Message, ModelRequest, Role, StopCause
from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules, new_file_rules
from agent_workbench.core.patch.file_piece import FilePiece
from agent_workbench.core.patch.fit import fit_constrained_diff, fit_diff
from agent_workbench.core.patch.hunk_rules import EditableFile
from agent_workbench.core.patch.patch_reader import read_constrained_diff, read_diff
from agent_workbench.core.patch.piece_grammar import piece_rules
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.plan import PathScope, Task
from agent_workbench.core.settings import DEFAULT_TOOLS, PLAYBOOK_TOOLS, RetrievalSettings
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.grammar import reflexion_grammar, step_grammar, summary_grammar
from agent_workbench.engine.answer.step_protocol import StepCall, read_step
from agent_workbench.engine.prompt.prompt_text import EXAMPLES, rules
from agent_workbench.engine.proposals import REFLEXION_PREFIX
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.tools.registry import builtin_specs, builtin_tools
from tests.adapters.llama_cpp.answers import collect
from tests.adapters.llama_cpp.grammar_oracle import fits, grammar_oracle
from tests.engine.stage import OPEN, a_stage
from tests.fakes.ports import FACTS
from tests.llama_fixtures import LlamaServer

TOOLS = by_name(builtin_specs((*DEFAULT_TOOLS, "run_command", "background", "consult", "query_audit", *PLAYBOOK_TOOLS)))
REFLEXIONS = script.SCRIPTS["T-1:reflexion"]
STEPS = tuple(text for name in ("T-1", "T-2") for text in script.SCRIPTS[name] if not text.startswith(REFLEXION_PREFIX))
HEAD = "Thought: I do it.\nAction: "
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@ def f():\n a\n-b\n+c\n"
FILES = (
    EditableFile("x.py", ("a", "b"), frozenset({0, 1})),
    EditableFile("old.py", ("x",), frozenset({0})),
    EditableFile("x", ("", "\tb", "c"), frozenset({0, 1, 2})),
)
DIFFS = diff_rules(EditScope(FILES, ("x.py", "old.py", "x"), PatchBounds()))
PIECES = piece_rules(
    (
        FilePiece(1, "x.py", 1, (("a", "b"),)),
        FilePiece(2, "x.md", 1, (("```", "b", "```"),)),
        FilePiece(4, "y.py", 1, (("a",),), whole=True),
    ),
    *new_file_rules(("x.py", "old.py", "x"), PatchBounds(), ("",)),
)
RIGHT = {
    "read_file": [
        '{"path": "src/a b.py"}',
        '{"path": "a", "first_line": 0}',
        '{"path": "a", "last_line": 7}',
        '{"path": "\\u00e9\\n", "first_line": 3, "last_line": 999999}',
    ],
    "list_files": ["{}", '{"glob": "src/**"}'],
    "grep": ['{"text": "def \\"x\\""}', '{"text": "x", "glob": "**"}'],
    "search_code": ['{"query": "größe 😀"}'],
    "write_diff": [
        DIFF,
        "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
        "--- /dev/null\n+++ b/pkg/__init__.py\n",
        "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" + DIFF,
        "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n\n-\tb\n+\n",
        "--- a/x\n+++ b/x\n@@\n-\tb\n--- a/old.py\n+++ /dev/null\n@@\n-x\n--- /dev/null\n+++ b/new.py\n@@\n+x\n",
    ],
    "rewrite": [
        "Piece 1\n```python\na\nc\n```",
        "Piece 1\n```\n```",
        "Piece 2\n````\n```\nx\n```\n\n````",
        "Piece 4\n```\na\n\n```",
        "New file new.py\n```\nx\n```",
    ],
    "run_tests": ["{}"],
    "static_analyze": ["{}"],
    "run_command": ['{"command": "ls -l | wc"}'],
    "consult": ['{"consultant": "review", "files": "a.py, b.py"}', '{"consultant": "debug", "question": "boom"}'],
    "query_audit": ['{"about": "decisions", "task": "T-1", "days": 3}'],
    "background": ['{"action": "read"}', '{"action": "stop"}'],
    "find_playbook": ['{"words": "deploy kuma"}'],
    "run_playbook": [
        '{"playbook": "deploy.yml", "mode": "check"}',
        '{"playbook": "deploy.yml", "mode": "apply", "inventory": "a,", "limit": "a", "extra_vars": "{\\"b\\": 1}"}',
    ],
    "lint_playbook": ['{"playbook": "deploy.yml"}'],
    "scaffold_playbook": ['{"service": "my-app"}', '{"service": "my-app", "about": "It serves.", "unit": "app"}'],
    "note": ['{"text": "remember"}'],
    "query_knowledge": ['{"query": "retry"}'],
    "remember": ['{"title": "Retries", "text": "- retry\\n- wait"}'],
    "finish": ['{"summary": ""}'],
}
WRONG = [
    "",
    "Thought: I do it.",
    f"{HEAD}read_file\n",
    f"{HEAD}read_file\n{{}}",
    f'{HEAD}read_file\n{{"path": "a", "mode": 1}}',
    f'{HEAD}read_file\n{{"path": 1}}',
    f'{HEAD}read_file\n{{"path": "a", "first_line": "1"}}',
    f'{HEAD}read_file\n{{"path": "a", "first_line": -1}}',
    f'{HEAD}read_file\n{{"path": "a", "first_line": 1000000}}',
    f'{HEAD}read_file\n{{"first_line": 1}}',
    f'{HEAD}read_file\n{{"path": "a"}}\n',
    f'{HEAD}read_file\n{{"path": "a"}} and more',
    f'{HEAD}read_file\n{{"path": "{"a" * 201}"}}',
    f'{HEAD}read_file\n{{"path": "\\ud800"}}',
    f'{HEAD}grep\n{{"glob": "x"}}',
    f'{HEAD}delete\n{{"path": "a"}}',
    f"{HEAD}commit\n{{}}",
    f"{HEAD}merge\n{{}}",
    f"{HEAD}checks\n{{}}",
    f"{HEAD}run_tests\n",
    f"{HEAD}run_tests",
    f"{HEAD}write_diff\n",
    f"{HEAD}write_diff\n```diff\n{DIFF}```\n",
    f"{HEAD}write_diff\n{DIFF}Done.\n",
    f"{HEAD}write_diff\n--- a/x\n+++ b/x\n",
    f"{HEAD}write_diff\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
    f"{HEAD}write_diff\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-A\n+b\n",
    f"{HEAD}write_diff\n--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n",
    f"{HEAD}rewrite\n",
    f"{HEAD}rewrite\nPiece 3\n```\nx\n```",
    f"{HEAD}rewrite\nPiece 4\n```\n```",
    f"{HEAD}rewrite\nPiece 4\n```\n\n```",
    f"{HEAD}rewrite\nPiece 1\nx\n",
    f"{HEAD}rewrite\nPiece 1\n```\nx\n",
    f"{HEAD}rewrite\nPiece 2\n```\nx\n```",
    f"{HEAD}rewrite\nPiece 1\n```\nx\n```\nDone.",
    f"{HEAD}rewrite\nPiece 1\n```\nx\n```\nPiece 2\n````\nx\n````",
    f"{HEAD}rewrite\nNew file x.py\n```\nx\n```",
    "Thought: one\ntwo\nAction: run_tests\n{}",
    "Thought: \nAction: run_tests\n{}",
    f"{'Thought: ' + 'x' * 601}\nAction: run_tests\n{{}}",
    "I do it.\nAction: run_tests\n{}",
    "Thought: \x1b[31m\nAction: run_tests\n{}",
    REFLEXIONS[0],
]


def sentences_of(name: str) -> list[str]:
    return [f"{HEAD}{name}\n{body}" for body in RIGHT[name]]


async def demo_grammars(folder: Path) -> dict[str, str]:
    """Return the demo's steps with the grammar that each was asked for under; nothing but the model is faked."""
    tasks = tuple(
        task(name, f"{sys.executable} -m unittest tests/test_{subject}.py", waits_for)
        for name, subject, waits_for in (("T-1", "cart", ()), ("T-2", "discount", (TaskId("T-1"),)))
    )
    retriever = CodeRetriever(RetrievalSettings(), folder / "cache")
    sayings = [*script.SCRIPTS["T-1"], *script.SCRIPTS["T-2"]]
    async with a_stage(
        folder, sayings, tasks=tasks, approvals=OPEN, headless=True, retriever=retriever, start=FILES_OF_DEMO
    ) as stage:
        stage.model.facts = replace(FACTS, scripted=True)
        assert (await run_unattended(stage.session, stage.recorder, None)).exit_code is ExitCode.DONE
        return dict(zip(sayings, (request.grammar for request in stage.model.requests), strict=True))


def task(name: str, check: str, waits_for: tuple[TaskId, ...]) -> Task:
    scope = PathScope(allowed_write_globs=("shop/**", "tests/**"))
    description = {"T-1": "Make the cart's total count quantities", "T-2": "Give the cart a discount in percent"}[name]
    return Task(TaskId(name), description, "It works.", accept_tests=(check,), depends_on=waits_for, scope=scope)


@pytest.mark.slow
async def test_every_scripted_answer_fits_the_grammar_of_its_request(tmp_path: Path) -> None:
    grammars = await demo_grammars(tmp_path)
    assert len(STEPS) >= 8
    async with grammar_oracle(tmp_path, list(grammars)) as server:
        assert [text for text, grammar in grammars.items() if not await fits(server, grammar, text)] == []
        assert not [text for text in STEPS if await fits(server, reflexion_grammar(), text)]
        assert not [text for text in REFLEXIONS if await fits(server, grammars[STEPS[0]], text)]


async def test_a_reflexion_is_one_bounded_paragraph(tmp_path: Path) -> None:
    wrong = ["Reflexion: ", "Reflexion: a\nb", "reflexion: a", "Thought: a", f"Reflexion: {'x' * 901}"]
    async with grammar_oracle(tmp_path, [*wrong, f"Reflexion: {'x' * 900}"]) as server:
        assert not [text for text in wrong if await fits(server, reflexion_grammar(), text)]
        assert await fits(server, reflexion_grammar(), f"Reflexion: {'x' * 900}")


@pytest.mark.slow
async def test_what_every_tool_takes_fits_alone_and_among_all(tmp_path: Path) -> None:
    assert set(RIGHT) == set(TOOLS) == set(builtin_tools())
    everything = [sentence for name in TOOLS for sentence in sentences_of(name)]
    async with grammar_oracle(tmp_path, everything) as server:
        together = step_grammar(TOOLS.values(), DIFFS, pieces=PIECES)
        for name, tool in TOOLS.items():
            alone = step_grammar([tool], DIFFS, pieces=PIECES)
            for sentence in everything:
                assert await fits(server, alone, sentence) == (sentence in sentences_of(name)), (name, sentence)
        for sentence in everything:
            assert await fits(server, together, sentence), sentence


async def test_an_argument_with_choices_takes_no_other_value(tmp_path: Path) -> None:
    paths = ("src/a.py", "src/ab.py", 'a "b".py', "größe.md")
    right = [f'{HEAD}read_file\n{{"path": {json.dumps(path, ensure_ascii=False)}}}' for path in paths]
    wrong = [f'{HEAD}read_file\n{{"path": "{path}"}}' for path in ("", "src", "src/a", "src/abc.py", "SRC/a.py")]
    grammar = step_grammar(TOOLS.values(), choices={"read_file": {"path": paths}})
    async with grammar_oracle(tmp_path, [*right, *wrong]) as server:
        assert [each for each in right if not await fits(server, grammar, each)] == []
        assert [each for each in wrong if await fits(server, grammar, each)] == []


async def test_the_examples_of_the_prompt_fit_the_grammar_and_apply(tmp_path: Path) -> None:
    lines = ("def area(width, height):", "    return width + height")
    file = EditableFile("geo/area.py", lines, frozenset({0, 1}))
    grammar = step_grammar(TOOLS.values(), diff_rules(EditScope((file,), (file.path,), PatchBounds())))
    async with grammar_oracle(tmp_path, EXAMPLES) as server:
        assert [text for text in EXAMPLES if not await fits(server, grammar, text)] == []
    files = {file.path: FileContent("\n".join((*lines, "")).encode())}
    for text in EXAMPLES:
        step = read_step(text, TOOLS)
        assert isinstance(step, StepCall)
        assert step.mended == ()
        held, free = read_constrained_diff(step.text), read_diff(step.text, PatchBounds(), files)
        assert held is not None
        fit = fit_constrained_diff(held, PatchBounds(), files, files)
        assert fit is not None
        assert fit.changes == fit_diff(free, {path: files.get(path) for path in free.paths}, files).changes


def test_only_tools_that_take_a_diff_are_shown_the_examples() -> None:
    diffs = [spec for spec in TOOLS.values() if spec.name != "rewrite"]
    assert rules(diffs).endswith(EXAMPLES[1].rstrip("\n"))
    assert not any(example in rules(TOOLS.values()) for example in EXAMPLES)
    assert "@@" not in rules([TOOLS["read_file"], TOOLS["finish"]])


@pytest.mark.slow
async def test_what_is_no_step_does_not_fit(tmp_path: Path) -> None:
    async with grammar_oracle(tmp_path, WRONG) as server:
        grammar = step_grammar(TOOLS.values(), DIFFS, pieces=PIECES)
        assert [sentence for sentence in WRONG if await fits(server, grammar, sentence)] == []


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_what_the_grammar_admits_the_reader_takes(name: str) -> None:
    for sentence in sentences_of(name):
        step = read_step(sentence, TOOLS)
        assert isinstance(step, StepCall), (sentence, step)
        assert step.tool.name == name


@pytest.mark.slow
async def test_whatever_a_random_model_says_under_the_grammar_is_a_step(llama_server: LlamaServer) -> None:
    model = llama_server.model()
    grammar = step_grammar(TOOLS.values(), DIFFS, pieces=PIECES)
    ended = 0
    used = set()
    for number in range(30):
        messages = (Message(Role.SYSTEM, rules(TOOLS.values())), Message(Role.USER, f"Task number {number * 7919}"))
        got = await collect(model, ModelRequest(messages, grammar=grammar, answer_tokens=1500))
        if got.end.stop is StopCause.END:
            ended += 1
            step = read_step(got.text, TOOLS)
            assert isinstance(step, StepCall), (got.text, step)
            used.add(step.tool.name)
    await model.close()
    assert ended >= 10
    assert len(used) >= 3


@pytest.mark.parametrize(("grammar", "word"), [(reflexion_grammar(), "Reflexion: "), (summary_grammar(), "Summary: ")])
async def test_the_server_takes_what_is_asked_besides_steps(llama_server: LlamaServer, grammar: str, word: str) -> None:
    model = llama_server.model()
    got = await collect(model, ModelRequest((Message(Role.USER, "go on"),), grammar=grammar, answer_tokens=40))
    await model.close()
    assert got.text.startswith(word), "a grammar that it cannot read is left out"
