"""A task cannot pass by changing its judges: what a model tries is refused with the reason, and counted."""

from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionRejected, TaskStarted
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import PathScope, Task
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, Settings
from agent_workbench.engine.answer.grammar_choice import choose_grammar
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.task.first_search import retrieve
from agent_workbench.engine.task.task_start import start_task
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, reflexion
from tests.fakes.ports import GivenChunks, Saying

CHECK = "sh tests/test_answer.sh"
JUDGE = "tests/test_answer.sh"
START = {
    "answer.txt": "wrong\n",
    JUDGE: "grep -q right answer.txt\n",
    "conftest.py": "x = 1\n",
    "pyproject.toml": '[tool.pytest]\naddopts = "-q"\n[project]\nname = "x"\n',
}
RIGHT = change("wrong", "right")


def task(words: str = "Make the answer right", globs: tuple[str, ...] = ("**",)) -> Task:
    return Task(T1, words, accept_tests=(CHECK,), scope=PathScope(globs))


def created(path: str, line: str = "x = 1") -> str:
    return call("write_diff", f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n")


def renamed(path: str, to: str) -> str:
    return call("write_diff", f"rename from {path}\nrename to {to}\n")


def refused(stage: Stage) -> list[ActionRejected]:
    return [event for event in stage.events if isinstance(event, ActionRejected) and event.judges]


ATTACKS = (
    (change("grep -q right answer.txt", "true", JUDGE), JUDGE),
    (renamed(JUDGE, "tests/old.sh"), JUDGE),
    (renamed("answer.txt", "tests/TEST_ANSWER.sh"), "tests/TEST_ANSWER.sh"),
    (created("Tests/test_answer.sh"), "Tests/test_answer.sh"),
    (change("x = 1", "x = 2", "conftest.py"), "conftest.py"),
    (change("[tool.pytest]", "[tool.nothing]", "pyproject.toml"), "pyproject.toml"),
)


async def test_attempts_on_the_judges_are_refused_and_counted(tmp_path: Path) -> None:
    said: list[Saying] = [*(attack for attack, _ in ATTACKS), RIGHT, FINISH]
    settings = Settings(limits=Limits(consecutive_failure_threshold=len(said)))
    async with a_stage(
        tmp_path, said, tasks=(task(),), settings=settings, approvals=OPEN, headless=True, start=START
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        run = stage.read_back().run
        assert (ending.exit_code, run and run.judge_attempts) == (ExitCode.DONE, len(ATTACKS))
        assert [event.judges for event in refused(stage)] == [(path,) for _, path in ATTACKS]
        assert "read-only" in refused(stage)[0].reason
        assert stage.git("show", f"agent/T-1:{JUDGE}") == START[JUDGE].strip()
        assert f"decide whether the task is done: {JUDGE}" in stage.model.requests[0].messages[1].text
        assert {each.difference for each in rerun(stage.journal())} == {None}


PYTHON = 'def sum_of(a, b):\n    """Sum.\n\n    >>> sum_of(1, 2)\n    3\n    """\n    return a - b\n'
C = "int sum(int a) {\n    return a - b;\n}\n#ifdef SUM_TEST\nint main(void) { return sum(1) != 3; }\n#endif\n"


@pytest.mark.parametrize(
    ("path", "text", "check", "attack"),
    [
        ("sum.py", PYTHON, "python3 -B -m doctest sum.py", ("    3", "    -1")),
        ("sum.c", C, "grep -q 'a + b' sum.c", ("int main(void) { return sum(1) != 3; }", "int main(void) {}")),
    ],
)
async def test_tests_inside_a_program_are_read_only_and_the_program_is_not(
    tmp_path: Path, path: str, text: str, check: str, attack: tuple[str, str]
) -> None:
    end = ";" if path == "sum.c" else ""
    said = [change(*attack, path), change(f"    return a - b{end}", f"    return a + b{end}", path), FINISH]
    mend = Task(T1, "Mend the sum", accept_tests=(check,))
    async with a_stage(tmp_path, said, tasks=(mend,), approvals=OPEN, headless=True, start={path: text}) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        run = stage.read_back().run
        assert (ending.exit_code, run and run.judge_attempts) == (ExitCode.DONE, 1)
        assert f"in {path} decides whether this task is done, so it is read-only" in refused(stage)[0].reason
        assert stage.git("show", f"agent/T-1:{path}") == text.replace("a - b", "a + b").strip()
        assert {each.difference for each in rerun(stage.journal())} == {None}


async def test_the_rest_of_a_projects_file_is_open(tmp_path: Path) -> None:
    renaming = call("write_diff", '--- a/pyproject.toml\n+++ b/pyproject.toml\n@@ -4 +4 @@\n-name = "x"\n+name = "y"\n')
    said = [renaming, reflexion(), RIGHT, FINISH]
    async with a_stage(tmp_path, said, tasks=(task(),), approvals=OPEN, headless=True, start=START) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert 'name = "y"' in stage.git("show", "agent/T-1:pyproject.toml")


async def test_what_a_linked_judge_leads_to_is_one_too(tmp_path: Path) -> None:
    attack = change("grep -q right answer.txt", "true", "shared/real.sh")
    start = {"answer.txt": "wrong\n", "shared/real.sh": START[JUDGE]}
    async with a_stage(
        tmp_path, [attack, RIGHT, FINISH], tasks=(task(),), approvals=OPEN, headless=True, start=start
    ) as stage:
        (stage.user.root / "tests").mkdir()
        (stage.user.root / JUDGE).symlink_to("../shared/real.sh")
        stage.user.commit("Link the test")
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert [event.judges for event in refused(stage)] == [("shared/real.sh",)]


async def test_the_grammar_offers_no_judge(tmp_path: Path) -> None:
    shown = GivenChunks((Chunk(JUDGE, 1, 1, "grep -q right answer.txt", 1.0), Chunk("answer.txt", 1, 1, "wrong", 1.0)))
    grammars: list[str] = []
    for words, globs in (("Make the answer right", ("**",)), ("Make it right", ("answer.txt", JUDGE))):
        async with a_stage(
            tmp_path / words,
            tasks=(task(words, globs),),
            approvals=OPEN,
            headless=True,
            start=START,
            retriever=shown,
        ) as stage:
            await start_task(stage.session, T1)
            await retrieve(stage.session)
            grammars.append(await choose_grammar(stage.session, Purpose.EXECUTOR))
    assert ["grep -q right" in grammar for grammar in grammars] == [False, True]


@pytest.mark.parametrize(("words", "globs"), [("Fix tests/test_answer.sh", ("**",)), ("Fix it", (JUDGE, "answer.txt"))])
async def test_a_person_or_the_scope_opens_a_judge(tmp_path: Path, words: str, globs: tuple[str, ...]) -> None:
    attack = change("grep -q right answer.txt", "grep -q wrong answer.txt", JUDGE)
    approvals = Approvals(check=Approval.AUTO)
    async with (
        a_stage(tmp_path, [attack, FINISH], tasks=(task(words, globs),), approvals=approvals, start=START) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        assert (waiting.paths, waiting.special) == ((JUDGE,), () if JUDGE in globs else (JUDGE,))


@pytest.mark.parametrize("path", ["tests/conftest.py", "sitecustomize.py", "pytest.py", "pytest.ini"])
async def test_a_new_file_that_changes_how_tests_run_needs_a_person(tmp_path: Path, path: str) -> None:
    start = {name: text for name, text in START.items() if name != "conftest.py"}
    said = [created(path), RIGHT, FINISH]
    async with a_stage(tmp_path, said, tasks=(task(),), approvals=OPEN, headless=True, start=start) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert path not in stage.git("ls-tree", "-r", "--name-only", "agent/T-1")
        assert "need a person's approval" in stage.model.requests[1].messages[-1].text


async def test_tasks_of_earlier_versions_have_no_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.engine.task.task_start.VERSION", 3)
    attack = change("grep -q right answer.txt", "true", JUDGE)
    async with a_stage(
        tmp_path, [attack, FINISH], tasks=(task(),), approvals=OPEN, headless=True, start=START
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        assert (ending.exit_code, refused(stage)) == (ExitCode.DONE, [])
        (started,) = [event for event in stage.events if isinstance(event, TaskStarted)]
        assert started.wording == 3
