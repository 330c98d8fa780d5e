"""Disciplines of the consultants: the texts that tell a model how to work as one."""

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.skill_folders import skill_folders
from agent_workbench.core.consult.requests import PROTOCOLS, consultant_named
from agent_workbench.core.invocation import Invocation


async def discipline_prompt(invocation: Invocation, consultant: str) -> tuple[str, str]:
    """Return the repository's root, and the protocols with the discipline of a consultant as its model gets them.

    Raises `UsageError` for an unknown consultant, `ConfigError` for a missing discipline.
    """
    from agent_workbench.engine.consult.prompt import RULE

    facts = consultant_named(consultant)
    repo, settings = await trusted_repo(invocation)
    skills = skill_folders(repo.root, settings.skills)
    texts = [(await skills.body(name)).strip("\n") for name in (PROTOCOLS, facts.discipline)]
    return str(repo.root), RULE.join(texts)
