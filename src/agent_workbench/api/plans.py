"""Plan of a repository: check, edit, new tasks."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import require_trust, settings_to_check, trusted_repo
from agent_workbench.bootstrap.repo_context import Say, find_repo
from agent_workbench.bootstrap.user_extensions import custom_prompts, skill_folders
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import NO_SESSION, TaskId
from agent_workbench.core.plan import Plan, TaskStatus, work_state
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.skills import choosable

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.adapters.plans.plan_file import PlanFile
    from agent_workbench.core.plan import Plan, Task, TaskDraft, WorkState
    from agent_workbench.core.ports.repo_files import Plans


UNCHECKED = "no test_command is set, so nothing is checked (`agent init` looks for one)"
"""Remark about a task that nobody attends: nobody could take a check that the model proposes."""


class EditedPlan(Struct, frozen=True):
    """Outcome of an edit of the plan's `original` text: the new plan, or the error that prevented it.

    Without both nothing was changed.
    """

    original: str
    text: str
    plan: "Plan | None" = None
    fault: PlanError | None = None


class PlanStatus(Struct, frozen=True):
    """The plan, who works on which of its tasks now, and the state of each."""

    plan: "Plan"
    holders: Mapping[TaskId, str]
    states: "Mapping[TaskId, WorkState]"


async def repo_plans(invocation: Invocation) -> "Plans":
    """Return the plan file of the repository."""
    repo, settings = await trusted_repo(invocation)
    return repo.plans(settings)


async def existing_plan(invocation: Invocation) -> "Plan":
    """Return the plan, an empty one without a file; raise `PlanError` for one that cannot be read."""

    plans = await repo_plans(invocation)
    return await plans.read() if await plans.content_sha() else Plan()


async def plan_status(invocation: Invocation) -> PlanStatus:
    """Return the plan and who works on it; raise `PlanError`."""
    from agent_workbench.core.history.summaries import parked_tasks

    repo, settings = await trusted_repo(invocation)
    plan = await repo.plans(settings).read()
    begun = [each.id for each in plan.tasks if each.status is TaskStatus.IN_PROGRESS]
    sessions = await asyncio.to_thread(repo.sessions, settings) if begun else None
    parked = parked_tasks(await sessions.summaries()) if sessions is not None else frozenset()
    holders = await repo.repository.taken([each.id for each in plan.tasks if each.open], NO_SESSION)
    states = {task.id: work_state(task.status, held=task.id in holders, waits=task.id in parked) for task in plan.tasks}
    return PlanStatus(plan, holders, states)


async def checked_plan(invocation: Invocation) -> "Plan":
    """Return the plan; raise `PlanError` with the position of a fault, such as an unknown skill.

    Skills of a repository without trust count here: their front matter is read, and nothing of it is obeyed.
    """
    repo = await find_repo(invocation)
    settings = await settings_to_check(repo)
    skills = choosable(await skill_folders(repo.root, settings.skills).list())
    return await repo.plans(settings).check(skills)


async def edit_plan(invocation: Invocation, before: "EditedPlan | None" = None) -> EditedPlan:
    """Open the plan's text, or the text of a failed edit, in the user's editor; write it if it is a valid plan."""
    from agent_workbench.api.screen_services import edit_text

    repo, settings = await trusted_repo(invocation)
    plans = repo.plans(settings)
    original = before.original if before is not None else (await plans.piece(None)).text
    text = await edit_text(before.text if before is not None else original, ".yaml")
    if text == original:
        return EditedPlan(original, text)
    working = await repo.repository.taken([each.id for each in (await _tasks_of(plans))], NO_SESSION)
    try:
        await plans.replace_text(original, text, tuple(working))
        return EditedPlan(original, text, await plans.read())
    except PlanError as fault:
        return EditedPlan(original, text, fault=fault)


async def keep_plan_text(invocation: Invocation, text: str) -> str:
    """Write an invalid text into a file beside the plan; return its name."""
    repo, settings = await trusted_repo(invocation)
    return await repo.plans(settings).keep_beside(text)


async def _tasks_of(plans: "PlanFile") -> "tuple[Task, ...]":
    """Return the tasks of the plan, none if it cannot be read: the user may be about to repair it."""
    try:
        return (await plans.read()).tasks
    except PlanError:
        return ()


async def add_task_in_words(invocation: Invocation, words: str, say: Say) -> "TaskDraft":
    """Append the unattended task that the words ask for to the plan, and return it as it was added; no model is asked.

    Raises `TrustError` for a repository without trust, `UsageError` for words that are no task, `PlanError`, and
    `SandboxError` where no unattended task may run.
    """
    from msgspec.structs import replace

    from agent_workbench.api.sessions.session_opening import check_run_start

    draft = await draft_in_words(invocation, words, say)
    repo, settings = await trusted_repo(invocation)
    await check_run_start(repo, settings)
    return replace(draft, task=await repo.plans(settings).add_new(draft.task))


async def called_words(invocation: Invocation, words: str) -> str:
    """Return the text of the user's own prompt that the words call, or the words; raise `UsageError`, `TrustError`."""
    from agent_workbench.engine.task.task_draft import expand_words

    repo, settings = await trusted_repo(invocation)
    trust = await repo.trust()
    return (await expand_words(custom_prompts(repo.root, settings.memory.dir, trust.covers_prompts), words)).words


async def draft_in_words(invocation: Invocation, words: str, say: Say) -> "TaskDraft":
    """Return the task that the words ask for; nothing is written and no model is asked.

    Raises `TrustError` for a repository without trust, `UsageError` for words that are no task, `PlanError`.
    """
    from msgspec.structs import replace

    from agent_workbench.engine.task.task_draft import NO_CHECKS, draft_task

    repo = await find_repo(invocation)
    await require_trust(repo)
    settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
    ports = await asyncio.to_thread(repo.ports, settings, say)
    try:
        say("searching the code")
        sources = await repo.repository.checkout_files()
        files = frozenset(await sources.list_files())
        draft = await draft_task(ports, settings, sources, files, words, complete=True)
        remarks = tuple(UNCHECKED if each == NO_CHECKS else each for each in draft.remarks)
        return replace(draft, remarks=remarks)
    finally:
        await ports.retriever.close()
        await ports.model.close()
