"""What language servers find in an applied diff: in its step, in the next prompt, and in the journal."""

from asyncio import to_thread
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.checks.language_servers import SERVER_NAMES, Diagnostic, Severity, describe_diagnostics
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionFinished, PatchApplied
from agent_workbench.core.plan import TaskEdit, TaskOrigin
from agent_workbench.core.ports.tools import AppliedDiff
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission, Rule, Settings
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.transcript import transcript_of
from tests.engine.stage import ANSWER, FINISH, OPEN, T1, Stage, a_stage, change, reflexion, task
from tests.fakes.ports import GivenChunks

BAD = Diagnostic(ANSWER, 1, Severity.ERROR, "no such word: rigth", "ruff", "F821")
TOLD = describe_diagnostics([BAD])
FOUND = Chunk(ANSWER, 1, 1, "wrong", 1.0)
SAYINGS = (change("wrong", "rigth"), reflexion(), change("rigth", "right"), FINISH)


class GivenDiagnostics:
    """The port `LanguageServers`: an error in the file of the answer that has not the right word, at once or `late`."""

    def __init__(self, *, late: bool = False) -> None:
        self.is_late = late
        self.prepared: list[Sequence[str]] = []
        self.compared: list[AppliedDiff] = []
        self.permitted: list[Collection[str]] = []
        self.closed = False

    def prepare(self, root: str, paths: Sequence[str], servers: Collection[str]) -> None:
        self.prepared.append(paths)

    async def compare(self, diff: AppliedDiff, servers: Collection[str]) -> tuple[Diagnostic, ...]:
        after = diff.changes[0].after
        assert after is not None
        assert await to_thread(Path(diff.root, ANSWER).read_bytes) == after.data
        self.compared.append(diff)
        self.permitted.append(servers)
        return () if self.is_late else self._found()

    def late(self, tree: str) -> tuple[Diagnostic, ...]:
        first = self.is_late and len(self.compared) == 1 and self.compared[0].tree == tree
        self.is_late = self.is_late and not first
        return self._found() if first else ()

    def _found(self) -> tuple[Diagnostic, ...]:
        (only,) = self.compared[-1].changes
        return () if only.after is None or only.after.data == b"right\n" else (BAD,)

    async def close(self) -> None:
        self.closed = True


def results(stage: Stage) -> list[ActionFinished]:
    return [each for each in stage.events if isinstance(each, ActionFinished)]


def shown(stage: Stage) -> str:
    return "\n".join(block.text for entry in transcript_of(stage.state).entries for block in entry.blocks)


async def test_new_diagnostics_are_in_the_step_and_in_the_next_prompt(tmp_path: Path) -> None:
    servers = GivenDiagnostics()
    async with a_stage(
        *(tmp_path, SAYINGS),
        approvals=OPEN,
        headless=True,
        retriever=GivenChunks((FOUND, FOUND)),
        language_servers=servers,
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        (first, second) = servers.compared
        applied = [each for each in stage.events if isinstance(each, PatchApplied)]
        assert [first.base != first.tree, first.tree, second.base] == [True, applied[0].tree, applied[0].tree]
        assert servers.prepared == [(ANSWER,)] * 3
        (told,) = [each for each in results(stage) if each.diagnostics]
        assert told.diagnostics == (BAD,)
        assert told.observation.endswith(f"\n\n{TOLD}")
        assert TOLD not in stage.model.requests[0].messages[-1].text
        assert TOLD in stage.model.requests[1].messages[-1].text
        assert shown(stage).count(BAD.text) == 1
        # The journal alone gives the same prompts.
        assert [step.difference for step in rerun(stage.journal())] == [None] * len(SAYINGS)
        assert stage.read_back() == stage.state
    assert servers.closed


async def test_late_ones_join_the_next_step(tmp_path: Path) -> None:
    servers = GivenDiagnostics(late=True)
    async with a_stage(tmp_path, SAYINGS, approvals=OPEN, headless=True, language_servers=servers) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        (told,) = [each for each in results(stage) if each.diagnostics]
        assert told.observation.startswith("Checks failed.")
        assert TOLD in stage.model.requests[1].messages[-1].text
        assert shown(stage).count(BAD.text) == 1


@pytest.mark.parametrize(
    ("origin", "rules", "accept", "permitted"),
    [
        (TaskOrigin.LOCAL, (), True, set(SERVER_NAMES)),
        (TaskOrigin.LOCAL, (), False, {"basedpyright", "pyright", "ruff", "clangd"}),
        (TaskOrigin.FORGE, (), False, set()),
        (TaskOrigin.FORGE, (Rule(Permission.COMMAND, any=True),), False, set()),
        (TaskOrigin.FORGE, (Rule(Permission.COMMAND, commands=("ruff server",)),), False, {"ruff"}),
        (TaskOrigin.FORGE, (Rule(Permission.CHECK, commands=("ruff server",)),), False, set()),
    ],
)
async def test_which_servers_a_task_may_use(
    tmp_path: Path, origin: TaskOrigin, rules: tuple[Rule, ...], accept: bool, permitted: set[str]
) -> None:
    servers = GivenDiagnostics()
    stored = tuple(StoredRule(each, RuleScope.USER) for each in rules)
    tasks = (replace(task(accept=("true",) if accept else ()), origin=origin),)
    async with a_stage(
        *(tmp_path, (change("wrong", "right"), FINISH)),
        tasks=tasks,
        approvals=OPEN,
        headless=True,
        language_servers=servers,
        rules=stored,
    ) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert servers.permitted == [permitted]


async def test_nobody_is_asked_where_a_setting_says_so_or_no_model_reads_it(tmp_path: Path) -> None:
    none, given = GivenDiagnostics(), GivenDiagnostics()
    off = Settings(language_servers=())
    async with a_stage(
        *(tmp_path / "off", (change("wrong", "right"), FINISH)),
        approvals=OPEN,
        headless=True,
        language_servers=none,
        settings=off,
    ) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert none.permitted == [set()]
    edits = (TaskEdit(ANSWER, find="wrong", replace="right"),)
    async with a_stage(
        tmp_path / "edits", tasks=(replace(task(), edits=edits),), approvals=OPEN, headless=True, language_servers=given
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        assert given.permitted == []
        assert given.prepared == []
