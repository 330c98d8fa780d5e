"""Typed settings. `config/` fills them from `.agent.yml`, the environment and flags."""

from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.checks.language_servers import SERVER_NAMES
from agent_workbench.core.model import Purpose
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings.extensions import HookSettings, InfrastructureSettings, ToolServerSettings
from agent_workbench.core.settings.models import (
    SHORT_FORM,
    Chain,
    EndpointSettings,
    ModelSettings,
    RoleSettings,
    SamplingSettings,
)
from agent_workbench.core.settings.worker import DatabaseSettings, ForgeSettings, WorkerSettings

__all__ = [
    "AGENTS_FILES",
    "ALL_TOOLS",
    "DEFAULT_TOOLS",
    "MEMORY_IGNORE",
    "PLAYBOOK_TOOLS",
    "SHARED_SKILL_FOLDERS",
    "SKILL_TOOLS",
    "TOOL_ALIASES",
    "Approval",
    "ApprovalMode",
    "Approvals",
    "CallBy",
    "EmbeddingProvider",
    "EmbeddingSettings",
    "Limits",
    "MemorySettings",
    "Permission",
    "ReflexionTiming",
    "RetrievalSettings",
    "Rule",
    "SandboxSettings",
    "Settings",
    "SkillSettings",
    "UiSettings",
    "WorkspaceSettings",
    "tool_name",
]


class Permission(StrEnum):
    """Permission that a proposal needs; the keys of `approvals` in `.agent.yml` (`core.proposal_kinds`)."""

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
    """An approval rule. Exactly one field besides `kind` says what it matches (`core.approval_rules`).

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
    """Tools that only read, and `note`."""
    diff: Approval = Approval.ASK
    """Diffs; CI files, settings and similar files need a person even with `auto`."""
    check: Approval = Approval.ONCE
    """Running tests and lint; `once` asks for the first run of a task, and again only where the commands are others or
    a diff was not approved by you. An unattended task of your own runs the trusted `test_command` and `lint_command`
    in a sandbox without a question.
    """
    command: Approval = Approval.ASK
    """Other commands; without a sandbox they need a person even with `auto`."""
    commit: Approval = Approval.ASK
    """The commit on the task's branch."""
    merge: Approval = Approval.ASK
    """Merging into your branch; `auto` has the effect of `ask`."""
    summary: Approval = Approval.ASK
    """The summary that replaces older steps in a full context, or a long scratchpad."""
    finish: Approval = Approval.ASK
    """The end of a task without any change; `--yes` does not approve it."""
    plan: Approval = Approval.ASK
    """Plans that the model proposes, and changes of the plan by a tool of another source."""
    knowledge: Approval = Approval.ASK
    """Notes that outlive a task, shown as a diff of `memory/knowledge`; a change of an existing note needs a person
    even with `auto`. `deny`: the model has no tool `remember`, and none is offered.
    """
    script: Approval = Approval.ASK
    """Scripts of skills; without a sandbox they need a person even with `auto`."""
    external: Approval = Approval.ASK
    """Calls of external tools, such as those of a server; such a tool's own hints approve nothing."""
    infrastructure: Approval = Approval.ASK
    """Runs of playbooks; `auto` has the effect of `ask`, and no rule, mode or flag approves one. `deny`: no task has
    the tools of playbooks.
    """
    rules: tuple[Rule, ...] = ()
    """Rules that approve proposals without a question."""

    def of(self, kind: Permission) -> Approval:
        """Return the approval of `kind`."""
        approval: Approval = getattr(self, kind.value)
        return approval


class EmbeddingProvider(StrEnum):
    """Source of the code search's vectors: an embeddings endpoint, or none."""

    SERVER = "server"
    NONE = "none"


class EmbeddingSettings(Struct, frozen=True):
    """Embeddings endpoint: the address of a running one, or an embedding GGUF file to serve."""

    provider: EmbeddingProvider = EmbeddingProvider.NONE
    """Source of the vectors of files."""
    url: str = ""
    """The address of a `llama-server --embeddings`, or of another server with OpenAI's `/v1/embeddings`. Not together
    with `retrieval.embeddings.path`.
    """
    model: str = ""
    """The model's name in requests, for servers that have several."""
    api_key_env: str = ""
    """The environment variable that holds that server's key."""
    path: str = ""
    """An embedding model in a GGUF file in place of an address, which the workbench serves itself; `~` is your home."""


class RetrievalSettings(Struct, frozen=True):
    """Amount of code in the first prompt, what is never indexed, and the source of vectors."""

    top_n: int = 8
    """Number of pieces of code in the prompt at the start of a task."""
    max_chunk_tokens: int = 400
    """Approximate maximum length of a piece."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are never indexed, in addition to files with names of secrets."""
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)


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
    """Theme, notifications, keys and mode of the screen."""

    theme: str = "textual-dark"
    """The workbench's theme: one of Textual's by its name, or `high-contrast`, `high-contrast-light`. A terminal with
    16 colours shows its own colours; with `NO_COLOR` there are none.
    """
    clipboard: bool = True
    """Send copied text to the terminal (OSC 52), which puts it into the system's clipboard; tmux needs `set -g
    set-clipboard on`. Text over 64 KiB can only be pasted in the workbench.
    """
    notify: tuple[CallBy, ...] = (CallBy.BELL, CallBy.TERMINAL)
    """Notifications about pending proposals while the terminal has no focus: the terminal's bell, its notification (OSC
    9; tmux needs `set -g allow-passthrough on`, for hidden windows `all`), one of the desktop (`notify-send`, on macOS
    `osascript`). `[]`: none. With `desktop`, `agent run` and `agent worker` also tell it what they park.
    """
    keys: tuple[tuple[str, str], ...] = ()
    """Other keys for actions, action name to key."""
    mode: ApprovalMode = ApprovalMode.ASK
    """The mode in which a session starts on the screen; it approves no checks without a sandbox. Only your own settings
    may set it: in a repository's `.agent.yml` it is refused.
    """
    review_context: bool = True
    """Show what will be sent before a task's first prompt."""


class ReflexionTiming(StrEnum):
    """Time at which the model is asked for a reflexion on failed checks."""

    ALWAYS = "always"
    AFTER_SECOND_FAILURE = "after_second_failure"
    NEVER = "never"


class Limits(RecordedValue, frozen=True):
    """Limits at which a task ends, finished or not, reflexions on failures, and the review of changes."""

    max_tool_calls_per_task: int = 30
    """The task fails after this number of calls."""
    max_reflexion_retries: int = 3
    """The maximum number of reflexions on failing checks."""
    consecutive_failure_threshold: int = 5
    """The task fails after this number of consecutive failures, or twice as many where a check that failed before any
    change is to pass; after failed checks the model first reflects once and tries again.
    """
    command_seconds: float = 120.0
    """Time limit of a command; a task's `timeout_seconds` overrides it."""
    reflexion: ReflexionTiming = ReflexionTiming.ALWAYS
    """Time at which the model is asked, before its next step, what was wrong with a diff whose checks fail. The first
    error is in its next prompt in any case.
    """
    review: bool = False
    """A consultant reviews the whole change before its commit is proposed; the count of critical findings stands at the
    gate, which still decides. A task may say otherwise: `constraints: {review: true}`.
    """


MEMORY_IGNORE = """\
# Journals and the index stay on this machine; plans, notes and knowledge are yours to commit.
/sessions/
/index/
"""
"""Text of the `.gitignore` in the memory folder."""


class MemorySettings(Struct, frozen=True):
    """Folders of plans, notes and sessions, and the size of notes."""

    dir: str = "memory"
    """Folder of plan, notes and sessions, relative to the repo."""
    plan: str = "plans/PLAN.yaml"
    """The plan's file, relative to `memory.dir`."""
    summarise_threshold: int = 4000
    """Size of a task's scratchpad in tokens above which a summary is proposed; `0`: never."""
    knowledge_tokens: int = 1000
    """Room for excerpts of notes in the first prompt of a task, in estimated tokens; `0`: notes are not searched."""


class WorkspaceSettings(Struct, frozen=True):
    """Settings of a task's worktree: files of the checkout that are linked into it, and whether it is kept."""

    link: tuple[str, ...] = ()
    """Ignored files and folders, and submodules, that the tests need: linked into the workspace, never committed."""
    keep: bool = True
    """Keep a task's worktree when its session ends."""


AGENTS_FILES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
"""Names of files with instructions for agents; of a folder the first counts."""


SHARED_SKILL_FOLDERS = (".agents/skills", ".claude/skills")
"""Folders of skills in a repository, or in the user's home, that other agents read too."""


class SkillSettings(Struct, frozen=True):
    """Folders of skills, the tokens they may take, and the time of their scripts."""

    dirs: tuple[str, ...] = ("skills",)
    """Folders with skills, relative to the repo; `.agents/skills` and `.claude/skills` are read too, unless it is `[]`.
    """
    max_tokens: int = 2000
    """Maximum size of all skills in a prompt, in tokens; one that does not fit whole is left out."""
    agents_md: bool = True
    """Put the repository's `AGENTS.md` files into the prompt."""
    script_seconds: float = 30.0
    """Time limit of a script that runs with a skill."""

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders of the repo's skills, the nearest first; none if `dirs` is empty, as for an untrusted repo."""
        return tuple(dict.fromkeys((*self.dirs, *SHARED_SKILL_FOLDERS))) if self.dirs else ()


class SandboxSettings(Struct, frozen=True):
    """Network access of commands, and what happens where no sandbox holds."""

    network: bool = False
    """Let commands reach the network."""
    require: bool = False
    """Run nothing without a working sandbox."""
    unconfined: bool = False
    """Unattended work goes on where no sandbox works, as with `--unconfined`. Not in a repository's `.agent.yml`."""
    user: str = ""
    """Another user, by name or number, whom commands run as where no sandbox works; the workbench must be root. Not in
    a repository's `.agent.yml`.
    """


DEFAULT_TOOLS = (
    "read_file",
    "list_files",
    "grep",
    "search_code",
    "rewrite",
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

RUN_COMMAND, BACKGROUND = "run_command", "background"
"""The tool that runs commands, and the one that comes with it: it reads and stops what the first left running."""

ALL_TOOLS = (*DEFAULT_TOOLS, RUN_COMMAND, BACKGROUND, "consult", "query_audit", *SKILL_TOOLS, *PLAYBOOK_TOOLS)
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
    """Maximum cost of paid endpoints in dollars per day (UTC), all repos together, and with a database all machines
    that share it; with 0 they are never asked.
    """
    python: str = ""
    """The interpreter that runs tests: a path relative to the repo or a name on `PATH`. Without it the repo's `.venv`,
    else a `python3` that has pytest.
    """
    test_command: str = ""
    """The repo's tests, run after each diff; they must not get worse than before the task."""
    lint_command: str = ""
    """The repo's linter; it must not get worse either."""
    language_servers: tuple[str, ...] = SERVER_NAMES
    """Language servers that look at each applied diff, where they are installed; `[]`: none. New diagnostics of the
    changed files go to the steps and to the model.
    """
    tools_allowed: tuple[str, ...] = DEFAULT_TOOLS
    """Tools that the model may call; `run_command` (which brings `background`), `consult` (ask a consultant) and
    `query_audit` must be added. The tools of skills (`list_skills`, `get_skill`, `read_file_in_skill`,
    `run_python_script`) need not be named where a skill brings files. `vector_search` is another name of `search_code`.
    """
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
            # A pull request goes to the forge of the git remote where none is set.
            self.forge.token_variable if self.forge.active else self.forge.token_env,
            self.database.url_env,
        )
        return tuple(dict.fromkeys(name for name in named if name))

    def _default_chain(self) -> Chain:
        if self.model.url or self.model.path:
            return (SHORT_FORM,)
        return self.roles.executor or tuple(name for name, _ in self.endpoints) or (SHORT_FORM,)
