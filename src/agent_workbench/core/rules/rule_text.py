"""Text of approval rules, for decisions and lists."""

import re

from agent_workbench.core.proposals import POLICY
from agent_workbench.core.rules.matching import EVERY_FILE
from agent_workbench.core.settings import Permission, Rule


def rule_words(rule: Rule) -> str:
    """Return the text of a rule, as decisions and lists show it."""
    match rule.kind:
        case Permission.READ:
            return f"tool {rule.tool}"
        case Permission.SCRIPT:
            return f"one script, {rule.tool}"
        case Permission.PLAN | Permission.EXTERNAL:
            return f"{rule.kind} tool {rule.tool}"
        case Permission.DIFF:
            return "diff of any file" if EVERY_FILE in rule.paths else f"diff of {' '.join(map(_plain, rule.paths))}"
        case Permission.CHECK if rule.commands:
            return f"check {'; '.join(rule.commands)}"
        case Permission.COMMAND if rule.program:
            return f"command {rule.program} with any arguments"
        case Permission.COMMAND if rule.commands:
            return f"command {'; '.join(rule.commands)}"
        case _:
            return f"any {rule.kind}"


def decided_by(rule: Rule) -> str:
    """Return the value of a decision's `by` for a rule."""
    return f"{POLICY}{rule_words(rule)}"


def _plain(glob: str) -> str:
    return re.sub(r"\[([*?[])\]", r"\1", glob)
