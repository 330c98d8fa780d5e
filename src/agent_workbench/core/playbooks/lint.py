"""Findings of ansible-lint: five categories, a reason for each common rule, and the most severe of very many."""

from collections.abc import Mapping
from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue


class LintCategory(StrEnum):
    """Subject of a finding."""

    IDEMPOTENCY = "idempotency"
    ERROR_HANDLING = "error_handling"
    PERFORMANCE = "performance"
    BEST_PRACTICES = "best_practices"
    STANDARDS = "standards"


REASONS: Mapping[str, tuple[LintCategory, str]] = {
    "no-changed-when": (
        LintCategory.IDEMPOTENCY,
        "a command always reports a change, so handlers run each time and a second run is not quiet",
    ),
    "command-instead-of-module": (
        LintCategory.IDEMPOTENCY,
        "a module looks at the state first and changes only what differs; a command does it again",
    ),
    "latest": (LintCategory.IDEMPOTENCY, "the newest version differs from run to run, so two runs give two results"),
    "package-latest": (
        LintCategory.IDEMPOTENCY,
        "state: latest upgrades whenever something newer appears; name a version or use state: present",
    ),
    "ignore-errors": (LintCategory.ERROR_HANDLING, "every error is hidden, also those that nobody expected"),
    "risky-shell-pipe": (
        LintCategory.ERROR_HANDLING,
        "without pipefail only the last command of a pipe decides, so failures before it are lost",
    ),
    "risky-file-permissions": (
        LintCategory.ERROR_HANDLING,
        "without a mode the file gets that of the umask, which may let others read it",
    ),
    "no-handler": (
        LintCategory.PERFORMANCE,
        "a task that waits for a change is a handler: it then runs once, at the end",
    ),
    "command-instead-of-shell": (
        LintCategory.PERFORMANCE,
        "a shell is started for nothing, and reads quotes and variables in the arguments",
    ),
    "partial-become": (
        LintCategory.BEST_PRACTICES,
        "become_user without become does nothing, so the task runs as the wrong user",
    ),
    "no-log-password": (LintCategory.BEST_PRACTICES, "a password in a loop is printed; set no_log: true"),
    "var-naming": (LintCategory.BEST_PRACTICES, "the name collides with others or cannot be used in templates"),
    "name": (LintCategory.STANDARDS, "without a name the output does not say what a play or task is for"),
    "fqcn": (LintCategory.STANDARDS, "a short name may be another collection's module; write the full name"),
    "yaml": (LintCategory.STANDARDS, "YAML of more than one style hides mistakes such as lost indentation"),
}
"""Category and reason of the common rules."""


class LintFinding(RecordedValue, frozen=True):
    """One finding: the rule, its place, its severity, and why it matters."""

    rule: str
    path: str
    line: int
    severity: str
    category: LintCategory
    text: str
    reason: str

    @property
    def line_text(self) -> str:
        """The finding on one line."""
        why = f" ({self.reason})" if self.reason != self.text else ""
        return f"{self.path}:{self.line} {self.rule} [{self.category}, {self.severity}] {self.text}{why}"


class LintReport(RecordedValue, frozen=True):
    """Findings by severity; `left_out` is the number of others. `problem` says why there are none, empty if it ran."""

    findings: tuple[LintFinding, ...] = ()
    left_out: int = 0
    problem: str = ""

    @property
    def text(self) -> str:
        """The findings, a line for each."""
        if self.problem:
            return f"ansible-lint gave no result: {self.problem}"
        more = [f"and {self.left_out:,} more"] if self.left_out else []
        return "\n".join([*(each.line_text for each in self.findings), *more]) or "ansible-lint finds nothing"
