"""A task from words: what the repository proposes for it, what is refused, and what its first prompt has."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    AddTask,
    CompleteCode,
    DraftTask,
    ExpandPrompt,
    ListPrompts,
    SayToModel,
    StartTask,
)
from agent_workbench.core.outcomes import CodeCompleted, PromptsListed, Refused, TaskAdded, TaskDrafted
from agent_workbench.core.plan import PathScope, Task, TaskDraft
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import Chunk, Completion, IndexStatus
from agent_workbench.core.settings import Permission, Settings
from agent_workbench.core.task_words import stated_goal, wants_only_checks
from agent_workbench.engine.task.task_draft import NO_CHECKS, UNTRUSTED_CHECK, DraftSources, clean_words, propose_task
from tests.adapters.plans.plan_files import content, plan_file
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, WRONG_ANSWER, a_stage, change, task
from tests.engine.test_compaction import text_of
from tests.fakes.ports import GivenChunks, Hang

T2, T3 = TaskId("T-2"), TaskId("T-3")
FILES = ("README.md", "docs/a guide.md", "setup.py", "src/shop/cart.py", "src/shop/tax.py", "tests/test_cart.py")
PYTEST = Settings(test_command="pytest -q")
CODE = {**WRONG_ANSWER, "src/cart.py": "def total():\n    return 0\n", "long.txt": "line\n" * 950, "tests/t.py": ""}


def drafted(words: str, *found: str, settings: Settings = PYTEST) -> TaskDraft:
    return propose_task(words, T2, DraftSources(FILES, found, settings))


def test_files_that_are_named_give_scope_and_checks() -> None:
    draft = drafted("round in @src/shop/cart.py: to cents", "README.md")
    assert draft.task == Task(
        T2,
        "round in @src/shop/cart.py: to cents",
        "A new test in tests/test_cart.py shows it, and pytest -q tests/test_cart.py passes.",
        accept_tests=("pytest -q tests/test_cart.py",),
        scope=PathScope(("src/**", "tests/**")),
    )
    assert (draft.mentions, draft.remarks) == (("src/shop/cart.py",), ())


@pytest.mark.parametrize(
    ("words", "found", "scope"),
    [
        ("round to cents", ("src/shop/cart.py", "docs/a guide.md"), ("src/**", "docs/**", "tests/**")),
        ("round to cents", ("src/shop/cart.py", "setup.py"), ("**",)),
        ("round to cents", (), ("**",)),
        ('say it in @README.md and @"docs/a guide.md"', ("src/shop/cart.py",), ("docs/**", "README.md")),
        ("@src/[x]/a.py", ("src/[x]/a.py",), ("src/**", "tests/**")),
    ],
)
def test_the_scope_is_the_top_folders_of_what_matters(
    words: str, found: tuple[str, ...], scope: tuple[str, ...]
) -> None:
    assert drafted(words, *found).task.scope.allowed_write_globs == scope


@pytest.mark.parametrize(
    ("command", "check"),
    [
        ("python -m pytest -q", "python -m pytest -q tests/test_cart.py"),
        (".venv/bin/pytest", ".venv/bin/pytest tests/test_cart.py"),
        ("pytest -q tests/unit", "pytest -q tests/unit"),
        ("pytest -q; rm x", "pytest -q; rm x"),
        ("make test", "make test"),
    ],
)
def test_only_a_command_that_takes_files_gets_them(command: str, check: str) -> None:
    assert drafted("in @src/shop/cart.py", settings=Settings(test_command=command)).task.accept_tests == (check,)


def test_without_tests_nothing_is_made_up() -> None:
    draft = drafted("round to cents", settings=Settings())
    assert (draft.task.accept_tests, draft.task.goal, draft.remarks) == ((), "", (NO_CHECKS,))


@pytest.mark.parametrize(
    ("words", "checks"),
    [
        ("repair sdsrange: `make && ./sds-test` must pass", ("make && ./sds-test",)),
        ("so that `npm test` and `npm run lint` pass", ("npm test", "npm run lint")),
        ("so that `tox`, and `npm test` pass again", ("tox", "npm test")),
        ("make `./check.sh` pass; `cargo test -q` has to pass, too", ("./check.sh", "cargo test -q")),
        ("`total` must pass the amount on", ()),
        ("`total(a, b)` must pass.", ()),
        ("`add up` must pass `b` on", ()),
        ("`go test` is slow. It must pass quickly", ()),
        ("`git push --force` must not succeed", ()),
        ("`rm -rf build` cannot succeed", ()),
        ("`a 1`, `a 2`, `a 3` and `a 4` pass", ()),
    ],
)
def test_a_command_of_which_seen_words_say_that_it_passes_is_a_check(words: str, checks: tuple[str, ...]) -> None:
    def proposed(settings: Settings, *, seen: bool) -> TaskDraft:
        return propose_task(words, T2, DraftSources(FILES, (), settings), seen=seen)

    draft = proposed(Settings(), seen=True)
    assert draft.task.accept_tests == checks
    assert (NO_CHECKS in draft.remarks) is not bool(checks)
    assert proposed(PYTEST, seen=True).task.accept_tests == (*checks, "pytest -q")
    # Nobody sees what another task runs before it starts, and its words may be those of an issue.
    alone = proposed(Settings(), seen=False)
    assert (alone.task.accept_tests, alone.remarks) == ((), (NO_CHECKS,))


def test_a_named_part_of_the_test_command_stands_in_its_place() -> None:
    words = "repair it, so that `pytest -q tests/test_cart.py` passes"
    draft = propose_task(words, T2, DraftSources(FILES, (), PYTEST), seen=True)
    assert draft.task.accept_tests == ("pytest -q tests/test_cart.py",)


def test_mentions_of_no_file_are_said_and_not_pinned() -> None:
    draft = drafted("mend @../../etc/passwd and @property in @cart.py")
    assert draft.mentions == ()
    assert [each.split(" is no file")[0] for each in draft.remarks] == ["@../../etc/passwd", "@cart.py"]


def test_many_words_become_a_line_and_the_rest_the_goal() -> None:
    two = drafted("Round the sum\r\n\r\nIt is 0.1 off:\n- x: y\n", settings=Settings()).task
    assert (two.description, two.goal) == ("Round the sum", "It is 0.1 off:\n- x: y")
    long = "word " * 200
    one = drafted(long.strip(), settings=Settings()).task
    assert len(one.description) < 210
    assert one.goal == long.strip()
    assert drafted("x" * 8_000).task.description.endswith(" …")


@pytest.mark.parametrize("words", ["", " \n", "deploy", "x " * 8_001, "x" * 100_000])
def test_no_words_or_too_many_are_refused(words: str) -> None:
    with pytest.raises(UsageError):
        clean_words(words)


def test_nothing_that_is_not_seen_gets_into_a_plan() -> None:
    assert clean_words("a \x1b[2J\x00b\u202e\u200bc\ud800") == "a ␛[2J␀b‹202E›‹200B›c‹D800›"


async def test_words_become_a_task_that_starts_with_what_they_mention(tmp_path: Path) -> None:
    words = '-x: "right" in @answer.txt and @src/cart.py:1-1, not @long.txt or @../../etc/passwd'
    near = (Chunk("src/cart.py", 1, 1, "def total():", 0.5), Chunk("tests/t.py", 1, 1, "", 0.4))
    sayings = [change("wrong", "right"), FINISH]
    retriever = GivenChunks(near)
    async with a_stage(tmp_path, sayings, approvals=OPEN, start=CODE, retriever=retriever) as stage:
        async with in_front_of(stage) as front:
            drafted = await front.outcome(DraftTask(words))
            assert isinstance(drafted, TaskDrafted)
            assert drafted.draft.mentions == ("answer.txt", "src/cart.py:1-1")
            assert "@long.txt has 950 lines; mention some, such as @long.txt:1-100" in drafted.draft.remarks
            assert drafted.draft.task.scope == PathScope(("src/**", "tests/**", "answer.txt", "long.txt"))
            stage.plan.plan = replace(stage.plan.plan, tasks=(*stage.plan.plan.tasks, task("T-2")))
            added = await front.outcome(AddTask(replace(drafted.draft.task, accept_tests=("true",))))
            assert isinstance(added, TaskAdded)
            assert (added.task.id, stage.state.plan.tasks[-1]) == (T3, added.task), "another task came first"
            await front.submit(StartTask(T3))
            await front.told("not pinned: @long.txt has 950 lines; mention some, such as @long.txt:1-100")
            await front.told("not pinned: @../../etc/passwd is no file of the task's base")
            await front.gate(Permission.MERGE)
        pinned = [each.chunk for each in stage.events if isinstance(each, e.ChunkPinned)]
        assert [each.place for each in pinned] == ["answer.txt:1-1", "src/cart.py:1-1"]
        (found,) = [each for each in stage.events if isinstance(each, e.CodeRetrieved)]
        assert [each.path for each in found.chunks] == ["tests/t.py"], "what is pinned is not sent twice"
        assert "The user pinned answer.txt:1-1" in text_of(stage, 0)


async def test_what_a_message_mentions_is_pinned_before_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=OPEN, start=CODE) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            told = await front.notice(SayToModel("as in @src/cart.py and @nowhere.py"))
            assert told == "not pinned: @nowhere.py is no file of the task's base"
        kept = [type(each).__name__ for each in stage.events if isinstance(each, e.ChunkPinned | e.UserSaid)]
        assert kept == ["ChunkPinned", "UserSaid"]


async def test_a_file_that_holds_secrets_is_not_sent_because_it_is_mentioned(tmp_path: Path) -> None:
    start = {**CODE, ".npmrc": "//registry.example/:_authToken=planted\n"}
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=OPEN, start=start) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            told = await front.notice(SayToModel("as in @.npmrc"))
            assert told == "not pinned: @.npmrc is a file that usually holds secrets"
        assert not [each for each in stage.events if isinstance(each, e.ChunkPinned)]


async def test_a_task_reads_no_file_outside_its_scope_by_a_mention(tmp_path: Path) -> None:
    scoped = replace(task(), description="as in @src/cart.py", scope=PathScope(allowed_read_globs=("answer.txt",)))
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=OPEN, start=CODE, tasks=(scoped,)) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.told("not pinned: 'src/cart.py' is outside")
            assert await front.outcome(CompleteCode("src/cart")) == CodeCompleted("src/cart", ())
        assert not [each for each in stage.events if isinstance(each, e.ChunkPinned)]


async def test_words_become_the_first_task_where_there_is_no_plan_file(tmp_path: Path) -> None:
    async with a_stage(tmp_path, start=CODE, settings=PYTEST) as stage:
        stage.session.ports = replace(stage.session.ports, plans=plan_file(stage.user.root))
        async with in_front_of(stage) as front:
            drafted = await front.outcome(DraftTask("round to cents"))
            assert isinstance(drafted, TaskDrafted)
            assert await front.outcome(AddTask(drafted.draft.task)) == TaskAdded(drafted.draft.task)
        assert "round to cents" in content(stage.user.root)


async def test_a_secret_in_the_words_gets_into_no_plan(tmp_path: Path) -> None:
    async with a_stage(tmp_path, secrets={"TOKEN": "hunter2hunter2"}) as stage, in_front_of(stage) as front:
        drafted = await front.outcome(DraftTask("use hunter2hunter2 for it"))
        assert isinstance(drafted, TaskDrafted)
        assert "hunter2" not in drafted.draft.task.description
        assert isinstance(await front.outcome(DraftTask(" ")), Refused)


PROMPTS = {
    "memory/commands/fix.md": "Fix $1 in @answer.txt\n\nAs $2 says, !`touch ran`.",
    "memory/commands/review.md": "x",
}


async def test_a_prompt_that_is_called_becomes_the_task(tmp_path: Path) -> None:
    async with a_stage(tmp_path, start={**CODE, **PROMPTS}) as stage, in_front_of(stage) as front:
        drafted = await front.outcome(DraftTask('/fix "the sum" me'))
        assert isinstance(drafted, TaskDrafted)
        assert drafted.draft.task.description == "Fix the sum in @answer.txt"
        assert drafted.draft.task.goal == "As me says, !`touch ran`."
        assert drafted.draft.mentions == ("answer.txt",)
        assert not list(tmp_path.rglob("ran")), "nothing of it is run"
        for words, why in {"/fixx it": "did you mean 'fix'?", "/review x": "asks a consultant"}.items():
            refused = await front.outcome(DraftTask(words))
            assert isinstance(refused, Refused)
            assert why in refused.reason
        listed = await front.outcome(ListPrompts())
        assert isinstance(listed, PromptsListed)
        assert [each.name for each in listed.prompts] == ["fix"]
        assert listed.remark == "memory/commands/review.md: /review asks a consultant"
        long = await front.outcome(ExpandPrompt(f"/fix {'x' * 16_000}"))
        assert isinstance(long, Refused)
        assert "memory/commands/fix.md has 16,0" in long.reason


async def test_files_and_symbols_complete_what_is_typed_without_a_task(tmp_path: Path) -> None:
    chunks = (Chunk("src/cart.py", 1, 2, "", 0.5, symbol="total"), Chunk("gone.py", 1, 2, "", 0.5, symbol="totals"))
    async with a_stage(tmp_path, start=CODE, retriever=GivenChunks(chunks)) as stage, in_front_of(stage) as front:
        assert await front.outcome(CompleteCode("cart")) == CodeCompleted("cart", (Completion("src/cart.py"),))
        total = CodeCompleted("total", (Completion("src/cart.py:1-2", "total"),))
        assert await front.outcome(CompleteCode("total")) == total
        found = await front.outcome(CompleteCode(""))
        assert isinstance(found, CodeCompleted)
        assert found.items[0] == Completion("long.txt")
        assert await front.outcome(CompleteCode("../../etc/pas")) == CodeCompleted("../../etc/pas", ())


class SavedIndex(GivenChunks):
    """An index on the disk, which is there a moment after it was asked for."""

    looks: int = 0

    def status(self, sources: Sources) -> IndexStatus:
        self.looks += 1
        return super().status(sources) if self.looks > 2 else IndexStatus()


async def test_a_saved_index_is_waited_for_before_the_scope_is_a_guess(tmp_path: Path) -> None:
    chunks = (Chunk("src/cart.py", 1, 2, "def total():\n    return 0", 0.9),)
    async with a_stage(tmp_path, start=CODE, retriever=SavedIndex(chunks)) as stage, in_front_of(stage) as front:
        drafted = await front.outcome(DraftTask("count the totals"))
        assert isinstance(drafted, TaskDrafted)
        assert drafted.draft.remarks == (NO_CHECKS,)
        assert "src/**" in drafted.draft.task.scope.allowed_write_globs
    empty = tmp_path / "empty"
    async with a_stage(empty, start=CODE, retriever=GivenChunks()) as stage, in_front_of(stage) as front:
        drafted = await front.outcome(DraftTask("count the totals"))
        assert isinstance(drafted, TaskDrafted)
        assert any("first guess" in each for each in drafted.draft.remarks)


@pytest.mark.parametrize(
    ("told", "is_set"), [("pytest -q", True), ("'pytest -q'", True), ('""', False), ("null", False), ("# none", False)]
)
async def test_a_test_command_without_trust_is_told_as_that(tmp_path: Path, told: str, *, is_set: bool) -> None:
    start = {**CODE, ".agent.yml": f"test_command: {told}\n"}
    async with a_stage(tmp_path, start=start, retriever=GivenChunks()) as stage, in_front_of(stage) as front:
        drafted = await front.outcome(DraftTask("count the totals"))
        assert isinstance(drafted, TaskDrafted)
        assert (UNTRUSTED_CHECK in drafted.draft.remarks) is is_set
        assert (NO_CHECKS in drafted.draft.remarks) is not is_set


@pytest.mark.parametrize(
    ("words", "new"),
    [
        ("The tests of @src/shop/cart.py fail", False),
        ("tests/test_cart.py::test_total is red since today", False),
        ("Fix the failing test of the cart", False),
        ("The tests fail for 0: add a test of that", True),
        ("Write a failing test for the rounding, then mend it", True),
        ("Retry a failed upload; there are no tests of it yet", True),
        ("The total is broken: tests pass, and users see 0", True),
        ("A request that fails is sent again", True),
        ("Count the totals in the tests folder", True),
    ],
)
def test_no_new_test_is_asked_for_where_the_words_say_that_tests_fail(words: str, *, new: bool) -> None:
    task = drafted(words, settings=Settings(test_command="pytest")).task
    assert task.goal.startswith("A new test" if new else "The tests that fail pass, and so does pytest")
    assert stated_goal(task) == ""
    assert wants_only_checks(task) is not any(each in words for each in ("add a test", "Write a failing test"))
