"""Who a commit is by."""

import re

from agent_workbench.adapters.git.commands.plumbing import Plumbing

WORKBENCH = ("Agent Workbench", "agent@localhost")


def user_identity(plumbing: Plumbing) -> tuple[str, str]:
    """Return name and e-mail that the user has told git, or the workbench's own; a guess of git's does not count."""
    outcome = plumbing.attempt("-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
    match = re.fullmatch(r"(.*) <(.*)> \d+ [+-]\d{4}\n?", outcome.out.decode("utf-8", "replace"))
    return (match[1], match[2]) if not outcome.status and match else WORKBENCH
