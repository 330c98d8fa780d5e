"""Start of a task: its base commit, workspace, tools, checks, and the repository's instructions.

The instructions are untrusted text: information for the model that widens no permission. They are read from the base.
"""

from collections.abc import Mapping, Sequence

from agent_workbench.core.checks.judge_search import JudgeSearch
from agent_workbench.core.errors import (
    PlanError,
    ShellError,
    StorageError,
    WorkspaceError,
    nameless_author,
    partial_clone,
)
from agent_workbench.core.events import (
    Author,
    PlanRead,
    RepoInstructions,
    TaskStarted,
    TaskStatusChanged,
)
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.plan import Owner, Plan, Task, TaskStatus
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.proposals import KINDS
from agent_workbench.core.repo.absent_sources import unlinked
from agent_workbench.core.repo.workspace import RepoFacts, WorkspaceRequest
from agent_workbench.core.settings import AGENTS_FILES, BACKGROUND, PLAYBOOK_TOOLS, Approval, Settings
from agent_workbench.core.skills import PLAYBOOK_SKILL, brings_files, check_named, choosable, skills_of
from agent_workbench.core.text.commit_subjects import LOOKED_AT, CommitConvention, common_convention
from agent_workbench.core.text.sanitizer import sanitize, without_chat_markers
from agent_workbench.core.tools.spec import FINISH, MCP, QUERY_KNOWLEDGE, REMEMBER, ToolSpec, describe_unheld
from agent_workbench.engine.prompt.prompt_text import VERSION
from agent_workbench.engine.prompt.scratchpad import notes_changed
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.task.first_search import task_words
from agent_workbench.engine.tools.check_runs import CheckList, check_list, refuse_denied
from agent_workbench.engine.tools.finish_tool import finish_spec

MOST_NAMED = 3
SETTINGS = ".agent.yml"
"""Permissions of the tools that a task is offered which changes nothing."""

MAX_BYTES = 32 * 1024
"""Limit of all files together; the nearest to the task's folder are cut last."""
MAX_FOLDERS = 16
_WILD = frozenset("*?[")


async def read_plan(session: SessionContext) -> tuple[TaskId, ...]:
    """Read the plan's file and journal it if it changed; return the tasks that other sessions work on."""
    plan = await session.ports.plans.read()
    taken = await find_taken_tasks(session, plan)
    if plan != session.state.plan or session.state.plan_path != session.ports.plans.path:
        first = not session.state.plan_path
        await session.record(PlanRead(session.ports.plans.path, plan, Author.WORKBENCH if first else Author.USER))
    return taken


async def find_taken_tasks(session: SessionContext, plan: Plan) -> tuple[TaskId, ...]:
    """Return the open tasks that other sessions work on, and publish them; none of them is started here."""
    startable = (TaskStatus.PENDING, TaskStatus.IN_PROGRESS)
    tasks = tuple(task.id for task in plan.tasks if task.status in startable)
    taken = tuple(await session.ports.workspaces.taken(tasks, session.state.session))
    session.publisher.show_taken(taken)
    return taken


def check_startable(plan: Plan, tasks: tuple[TaskId, ...]) -> None:
    """Raise `PlanError` if the first of these tasks cannot be started now, or if another is not in the plan."""
    for number, task in enumerate(tasks):
        _choose(plan, task) if number == 0 else plan.task(task)


async def read_again(session: SessionContext) -> None:
    """Read what the user may have changed since the session was left: the plan, and the scratchpad of its task."""
    await read_plan(session)
    run = session.state.run
    if run is None or not session.state.unfinished:
        return
    notes = await session.ports.memory.read_scratchpad(run.task, run.fork)
    if notes != session.state.scratchpad(run.task):
        await session.record(notes_changed(session.settings, run.task, notes, Author.USER))


async def task_without_check(session: SessionContext, wanted: TaskId | None) -> Task | None:
    """Return the task that would be started if nothing shows when it is done: no acceptance and no test command.

    Raises `PlanError` as `start_task` does.
    """
    taken = await read_plan(session)
    task = _choose(session.state.plan, wanted, taken)
    return None if check_list(task, session.settings).required else task


async def start_task(session: SessionContext, wanted: TaskId | None, unsaved: Mapping[str, str] | None = None) -> None:
    """Start a task (None: the next one of the plan); with `unsaved` on what the user did not commit (`StartTask`).

    Raises `PlanError`, `LockedError`, `WorkspaceError`, and `ConfigError` for a skill that is not there.
    """
    taken = await read_plan(session)
    task = _choose(session.state.plan, wanted, taken)
    checks = _allowed_checks(task, session.settings)
    base = await _base(session, task, unsaved)
    workspaces = session.ports.workspaces
    branch = await workspaces.free_branch(task.id, session.state.session)
    if named_skills := skills_of(task):
        check_named(choosable(await session.ports.skills.list()), named_skills)
    session.publisher.show_activity(f"making a workspace for {task.id}")
    request = WorkspaceRequest(session.state.session, task.id, branch, base, session.settings.workspace.link)
    workspace = await session.take_workspace(request)
    if absent := unlinked(request.links, workspace.facts.linked):
        session.publisher.notify(f"not linked into the workspace: {named(absent)}; the checkout has no such file")
    await _check_still_startable(session, task.id)
    convention = await _commit_convention(workspace)
    # No model is asked where the task names its edits itself.
    specs = () if task.edits else await _tool_specs(session, task, convention)
    if task.changes_nothing:
        specs = tuple(each for each in specs if KINDS[each.permission].changes_nothing and each.name != BACKGROUND)
    required = checks.commands[: checks.required]
    started = TaskStarted(
        task=task.id,
        definition=task,
        workspace=workspace.facts,
        checks=checks.commands,
        tools=tuple(spec.name for spec in specs),
        required=checks.required,
        wording=VERSION,
        specs=specs,
        commit_convention=convention,
        instructions=() if task.edits else await _instructions(session, workspace, task),
        judges=() if task.edits or task.changes_nothing else await _judges(workspace, checks, session.settings),
        suite=session.settings.test_command if session.settings.test_command in required else "",
    )
    await session.record(started)
    await session.ports.plans.set_status(task.id, TaskStatus.IN_PROGRESS)
    await session.record(TaskStatusChanged(task.id, TaskStatus.IN_PROGRESS))
    if notes := await session.ports.memory.read_scratchpad(task.id):
        await session.record(notes_changed(session.settings, task.id, notes, Author.WORKBENCH))
    session.publisher.show_activity("")


async def _commit_convention(workspace: Workspace) -> CommitConvention:
    """Return the convention of the commit subjects before the task's base."""
    commits = await workspace.past_commits(LOOKED_AT)
    return common_convention([commit.message.split("\n", 1)[0] for commit in commits])


async def _judges(workspace: Workspace, checks: CheckList, settings: Settings) -> tuple[str, ...]:
    """Return the files that decide whether the task is done: those that its acceptance commands name or call."""
    required = checks.commands[: checks.required]
    if not required:
        return ()
    search = JudgeSearch(await workspace.list_files(), await workspace.links(), (settings.test_command,))
    for line in required:
        search.command(line)
    while wanted := search.unread:
        search.read(await workspace.read_files(wanted))
    return search.found


async def _instructions(session: SessionContext, workspace: Workspace, task: Task) -> tuple[RepoInstructions, ...]:
    """Return the repository's instructions for a task; none without trust. The user is told which cannot be read."""
    if not session.settings.skills.agents_md:
        return ()
    found, problems = await read_instructions(workspace, task)
    for problem in problems:
        session.publisher.notify(problem)
    return found


async def _tool_specs(session: SessionContext, task: Task, convention: CommitConvention) -> tuple[ToolSpec, ...]:
    """Return the tools of a new task. Notify the user of tools that are left out or not held by a grammar.

    The tools of skills are offered where a skill that may be chosen brings files: its text may tell to use them.
    """
    if servers := [source.name for source in session.ports.tool_sources if source.name.startswith(MCP)]:
        session.publisher.show_activity(f"listing the tools of {named(servers)}")
    problems = await session.tools.refresh()
    skills = any(brings_files(each) for each in await session.ports.skills.list())
    names = (*await _useful_tools(session), *await _playbook_tools(session, task))
    allowed = session.tools.allowed_specs(tuple(dict.fromkeys(names)), skills=skills)
    specs = tuple(finish_spec(convention) if spec.name == FINISH else spec for spec in allowed)
    for notice in (*problems, *describe_unheld(specs)):
        session.publisher.notify(notice)
    return specs


async def _playbook_tools(session: SessionContext, task: Task) -> tuple[str, ...]:
    """Return the tools of playbooks for a task that their skill fits, none for any other."""
    if session.ports.playbooks is None or session.settings.approvals.infrastructure is Approval.DENY:
        return ()
    named = PLAYBOOK_SKILL in skills_of(task)
    hits = () if named else await session.ports.skills.rank(task_words(task))
    return PLAYBOOK_TOOLS if named or PLAYBOOK_SKILL in {hit.name for hit in hits} else ()


async def _useful_tools(session: SessionContext) -> tuple[str, ...]:
    """Return the allowed tools without those about notes that could do nothing here."""
    useless = set() if session.settings.lint_command else {"static_analyze"}
    if session.settings.approvals.knowledge is Approval.DENY:
        useless.add(REMEMBER)
    try:
        if not await session.ports.knowledge.has_notes():
            useless.add(QUERY_KNOWLEDGE)
    except StorageError:
        useless.add(QUERY_KNOWLEDGE)
    return tuple(name for name in session.settings.tools_allowed if name not in useless)


async def _check_still_startable(session: SessionContext, wanted: TaskId) -> None:
    """Raise `PlanError` if another process did the task before this one had its lock; the lock is released."""
    try:
        await read_plan(session)
        _choose(session.state.plan, wanted)
    except BaseException:
        await session.release_workspace()
        raise


def _allowed_checks(task: Task, settings: Settings) -> CheckList:
    """Return the task's checks; raise `PlanError` if the task itself denies one of these commands."""
    checks = check_list(task, settings)
    try:
        refuse_denied(task, checks.commands)
    except ShellError as error:
        raise PlanError(
            f"the checks of {task.id} cannot be run: {error}",
            advice="change the task's accept_tests or denylisted_commands, or the commands in .agent.yml",
        ) from error
    return checks


def _choose(plan: Plan, wanted: TaskId | None, taken: tuple[TaskId, ...] = ()) -> Task:
    task = plan.task(wanted) if wanted else plan.next_task(taken)
    if task is None:
        raise PlanError("no task of the plan is ready", advice="agent plan show tells how they stand")
    if task.owner is Owner.HUMAN:
        raise PlanError(f"task {task.id} belongs to a person (owner: human)", advice="set owner: agent in the plan")
    if task.status is TaskStatus.QUEUED:
        raise PlanError(
            f"task {task.id} is queued: a worker does it", advice=f"`agent plan cancel {task.id}` takes it back"
        )
    if task.status is TaskStatus.DONE:
        raise PlanError(f"task {task.id} is done", advice="set its status to pending to do it again")
    # What a queued task depends on is in no plan: its queue held the task back until that was done.
    planned = {each.id for each in plan.tasks}
    if waiting := [each for each in plan.waits_for(task) if each in planned]:
        raise PlanError(f"task {task.id} waits for {', '.join(waiting)}", advice="do these first")
    return task


def uncommitted_paths(facts: RepoFacts, memory: str) -> str:
    """Return the names of the files with uncommitted changes of the user, as text."""
    return named(without_own_files(facts.dirty_paths, memory))


def without_own_files(paths: Sequence[str], memory: str) -> tuple[str, ...]:
    """Return the paths without the files of the workbench: its settings and the folder `memory`."""
    own = f"{memory.strip('/')}/"
    return tuple(path for path in paths if path != SETTINGS and not path.startswith(own))


def submodule_advice(names: Sequence[str]) -> str:
    """Return what to do about submodules that are empty in a workspace."""
    return f"if the tests need them: `git submodule update --init`, and {', '.join(names)} in workspace.link"


def named(names: Sequence[str]) -> str:
    """Return the first names as text, with the number of the others."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


async def _base(session: SessionContext, task: Task, unsaved: Mapping[str, str] | None) -> CommitId:
    """Return the user's HEAD, or the commit of the one dependency that is done and not merged yet.

    With `unsaved` it is a commit on HEAD with what is not committed. Raises `WorkspaceError` where HEAD is no base.
    """
    facts = await session.ports.workspaces.inspect()
    if facts.own_git.nameless:
        raise nameless_author()
    if facts.own_git.lacks_objects:
        raise partial_clone()
    if unsaved is None and (left_out := uncommitted_paths(facts, session.settings.memory.dir)):
        session.publisher.notify(f"not committed: {left_out}; {task.id} starts without these changes")
    if empty := unlinked(facts.submodules, session.settings.workspace.link):
        session.publisher.notify(f"{task.id} starts with empty submodules: {named(empty)}; {submodule_advice(empty)}")
    known = {each.id: each.commit_id for each in session.state.plan.tasks}
    if filtered := named([path for path, _ in facts.filtered]):
        session.publisher.notify(f"without the filters that git has for them: {filtered}; tests see their stored text")
    before = {each: known.get(each, each) for each in task.depends_on}
    found = [(each, await session.ports.workspaces.task_commit(id)) for each, id in before.items()]
    unmerged = [(each, commit) for each, commit in found if commit is not None]
    if len(unmerged) > 1:
        names = ", ".join(each for each, _ in unmerged)
        raise WorkspaceError(
            f"task {task.id} depends on several tasks that are not merged yet: {names}",
            advice="merge them first, so that there is one base to start from",
        )
    if unsaved is not None and unmerged:
        raise WorkspaceError(
            f"{task.id} begins on {unmerged[0][0]}, which is not merged yet, and not on your changes",
            advice="merge that first, or start the task without your changes",
        )
    if unsaved is not None:
        foreign = without_own_files(tuple(unsaved), session.settings.memory.dir)
        texts = {path: unsaved[path].encode("utf-8", "replace") for path in foreign}
        own = (SETTINGS, f"{session.settings.memory.dir.strip('/')}/")
        return await session.ports.workspaces.snapshot_checkout(session.state.session, texts, own)
    return unmerged[0][1] if unmerged else facts.head


async def read_instructions(workspace: Workspace, task: Task) -> tuple[tuple[RepoInstructions, ...], tuple[str, ...]]:
    """Return the files for a task, the nearest last, and the problems of those that cannot be read."""
    found: list[RepoInstructions] = []
    problems: list[str] = []
    left = MAX_BYTES
    for folder in reversed(_folders(task.scope.allowed_write_globs)):
        for name in AGENTS_FILES:
            path = f"{folder}/{name}" if folder else name
            try:
                content = await workspace.read(path)
            except WorkspaceError as error:
                problems.append(f"{path} was left out: {error}")
                continue
            if content is not None:
                found.append(_bounded(path, content.data, left))
                left -= len(found[-1].text.encode())
                break
    return tuple(reversed(found)), tuple(problems)


def _folders(globs: Sequence[str]) -> list[str]:
    """Return the folders from the root down to the deepest one that all these globs are in."""
    fixed = [_fixed_folders(glob) for glob in globs] or [[]]
    common: list[str] = []
    for names in zip(*fixed, strict=False):
        if len(set(names)) > 1 or len(common) >= MAX_FOLDERS:
            break
        common.append(names[0])
    return ["/".join(common[:depth]) for depth in range(len(common) + 1)]


def _fixed_folders(glob: str) -> list[str]:
    *folders, _ = (f"{glob}**" if glob.endswith("/") else glob).removeprefix("./").lstrip("/").split("/")
    wild = next((at for at, name in enumerate(folders) if _WILD & set(name) or name in {"", ".", ".."}), len(folders))
    return folders[:wild]


def _bounded(path: str, data: bytes, most_bytes: int) -> RepoInstructions:
    """Return the first lines of a file in at most `most_bytes`, as text without control characters and markers."""
    most = max(0, most_bytes)
    kept = data if len(data) <= most else data[:most].rpartition(b"\n")[0] or data[:most]
    text = without_chat_markers(sanitize(kept.decode("utf-8", "replace").removeprefix("\ufeff")))
    while len(text.encode("utf-8", "replace")) > most:  # what replaces a control character is longer than it
        text = text[: len(text) * 3 // 4]
    return RepoInstructions(path, text.strip("\n"), len(data), len(data) - len(kept))
