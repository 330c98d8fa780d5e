"""Wiring of a repo's rule store: settings and trust, the user's own file, past actions from journals."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:  # loaded when a session is opened
    from agent_workbench.core.ports.repo_files import RuleStore


def rule_store(root: Path, invocation: Invocation, sessions_dir: Path) -> "RuleStore":
    """Return the store of the rules in force in the repo at `root`."""
    from agent_workbench.adapters.journal.past_actions import past_actions
    from agent_workbench.adapters.rules.rule_files import RuleFiles
    from agent_workbench.config.rule_trust import RuleTrust
    from agent_workbench.config.trust_store import TrustStore
    from agent_workbench.config.yaml_parser import compose_text
    from agent_workbench.system.user_dirs import config_dir, state_dir

    trust = RuleTrust(root, invocation.environ, invocation.flags, TrustStore(state_dir()))
    return RuleFiles(root, config_dir(), compose_text, trust.change, partial(past_actions, sessions_dir))
