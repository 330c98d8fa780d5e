"""Context of a repository: its settings and trust, and the adapters that work in it."""

import asyncio
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import command_shell, language_servers
from agent_workbench.bootstrap.database import share_tasks, shared_spending
from agent_workbench.bootstrap.set_up import RepoSetup
from agent_workbench.bootstrap.shared_resources import SharedResources, local_machine
from agent_workbench.bootstrap.stores import (
    audit_index,
    past_figures,
    past_speed,
    rule_store,
    session_store,
    system_clock,
)
from agent_workbench.bootstrap.user_extensions import custom_prompts, skill_folders, skill_tools, tool_servers
from agent_workbench.core.extras import or_absent
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # heavy; a verb loads only what it needs
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.adapters.journal.session_store import LocalSessionStore
    from agent_workbench.adapters.llama_cpp.model_registry import ModelRegistry
    from agent_workbench.adapters.plans.plan_file import PlanFile
    from agent_workbench.adapters.retrieval.retriever import SharedRetriever
    from agent_workbench.config.settings_loader import LoadedSettings
    from agent_workbench.config.trust_store import RepoTrust
    from agent_workbench.core.ports.extensions import Playbooks, Skills
    from agent_workbench.core.ports.model import EndpointModels, Model
    from agent_workbench.core.ports.repo_files import Plans
    from agent_workbench.core.ports.stores import Inbox, SessionStore
    from agent_workbench.core.ports.workspace import Shell
    from agent_workbench.core.settings import Settings
    from agent_workbench.engine.runtime.tool_context import Ports
    from agent_workbench.subjects.hooks_adapter import HookCommands
    from agent_workbench.subjects.knowledge.adapter import KnowledgeFolder

Say = Callable[[str], None]


async def find_repo(invocation: Invocation, shared: SharedResources | None = None) -> "RepoContext":
    """Return the repository around the folder of `invocation`; raise `RepoError` if there is none."""
    repository = await asyncio.to_thread(git_repository, invocation)
    await repository.target()  # a repository without a commit is refused here
    return RepoContext(invocation, repository, Path((await repository.checkout_files()).root), shared)


def git_repository(invocation: Invocation) -> "Repository":
    """Return git in the folder of `invocation`, whether or not a repository is there; blocks."""
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.system.user_dirs import state_dir

    return Repository(invocation.folder, state_dir() / "worktrees")


class RepoContext:
    """A repository and what works in it. `shared` resources serve all sessions of the process."""

    def __init__(
        self, invocation: Invocation, repository: "Repository", root: Path, shared: SharedResources | None = None
    ) -> None:
        self.invocation = invocation
        self.shared = shared or SharedResources()
        self.repository = repository
        self.root = root
        self._loaded: LoadedSettings | None = None
        self._plans: Plans | None = None

    def with_plans(self, plans: "Plans") -> "RepoContext":
        """Return this repository with another store of tasks than its plan file for the sessions opened in it."""
        other = copy(self)
        other._plans = plans
        return other

    @property
    def setup(self) -> "RepoSetup":
        """Set-up of the repository."""
        return RepoSetup(self.root, self.invocation.environ, self.load, self.repository.checkout_files)

    def load(self, *, again: bool = False) -> "LoadedSettings":
        """Read the settings, once unless `again`: changes of the file have no effect on this context. Blocks."""
        if self._loaded is None or again:
            from agent_workbench.config.settings_loader import load_settings, with_policy
            from agent_workbench.system.user_dirs import config_dir

            environ, policy = self.invocation.environ, self.invocation.policy
            loaded = load_settings(self.root, environ, self.invocation.flags, config_dir())
            self._loaded = with_policy(loaded, policy, environ) if policy else loaded
        return self._loaded

    async def trust(self) -> "RepoTrust":
        """Return what the settings would run, and the user's trust in it."""
        return await asyncio.to_thread(self._trust)

    def is_trusted(self) -> bool:
        """Return True if what the repo brings is as the user trusted it; blocks."""
        return self._trust().is_trusted()

    def skills_trusted(self) -> bool:
        """Return True if the repo's skills are as the user trusted them; blocks."""
        return self._trust().covers_skills()

    def _trust(self) -> "RepoTrust":
        from agent_workbench.config.trust_store import RepoTrust, TrustStore
        from agent_workbench.system.user_dirs import state_dir

        return RepoTrust(self.root, self.load(), TrustStore(state_dir()))

    def in_force(self, *, trusted: bool) -> "LoadedSettings":
        """Return the settings with their origins, without those that need trust if it is missing; blocks.

        With trust, the key in the repo's `.env` becomes part of this context's environment, and of no process's own.
        """
        from msgspec.structs import replace

        from agent_workbench.config.env_file import API_KEY
        from agent_workbench.config.trust_question import with_trust, without_untrusted

        if not trusted:
            return without_untrusted(self.load())
        loaded = with_trust(self.root, self.load())
        if key := loaded.env_file.key:
            self.invocation = replace(self.invocation, environ={**self.invocation.environ, API_KEY: key})
        return loaded

    def settings(self, *, trusted: bool) -> "Settings":
        """Return the settings, without those that need trust if it is missing; blocks."""
        return self.in_force(trusted=trusted).settings

    def hooks(self, settings: "Settings") -> "HookCommands":
        """Return the hooks; one of the user's counts instead of one of the repo's with its name. Blocks."""
        from agent_workbench.config.role_chains import hook_names
        from agent_workbench.subjects.hooks_wiring import hook_commands

        layers = self.load().layers
        of_repo = frozenset(hook_names(layers.repo)) - frozenset(hook_names(layers.own))
        return hook_commands(
            self.root, settings, of_repo, self.invocation, lambda name: self._trust().covers_hook(name)
        )

    @property
    def model_log(self) -> Path:
        """Log file of the embedded model server."""
        from agent_workbench.system.user_dirs import repo_key, state_dir

        return state_dir() / "logs" / f"model-{repo_key(str(self.root))}.log"

    def plans(self, settings: "Settings") -> "PlanFile":
        """Return the plan file."""
        from agent_workbench.adapters.plans.plan_file import PlanFile
        from agent_workbench.config.yaml_parser import compose_text

        return PlanFile(self.root, f"{settings.memory.dir}/{settings.memory.plan}", compose_text)

    def sessions_dir(self, settings: "Settings") -> Path:
        """Return the folder of the journals; raise `StorageError` if it lies outside the repo. Blocks."""
        from agent_workbench.system.repo_files import resolve_inside

        return resolve_inside(self.root, f"{settings.memory.dir}/sessions")

    def sessions(self, settings: "Settings") -> "SessionStore":
        """Return the sessions of the repository, with those of other machines where a database is set. Blocks."""
        if not settings.database.active:
            return self.local_sessions(settings)
        from agent_workbench.bootstrap.shared_sessions import shared_sessions

        return self.shared.sessions(
            (self.root, settings.database, settings.memory.dir),
            lambda: shared_sessions(self, settings, self.sessions_dir(settings), self.local_sessions(settings)),
        )

    def local_sessions(self, settings: "Settings") -> "LocalSessionStore":
        """Return the sessions whose journals are on this machine; blocks."""
        return session_store(self.invocation, self.sessions_dir(settings), settings, self.repository.remember)

    def knowledge(self, settings: "Settings", retriever: "SharedRetriever | None" = None) -> "KnowledgeFolder":
        """Return the notes that outlive a task; their vectors are made by the model of `retriever`. Blocks."""
        from agent_workbench.subjects.knowledge.adapter import KnowledgeFolder

        vectors = retriever.note_vectors(str(self.root)) if retriever is not None else None
        return KnowledgeFolder(self.root, settings.memory.dir, vectors)

    def inbox(self, settings: "Settings") -> "Inbox":
        """Return the decisions made outside the processes that hold the sessions; blocks. Raises `ConfigError`."""
        from agent_workbench.adapters.absent_subjects import NoInbox

        def inbox() -> "Inbox":
            from agent_workbench.subjects.inbox.wiring import repo_decisions

            return repo_decisions(self, settings, self.sessions(settings))

        return or_absent(inbox, NoInbox)

    def endpoints(self, settings: "Settings", say: Say) -> "ModelRegistry":
        """Return the registry of the endpoints in the settings. No request is sent."""
        from agent_workbench.adapters.llama_cpp.model_registry import ModelRegistry
        from agent_workbench.system.user_dirs import state_dir

        spending, shared = shared_spending(self, settings), self.shared.models
        environ = self.invocation.environ
        machine = local_machine(environ, self.root)
        return ModelRegistry(settings, environ, self.model_log, state_dir(), say, shared, spending, machine)

    def model(self, settings: "Settings", say: Say) -> "Model":
        """Return the model of all roles; in the demo its answers are scripted."""
        return self._scripted(self.endpoints(settings, say).for_roles())

    def endpoint_models(self, settings: "Settings", say: Say) -> "EndpointModels":
        """Return the endpoints one by one; in the demo their answers are scripted."""
        from agent_workbench.adapters.llama_cpp.model_registry import RegisteredEndpoints

        return RegisteredEndpoints(lambda: self.endpoints(settings, say), self._scripted)

    def _scripted(self, model: "Model") -> "Model":
        if not self.invocation.demo:
            return model
        from agent_workbench.adapters.demo import SCRIPTS
        from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel

        return ScriptedModel(model, SCRIPTS, tokens_per_second=self.invocation.demo_tokens_per_second)

    def ports(self, settings: "Settings", say: Say) -> "Ports":
        """Return an adapter for every port, those that must be closed last. Blocks while modules are loaded."""
        from agent_workbench.adapters.absent_subjects import NoHooks, NoKnowledge, NoSkills
        from agent_workbench.adapters.journal.redaction import environment_redactor
        from agent_workbench.adapters.memory import ScratchpadFolder
        from agent_workbench.adapters.schema_checker import SchemaChecker
        from agent_workbench.adapters.shell.environment import WorktreeEnvironments
        from agent_workbench.engine.runtime.tool_context import Ports
        from agent_workbench.system.user_dirs import state_dir

        if settings.database.active:
            share_tasks(self, settings, self.sessions(settings))
        retriever = self.shared.retriever(settings, self.invocation.environ)
        shell = command_shell(self.root, settings, self.invocation)
        skills: Skills = or_absent(lambda: skill_folders(self.root, settings.skills), NoSkills)
        environments = WorktreeEnvironments(settings.python, str(self.root), names=state_dir() / "python")
        return Ports(
            workspaces=self.repository.with_journals(self.local_sessions(settings).began_on_branch),
            shell=shell,
            plans=self._plans or self.plans(settings),
            memory=ScratchpadFolder(self.root, settings.memory.dir),
            knowledge=or_absent(lambda: self.knowledge(settings, retriever), NoKnowledge),
            skills=skills,
            prompts=custom_prompts(self.root, settings.memory.dir, lambda folder: self._trust().covers_prompts(folder)),
            playbooks=or_absent(lambda: self._playbooks(settings, shell, retriever), lambda _: None),
            hooks=or_absent(lambda: self.hooks(settings), NoHooks),
            rules=rule_store(self.root, self.invocation, self.sessions_dir(settings)),
            clock=system_clock(),
            inbox=self.inbox(settings),
            environment_for=environments.of,
            redacted=environment_redactor(self.invocation.environ, settings.key_variables).redact,
            past_speed=partial(past_speed, self.sessions_dir(settings)),
            past_figures=partial(past_figures, self.sessions_dir(settings), partial(self.sessions, settings)),
            schemas=SchemaChecker(self.invocation.environ),
            model=self.model(settings, say),
            endpoints=self.endpoint_models(settings, say),
            retriever=retriever,
            language_servers=language_servers(self.root, self.invocation, shell, environments, self.is_trusted, say),
            audit=or_absent(
                lambda: audit_index(self.root, self.local_sessions(settings).audit_source()), lambda _: None
            ),
            tool_sources=(
                *or_absent(
                    lambda: (skill_tools(self.root, settings, self.invocation, skills, shell, self.skills_trusted),),
                    lambda _: (),
                ),
                *tool_servers(settings, self.root, self.invocation.environ),
            ),
        )

    def _playbooks(self, settings: "Settings", shell: "Shell", retriever: "SharedRetriever") -> "Playbooks":
        from agent_workbench.subjects.playbooks_wiring import playbooks

        return playbooks(self.root, settings, self.invocation, shell, self.is_trusted, retriever)
