"""Typed settings. `config/` fills them from `.agent.yml`, the environment and flags."""

from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.model import Purpose
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings.database import DatabaseSettings
from agent_workbench.core.settings.forge import ForgeSettings
from agent_workbench.core.settings.hooks import HookSettings
from agent_workbench.core.settings.infrastructure import InfrastructureSettings
from agent_workbench.core.settings.models import (
    SHORT_FORM,
    Chain,
    EndpointSettings,
    ModelSettings,
    RoleSettings,
    SamplingSettings,
)
from agent_workbench.core.settings.tool_servers import ToolServerSettings
from agent_workbench.core.settings.worker import WorkerSettings


class Permission(StrEnum):
    """Permission that a proposal needs; the keys of `approvals` in `.agent.yml` (`core.tools.permissions`)."""

    READ = "read"
    DIFF = "diff"
    CHECK = "check"
    COMMAND = "command"
    COMMIT = "commit"
    MERGE = "merge"
    SUMMARY = "summary"
    FINISH = "finish"
    PLAN = "plan"
    KNOWLEDGE = "knowledge"
    SCRIPT = "script"
    EXTERNAL = "external"
    INFRASTRUCTURE = "infrastructure"


class Approval(StrEnum):
    """Decision about proposals with a permission: automatic approval, a question to the user, or denial.

    `once`, for checks only: a question for each list of commands in a task, as long as the user approves every diff.
    """

    AUTO = "auto"
    ASK = "ask"
    ONCE = "once"
    DENY = "deny"


class Rule(RecordedValue, frozen=True):
    """An approval rule. Exactly one field besides `kind` says what it matches (`core.rules`).

    `any`: all proposals of the kind. `commands`: these lines and no others. `program`: this one with any arguments.
    `paths`: globs, one of which each file must match. `tool`: calls of this tool; `NAME@DIGEST` if a source brings it.
    """

    kind: Permission
    any: bool = False
    commands: tuple[str, ...] = ()
    program: str = ""
    paths: tuple[str, ...] = ()
    tool: str = ""


class Approvals(RecordedValue, frozen=True):
    """Approval of each kind, and rules for those that ask."""

    read: Approval = Approval.AUTO
    diff: Approval = Approval.ASK
    check: Approval = Approval.ONCE
    command: Approval = Approval.ASK
    commit: Approval = Approval.ASK
    merge: Approval = Approval.ASK
    summary: Approval = Approval.ASK
    finish: Approval = Approval.ASK
    plan: Approval = Approval.ASK
    knowledge: Approval = Approval.ASK
    script: Approval = Approval.ASK
    external: Approval = Approval.ASK
    infrastructure: Approval = Approval.ASK
    rules: tuple[Rule, ...] = ()

    def of(self, kind: Permission) -> Approval:
        """Return the approval of `kind`."""
        approval: Approval = getattr(self, kind.value)
        return approval


class ReflexionTiming(StrEnum):
    """Time at which the model is asked for a reflexion on failed checks."""

    ALWAYS = "always"
    AFTER_SECOND_FAILURE = "after_second_failure"
    NEVER = "never"


class Limits(RecordedValue, frozen=True):
    """Limits at which a task ends, finished or not, the failures that the model reflects on, and the review of changes.

    `review`: a consultant reviews the whole change before its commit is proposed.
    """

    max_tool_calls_per_task: int = 30
    max_reflexion_retries: int = 3
    consecutive_failure_threshold: int = 5
    command_seconds: float = 120.0
    reflexion: ReflexionTiming = ReflexionTiming.ALWAYS
    review: bool = False


MEMORY_IGNORE = """\
# Journals and the index stay on this machine; plans, notes and knowledge are yours to commit.
/sessions/
/index/
"""
"""Text of the `.gitignore` in the memory folder."""


class MemorySettings(Struct, frozen=True):
    """Folders of plans, notes and sessions, relative to the repo's root, and the size of notes.

    A scratchpad of more than `summarise_threshold` tokens is to be summarised (0: never). `knowledge_tokens` is the
    room for found notes in the first prompt of a task (0: none is searched).
    """

    dir: str = "memory"
    plan: str = "plans/PLAN.yaml"
    summarise_threshold: int = 4000
    knowledge_tokens: int = 1000


class EmbeddingProvider(StrEnum):
    """Source of the code search's vectors: an embeddings endpoint, or none."""

    SERVER = "server"
    NONE = "none"


class EmbeddingSettings(Struct, frozen=True):
    """Embeddings endpoint: the address of a running one (`url`), or an embedding GGUF file to serve (`path`).

    `model` is the model's name in requests.
    """

    provider: EmbeddingProvider = EmbeddingProvider.NONE
    url: str = ""
    model: str = ""
    api_key_env: str = ""
    path: str = ""


class RetrievalSettings(Struct, frozen=True):
    """Amount of code in the first prompt, what is never indexed, and the source of vectors."""

    top_n: int = 8
    max_chunk_tokens: int = 400
    exclude: tuple[str, ...] = ()
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)


class WorkspaceSettings(Struct, frozen=True):
    """Ignored files of the checkout that tests need, linked into the worktree."""

    link: tuple[str, ...] = ()
    keep: bool = True


AGENTS_FILES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
"""Names of files with instructions for agents; of a folder the first counts."""


SHARED_SKILL_FOLDERS = (".agents/skills", ".claude/skills")
"""Folders of skills in a repository, or in the user's home, that other agents read too."""


class SkillSettings(Struct, frozen=True):
    """Folders of skills, relative to the repo, the tokens they may take, and whether `AGENTS.md` files are read.

    A script of a skill may run for `script_seconds`.
    """

    dirs: tuple[str, ...] = ("skills",)
    max_tokens: int = 2000
    agents_md: bool = True
    script_seconds: float = 30.0

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders of the repo's skills, the nearest first; none if `dirs` is empty, as for an untrusted repo."""
        return tuple(dict.fromkeys((*self.dirs, *SHARED_SKILL_FOLDERS))) if self.dirs else ()


class SandboxSettings(Struct, frozen=True):
    """Network access of commands, and what happens where no sandbox holds.

    `require`: no command runs then. `unconfined`: unattended work goes on then, as with the flag of that name. `user`:
    name or number of another user, whom commands run as then.
    """

    network: bool = False
    require: bool = False
    unconfined: bool = False
    user: str = ""


class CallBy(StrEnum):
    """Way to notify the user: the terminal's bell, a notification of the terminal, or one of the desktop."""

    BELL = "bell"
    TERMINAL = "terminal"
    DESKTOP = "desktop"


class ApprovalMode(StrEnum):
    """Mode of a session: which proposals are approved without a question."""

    ASK = "ask"
    ACCEPT_EDITS = "accept_edits"
    ACCEPT_UNTIL_DONE = "accept_until_done"


class UiSettings(Struct, frozen=True):
    """Theme, notifications, remapped keys (action name to key), the mode at the start, and the context's preview."""

    theme: str = "textual-dark"
    clipboard: bool = True
    """Copied text also goes to the terminal's clipboard."""
    notify: tuple[CallBy, ...] = (CallBy.BELL, CallBy.TERMINAL)
    keys: tuple[tuple[str, str], ...] = ()
    mode: ApprovalMode = ApprovalMode.ASK
    """Set by the user alone: no file of a repository may set it."""
    review_context: bool = True


DEFAULT_TOOLS = (
    "read_file",
    "list_files",
    "grep",
    "search_code",
    "write_diff",
    "run_tests",
    "static_analyze",
    "note",
    "query_knowledge",
    "remember",
    "finish",
)

SKILL_TOOLS = ("list_skills", "get_skill", "read_file_in_skill", "run_python_script")
"""Tools of skills: offered also without being named, where a skill has files that they may need."""

PLAYBOOK_TOOLS = ("find_playbook", "run_playbook", "lint_playbook", "scaffold_playbook")
"""Tools of playbooks: offered also without being named, to tasks that the skill of playbooks fits."""

ALL_TOOLS = (*DEFAULT_TOOLS, "run_command", "consult", *SKILL_TOOLS, *PLAYBOOK_TOOLS)
"""Every tool that a model may be given."""
TOOL_ALIASES = {"vector_search": "search_code"}
"""Other names of tools in settings and rules."""


def tool_name(said: str) -> str:
    """Return a tool's name, also for an alias."""
    return TOOL_ALIASES.get(said, said)


class Settings(Struct, frozen=True):
    """All settings of `.agent.yml`, with their defaults."""

    model: ModelSettings = field(default_factory=ModelSettings)
    endpoints: tuple[tuple[str, EndpointSettings], ...] = ()
    roles: RoleSettings = field(default_factory=RoleSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    cost_cap_daily: float = 0.0
    python: str = ""
    test_command: str = ""
    lint_command: str = ""
    tools_allowed: tuple[str, ...] = DEFAULT_TOOLS
    approvals: Approvals = field(default_factory=Approvals)
    limits: Limits = field(default_factory=Limits)
    memory: MemorySettings = field(default_factory=MemorySettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    skills: SkillSettings = field(default_factory=SkillSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    mcp_servers: tuple[tuple[str, ToolServerSettings], ...] = ()
    forge: ForgeSettings = field(default_factory=ForgeSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    infrastructure: InfrastructureSettings = field(default_factory=InfrastructureSettings)
    hooks: tuple[tuple[str, HookSettings], ...] = ()
    ui: UiSettings = field(default_factory=UiSettings)

    @property
    def searched(self) -> RetrievalSettings:
        """Settings of the code search, with the workbench's own files excluded."""
        own = (f"{self.memory.dir}/**", ".agent.yml")
        return replace(self.retrieval, exclude=(*self.retrieval.exclude, *own))

    def chain(self, purpose: Purpose, skill: str = "") -> Chain:
        """Return the names of the endpoints to ask for `purpose` in order; `skill` has a chain of its own, by name.

        A role without a chain asks `model`. If no model is set, it asks the executor's chain, and without roles every
        endpoint in the order of the settings.
        """
        own = {
            Purpose.PLANNER: self.roles.planner,
            Purpose.REFLEXION: self.roles.reflexion,
        }.get(purpose, self.roles.executor)
        return dict(self.roles.skills).get(skill, ()) or own or self._default_chain()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables that hold keys or addresses with passwords, or values for MCP servers."""
        embeddings = self.retrieval.embeddings.api_key_env
        named = (
            *(self.model.api_key_env, embeddings, *(endpoint.api_key_env for _, endpoint in self.endpoints)),
            *(name for _, server in self.mcp_servers for name in server.variables),
            *self.infrastructure.variables,
            *((self.forge.token_env, self.forge.webhook_secret_env) if self.forge.active else ()),
            self.database.url_env,
        )
        return tuple(dict.fromkeys(name for name in named if name))

    def _default_chain(self) -> Chain:
        if self.model.url or self.model.path:
            return (SHORT_FORM,)
        return self.roles.executor or tuple(name for name, _ in self.endpoints) or (SHORT_FORM,)
