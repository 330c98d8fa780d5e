"""First search of a task: its skills, pinned code, notes, and the code that its first prompt shows."""

import re
from asyncio import to_thread
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice, pairwise
from pathlib import PurePosixPath

from msgspec.structs import replace

from agent_workbench.core.checks.failure_report import raised_at
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import CodeRetrieved, KnowledgeFound, TestsFinished
from agent_workbench.core.patch.left_out_text import PYTHON, is_heading
from agent_workbench.core.patch.paths import matches_glob, shown
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.absent_sources import missing_packages, names_packages
from agent_workbench.core.repo.path_kinds import is_program, is_test, names_test
from agent_workbench.core.repo.repo_map import MOST_PATHS, RepoMap, map_repo
from agent_workbench.core.repo.retrieval import RELEVANT, Chunk, CodeQuery
from agent_workbench.engine.compacted_context import relocate_chunk
from agent_workbench.engine.notes import find_knowledge
from agent_workbench.engine.prompt.step_history import shown_at
from agent_workbench.engine.runtime.code_diagnostics import prepare_diagnostics
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.task.code_lookup import pin_mentions
from agent_workbench.engine.task.skill_choice import choose_skills
from agent_workbench.engine.tools.check_runs import describe_checks, latest_failures

MOST_OTHERS, MOST_TOKENS, MOST_NEAR, WIDER = 2, 1_200, 10, 3
"""Limits of the first prompt where a check fails: pieces of files that nothing names, estimated tokens of all code,
paths in the map of the repository, and pieces that are looked at for one that is shown."""
MOST_LISTS = 10
_NAMES = re.compile(r"\w+")
_MEMBERS = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_GLOB = re.compile(r"[*?\[\]]")
# A path among the words of a command, as in `pytest tests/test_cart.py::test_total`.
_WORDS = re.compile(r"[^\s:;=\"']+")


async def retrieve(session: SessionContext) -> None:
    """Choose skills, pin the code that the task mentions, and record what a search for the task finds."""
    definition = session.run.definition
    await choose_skills(session, await session.workspace(), task_words(definition), named_files(definition))
    session.publisher.show_activity("searching the code")
    for remark in await pin_mentions(session, task_words(session.run.definition)):
        session.publisher.notify(remark)
    await _tell_missing_packages(session)
    await _find_knowledge(session)
    await _find_code(session)


async def _tell_missing_packages(session: SessionContext) -> None:
    """Tell the user which packages the checks could not import before any change: no change of code mends that."""
    workspace = await session.workspace()
    output = "\n".join(each.output for each in session.run.baseline or () if not each.passed)
    paths = await workspace.list_files() if output else ()
    found = await workspace.read_files([*islice(filter(names_packages, paths), MOST_LISTS)])
    lists = {path: data.decode(errors="replace") for path, data in found.items()}
    for package, place in (await to_thread(missing_packages, output, lists, paths)).items():
        told = f"{package}, which {shown(place)} lists: install it for the command that runs them"
        session.publisher.notify_once(f"the checks could not import {told}")


async def keep_attempt(session: SessionContext) -> None:
    """Record the code as it is after an attempt that is kept, and what fails now, for a prompt like the first one.

    After the attempt that was kept is given up, they are those before any change.
    """
    context = await session.tool_context()
    run, root = session.run, context.workspace.facts.path
    finished = TestsFinished(CheckPurpose.AFTER_DIFF, run.results or run.baseline or ())
    await _find_code(session, await to_thread(lambda: describe_checks(finished, root=root, brief=True)))


async def _find_code(session: SessionContext, failing: str = "") -> None:
    """Record what a search for the task finds.

    With what is `failing` now, the pinned code as it is now as well, and without what the user dropped.
    """
    session.publisher.show_activity("searching the code")
    query = _query(session)
    most = session.settings.retrieval.top_n
    looked_at = most * WIDER if session.run.tries_afresh else most
    chunks = await session.ports.retriever.search(await session.workspace(), query, looked_at)
    context = await session.tool_context()
    told = "\n".join(filter(None, (task_words(session.run.definition), query.failing)))
    pinned, dropped = session.run.pinned, tuple[Chunk, ...]()
    if failing:
        left_out = (shown_at(session.run.history, place) for place in session.run.dropped)
        dropped = await _as_now(context, filter(None, left_out))
        pinned = await _as_now(context, pinned)
    known = (*pinned, *dropped)
    found = tuple(each for each in chunks if context.may_read(each.path) and not any(k.covers(each) for k in known))
    if session.run.tries_afresh:
        found = tuple(islice(_near(found, query, told), most))
    drawn = await _map(context, found, query.text, MOST_NEAR if session.run.tries_afresh else MOST_PATHS)
    chunks = await context.for_prompt((*pinned, *found), anew=True) if failing else await context.for_prompt(found)
    await session.record(CodeRetrieved(told, chunks, drawn, failing))
    prepare_diagnostics(session, [each.path for each in chunks])
    session.publisher.show_activity("")


async def _as_now(context: ToolContext, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    now = [await relocate_chunk(context.workspace, chunk) for chunk in chunks]
    return tuple(chunk for chunk in now if chunk is not None)


async def _find_knowledge(session: SessionContext) -> None:
    """Record the notes that fit the task's words. A problem is told once in a session and stops nothing."""
    if any(isinstance(each.event, KnowledgeFound) for each in session.run.history):
        return  # a stop came between this search and that of the code
    settings = session.settings
    found = await find_knowledge(
        session.ports.knowledge,
        settings.memory.dir,
        task_words(session.run.definition),
        max_tokens=settings.memory.knowledge_tokens,
    )
    past = (each.event for run in session.state.past for each in run.history)
    if found.problem in {event.problem for event in past if isinstance(event, KnowledgeFound)}:
        found = replace(found, problem="")
    if found.notes or found.problem:
        await session.record(found)


async def _map(context: ToolContext, found: Sequence[Chunk], words: str, most: int) -> RepoMap:
    own = context.settings.searched.exclude
    listed = await context.workspace.list_files()
    paths = [path for path in listed if context.may_read(path) and not any(matches_glob(path, glob) for glob in own)]
    command = context.settings.test_command or next(iter(context.task.accept_tests), "")
    return await to_thread(lambda: map_repo(paths, [chunk.path for chunk in found], words, command, most=most))


def _near(found: Sequence[Chunk], query: CodeQuery, told: str) -> Iterator[Chunk]:
    """Yield the pieces of files that a task or its failing check name, and a few others; of code all if none is named.

    Code comes before tests, also where one file holds both, what the words name before others, and then that in which
    an error was raised: a small model rewrites what it reads first.
    """
    raised = raised_at(told)
    suffixes = {"c", "cfg", "h", "ini", "json", "toml", *(PurePosixPath(each.path).suffix[1:] for each in found)}
    dotted = (tuple(each.split(".")) for each in _MEMBERS.findall(told))
    members = [each for each in dotted if each[-1] not in suffixes]
    named = {*query.files, *(each.path for each in found if _is_named(each.path, told, members))}
    title = set(_NAMES.findall(query.text.partition("\n")[0]))
    called = {
        each.place for each in found if (is_program(each.path) or is_test(each.path)) and _is_called(each, query.text)
    }

    def order(each: Chunk) -> tuple[bool, int, bool]:
        titled = is_program(each.path) and PurePosixPath(each.path).stem in title
        tests = is_test(each.path) or (names_test(each.symbol) and each.place not in called)
        holds = any(each.holds(place.path, place.line) for place in raised)
        return tests, -2 * (each.place in called) - 2 * titled - (each.path in named) - holds, not titled

    left = MOST_TOKENS
    for each in sorted(_relevant(found, named, called, told), key=order):  # the limit leaves out the last
        if each.tokens <= left or left == MOST_TOKENS:
            left -= each.tokens
            yield each


def _relevant(found: Sequence[Chunk], named: Set[str], called: Set[str], told: str) -> Iterator[Chunk]:
    """Yield what is near to a failure: a small model rewrites whatever it is shown.

    Left out are documents, types and tests that nothing names beside code, all but a few other pieces beside code
    that is named, the tests of a file of which others fail, and the docstring of a class beside a member of it.
    """
    holders = {(each.path, each.symbol.rpartition(".")[0]) for each in found}
    said = set(_NAMES.findall(told))
    tests = [each for each in found if is_test(each.path) and names_test(each.symbol)]
    failing = {each.place for each in tests if not said.isdisjoint(_own_names(each))}
    failing_files = {place.rpartition(":")[0] for place in failing}
    code = {each.path for each in found if is_program(each.path)}
    others = 0
    for each in found:
        if (each.path, each.symbol) in holders and is_heading(each.text.split("\n")):
            continue
        if each in tests and each.path in failing_files and each.place not in failing:
            continue
        if code and each.path not in named and each.place not in called | failing:
            if each.path not in code or (others == MOST_OTHERS and not code.isdisjoint(named)):
                continue
            others += 1
        yield each


def _is_named(path: str, told: str, members: Iterable[Sequence[str]]) -> bool:
    """Return True if words name a file, a test of its name (`test_cart.py`, `cart.test.js`), or a module of Python.

    A dotted name begins with its module (`keys.hashkey`), or has it below its package.
    """
    file = PurePosixPath(path)
    if file.name in told:
        return True
    stem = re.escape(file.stem)
    if not is_program(path):
        return False
    tested = re.search(rf"(?<![\w-])(?:test_{stem}|{stem}[._-](?:test|spec))\.", told) is not None
    package = file.parent.name
    dotted = any(member[0] == file.stem or (package, file.stem) in pairwise(member) for member in members)
    return tested or (dotted and path.endswith(PYTHON))


def _own_names(chunk: Chunk) -> Iterator[str]:
    return (name.rpartition(".")[2] for name in chunk.symbol.split(", "))


def _is_called(chunk: Chunk, words: str) -> bool:
    """Return True if words name a definition, alone or as the member of its class."""
    said = set(_NAMES.findall(_MEMBERS.sub(" ", words)))
    members = (each.split(".") for each in _MEMBERS.findall(words))
    return not said.isdisjoint(_NAMES.findall(chunk.symbol)) or any(_means(each, chunk.symbol) for each in members)


def _means(member: Sequence[str], symbol: str) -> bool:
    """Return True if words that name a member, such as `Cart.total`, mean this definition: not `Basket.total`."""
    names, own = _NAMES.findall(symbol), member[-1]
    return not set(member[:-1]).isdisjoint(names) or names == [own]


def _query(session: SessionContext) -> CodeQuery:
    """Return the search for a task. The words of its commands are none of what is looked for: they name its tests."""
    task = session.run.definition
    words = task_words(task)
    for command in sorted(task.accept_tests, key=len, reverse=True):
        words = words.replace(command, " ")
    run = session.run
    return CodeQuery(words, latest_failures(run), named_files(task), RELEVANT, to_rewrite=run.tries_afresh)


def task_words(task: Task) -> str:
    """Return the words of a task by which code, notes and skills are searched."""
    return "\n".join(part for part in (task.description, task.goal, task.suggested_approach) if part)


def named_files(task: Task) -> tuple[str, ...]:
    """Return the paths that a task names outside of its text: those it may write, and those in its checks."""
    written = (glob for glob in task.scope.allowed_write_globs if not _GLOB.search(glob))
    checked = (word for command in task.accept_tests for word in _WORDS.findall(command))
    return tuple(dict.fromkeys((*written, *checked)))
