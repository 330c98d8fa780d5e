"""Settings of hooks, and the events that they can name."""

from enum import StrEnum
from hashlib import sha256

from msgspec import Struct

from agent_workbench.core.recorded_value import RecordedValue

ENTRY_CHARS = 12


class HookPoint(StrEnum):
    """Event that a hook runs on. The spelling of those before a decision is `<permission>_proposed`."""

    DIFF_PROPOSED = "diff_proposed"
    CHECK_PROPOSED = "check_proposed"
    COMMAND_PROPOSED = "command_proposed"
    COMMIT_PROPOSED = "commit_proposed"
    MERGE_PROPOSED = "merge_proposed"
    PLAN_PROPOSED = "plan_proposed"
    KNOWLEDGE_PROPOSED = "knowledge_proposed"
    SCRIPT_PROPOSED = "script_proposed"
    EXTERNAL_PROPOSED = "external_proposed"
    INFRASTRUCTURE_PROPOSED = "infrastructure_proposed"
    WAITS_FOR_PERSON = "waits_for_person"
    TASK_STARTED = "task_started"
    DIFF_APPLIED = "diff_applied"
    CHECKS_FINISHED = "checks_finished"
    TASK_DONE = "task_done"
    TASK_FAILED = "task_failed"
    TASK_MERGED = "task_merged"

    @property
    def is_proposal(self) -> bool:
        """True for an event before a decision: its hooks may refuse the proposal, or ask for a person."""
        return self.value.endswith("_proposed")


class HookSettings(Struct, frozen=True):
    """One hook: a command line for the shell, and the events it runs on."""

    events: tuple[HookPoint, ...] = ()
    """The events on which a command runs. A hook on a proposal may refuse it or ask for a person."""
    command: str = ""
    """A line for the shell; the event is JSON on its standard input."""
    timeout_seconds: float = 30.0
    """Time limit of the command in seconds, 600 at most."""
    network: bool = False
    """Let the command reach the network."""
    unconfined: bool = False
    """Run the command outside of the sandbox, with your rights."""


class ConfiguredHook(RecordedValue, frozen=True):
    """A hook of a session: its name, its events, and the beginning of the digest of its entry."""

    name: str
    events: tuple[HookPoint, ...]
    entry: str = ""


def configured(name: str, hook: HookSettings) -> ConfiguredHook:
    """Return what a session records of a hook; no command line is in it."""
    said = f"{hook.command}\0{hook.timeout_seconds}\0{hook.network}\0{hook.unconfined}"
    return ConfiguredHook(name, hook.events, sha256(said.encode("utf-8", "replace")).hexdigest()[:ENTRY_CHARS])
