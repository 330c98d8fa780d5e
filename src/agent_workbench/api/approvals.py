"""Approval rules of a repository, their trial on recorded sessions, and the files that a waiting proposal changes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import repo_or_folder, trusted_repo
from agent_workbench.bootstrap.repo_context import Say
from agent_workbench.bootstrap.stores import rule_store
from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import JournalError, PatchError, PlanError, UsageError, WorkspaceError
from agent_workbench.core.events import Recorded, SessionConfigured, TaskStarted
from agent_workbench.core.fold import fold
from agent_workbench.core.history.past_actions import PolicyTrial, TriedSession
from agent_workbench.core.ids import ProposalId, SessionId, TaskId, task_id
from agent_workbench.core.knowledge import words_of
from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.plan import QUEUE_FOLDER, Task, TaskOrigin
from agent_workbench.core.proposal_kinds import CheckProposal
from agent_workbench.core.proposals import CHECKS, Proposal
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.state.session_state import NO_COMMIT, SessionState
from agent_workbench.core.yaml_documents import DocumentError, decode_document
from agent_workbench.system.folder_trees import read_regular

if TYPE_CHECKING:
    from agent_workbench.api.sessions.session_host import LocalSessionHost
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ports.repo_files import RuleStore
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.settings import Settings


MOST_READ = 20
"""Sessions, newest first, among which those of similar tasks are looked for."""
MOST_TRIED = 3
QUEUE_SUFFIXES = {".yaml", ".yml"}

MAX_FILES = 50
MAX_FILE_BYTES = 200_000


async def check_policy(path: Path) -> tuple[str, ...]:
    """Return the settings of a policy, a line each; raise `ConfigError` with file, line and what was expected."""
    from agent_workbench.config.settings_loader import load_policy
    from agent_workbench.config.trust_question import value_text

    layer = await asyncio.to_thread(load_policy, path)
    return tuple(f"{key}: {value_text(said.value)}" for key, said in layer.items())


async def explain_task(invocation: Invocation, named: str) -> PolicyTrial:
    """Return what the policy of `invocation` would pass and park of a task: of the plan or a queue, or in a file.

    Raises `ConfigError` for a faulty policy, `PlanError` for an unknown task or a faulty file.
    """
    from agent_workbench.engine.policy import tasks_of, try_proposal, try_session
    from agent_workbench.engine.tools.check_runs import check_list

    repo, settings = await trusted_repo(invocation)
    task = await _task(repo, settings, named)
    policy = await policy_in_force(repo, settings)
    commands = check_list(task, settings).commands
    checks = CheckProposal(ProposalId("P-0"), CHECKS, "", 0, commands=commands, purpose=CheckPurpose.BASELINE)
    store = await asyncio.to_thread(repo.sessions, settings)
    chosen, similar = await _sessions(store, task)

    def tried() -> tuple[TriedSession, ...]:
        return tuple(
            TriedSession(name, tuple(each.id for each in tasks_of(events)), try_session(events, policy, task))
            for name, events in chosen
        )

    return PolicyTrial(
        task,
        policy.sandbox,
        try_proposal(_begun(task, commands), checks, policy, task) if commands else None,
        await asyncio.to_thread(tried),
        similar,
    )


async def policy_in_force(repo: "RepoContext", settings: "Settings") -> SessionConfigured:
    """Return what an unattended session that is opened now would go by."""
    from agent_workbench.api.sessions.session_opening import session_config
    from agent_workbench.bootstrap.commands import command_shell

    shell = await asyncio.to_thread(command_shell, repo.root, settings, repo.invocation)
    sandbox = await shell.observe()
    sessions_dir = await asyncio.to_thread(repo.sessions_dir, settings)
    own_rules = await rule_store(repo.root, repo.invocation, sessions_dir).kept()
    return session_config(settings, sandbox, own_rules, headless=True)


async def _task(repo: "RepoContext", settings: "Settings", named: str) -> Task:
    """Return the task in a queue file, or the one with this id: of the plan, else of a queue of the repository."""
    path = Path(named)
    if path.suffix not in QUEUE_SUFFIXES:
        wanted = task_id(named)
        try:
            return (await repo.plans(settings).read()).task(wanted)
        except PlanError:
            found = await asyncio.to_thread(_queue_files, repo.root, wanted)
            if len(found) != 1:
                raise
            path = found[0]
    from agent_workbench.subjects.queue.calls import check_queue_file, read_queue_file

    task = await check_queue_file(repo.invocation, await read_queue_file(path), named)
    return replace(task, origin=await _origin(repo, path))


def _queue_files(root: Path, task: TaskId) -> list[Path]:
    """Return the files of the task with this id in the queues of all projects."""
    from agent_workbench.subjects.queue.calls import MAX_BYTES
    from agent_workbench.subjects.queue.wiring import definition_facts

    def is_the_task(path: Path) -> bool:
        try:
            return definition_facts(decode_document(read_regular(path, MAX_BYTES)), path.name).id == task
        except (OSError, DocumentError, PlanError):
            return path.stem == task  # then its fault is told

    files = sorted(path for path in root.glob(f"{QUEUE_FOLDER}/*/*") if path.suffix in QUEUE_SUFFIXES)
    return [path for path in files if is_the_task(path)]


async def _origin(repo: "RepoContext", path: Path) -> TaskOrigin:
    """Return the origin that a queue has for a file: one that git tracks came with the repository."""
    checkout = await repo.repository.checkout_files()
    absolute = await asyncio.to_thread(path.resolve)
    if not absolute.is_relative_to(repo.root):
        return TaskOrigin.LOCAL
    folder = absolute.parent.relative_to(repo.root).as_posix()
    tracked = await asyncio.to_thread(checkout.tracked_in, folder)
    foreign = tracked is None or path.name.casefold() in {name.casefold() for name in tracked}
    return TaskOrigin.REPOSITORY if foreign else TaskOrigin.LOCAL


async def _sessions(
    store: "SessionStore", task: Task
) -> tuple[tuple[tuple[SessionId, tuple[Recorded, ...]], ...], bool]:
    """Return the newest sessions of the task with their events; without any, those of the most similar tasks.

    The second value is True for those of other tasks. Damaged journals are left out.
    """
    from agent_workbench.engine.policy import tasks_of

    summaries = [each for each in await store.summaries() if each.tasks and not each.problem]
    own = [each for each in summaries if task.id in each.tasks]
    found: list[tuple[float, SessionId, tuple[Recorded, ...]]] = []
    words = words_of(f"{task.description} {task.goal}")
    for summary in own[:MOST_TRIED] or summaries[:MOST_READ]:
        try:
            events = await store.read(summary.id)
        except JournalError:
            continue
        others = [words_of(f"{each.description} {each.goal}") for each in tasks_of(events)]
        likeness = max((len(words & each) / max(1, len(words | each)) for each in others), default=0.0)
        found.append((likeness, summary.id, events))
    found.sort(key=lambda each: each[0], reverse=True)
    return tuple((name, events) for _, name, events in found[:MOST_TRIED]), not own


def _begun(task: Task, commands: Sequence[str]) -> SessionState:
    """Return the state of a session that has just begun the task."""
    facts = WorkspaceFacts("", "", NO_COMMIT, "")
    return fold(SessionState(), Recorded(0, "", TaskStarted(task.id, task, facts, tuple(commands), (), len(commands))))


async def proposed_files(host: "LocalSessionHost", state: SessionState, proposal: Proposal) -> tuple[FileChange, ...]:
    """Return the changes of a diff to the task's approved content, or of a commit to its base.

    Nothing is returned for other proposals, for large ones, and where git no longer has the files: the diff shows it.
    """
    run = state.run
    shows_code = proposal.of_files and proposal.changes_code
    if run is None or not shows_code or len(proposal.paths) > MAX_FILES:
        return ()
    tree = run.tree if proposal.by_hunk else run.workspace.tree
    repo = await host.repo()
    try:
        patch = proposal.patch
        files = await repo.repository.recorded_files(tree)
        before = {path: await files.read(path) for path in patch.paths}
        if any(content is not None and len(content.data) > MAX_FILE_BYTES for content in before.values()):
            return ()
        return apply_patch(patch, before)
    except (PatchError, WorkspaceError):
        return ()


async def list_rules(invocation: Invocation, say: Say) -> tuple[StoredRule, ...]:
    """Return the rules in force at the start of a session here; tell the user if the repo's own are not trusted."""
    return (await _found(invocation, say))[1]


async def revoke_rule(invocation: Invocation, number: int, say: Say) -> StoredRule:
    """Revoke the rule with this number (from 1, in the order of `list_rules`), and return it.

    Raises `UsageError` if there is none, `TrustError`, `ConfigError`.
    """
    rules, found = await _found(invocation, say)
    if not 1 <= number <= len(found):
        known = f"rules are numbered 1 to {len(found)}" if found else "there is no rule"
        raise UsageError(f"there is no rule {number}; {known}", advice="`agent rules` lists them")
    await rules.revoke(found[number - 1])
    return found[number - 1]


async def _found(invocation: Invocation, say: Say) -> "tuple[RuleStore, tuple[StoredRule, ...]]":
    repo, settings = await repo_or_folder(invocation, say)
    rules = rule_store(repo.root, invocation, await asyncio.to_thread(repo.sessions_dir, settings))
    own = await rules.kept()
    return rules, (*(StoredRule(rule, RuleScope.REPO) for rule in settings.approvals.rules), *own)
