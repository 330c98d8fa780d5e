"""Stored approval rules: a rule and the scope in which it is in force."""

from enum import StrEnum

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import Rule


class RuleScope(StrEnum):
    """Scope of a rule: the session, the repo's settings, the user's rules for the repo, or those for all repos."""

    SESSION = "session"
    REPO = "repo"
    USER = "user"
    EVERYWHERE = "all repos"


RULE_SCOPE_LABELS = {
    RuleScope.SESSION: "this session",
    RuleScope.REPO: "this repo",
    RuleScope.USER: "you, here",
    RuleScope.EVERYWHERE: "you, everywhere",
}


class StoredRule(RecordedValue, frozen=True):
    """A rule that is in force, and where it is stored."""

    rule: Rule
    kept: RuleScope
