"""Skills catalogue: list, show, check, and the choice for words or filters."""

from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing, settings_to_check
from agent_workbench.bootstrap.repo_context import Say, find_repo
from agent_workbench.bootstrap.skill_tools import skill_folders
from agent_workbench.core.errors import RepoError, SkillError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.skills import SkillEntry, SkillPlace

if TYPE_CHECKING:  # loaded by the calls that need it
    from agent_workbench.adapters.skills.folders import SkillFolders
    from agent_workbench.core.skills import SkillQuery
    from agent_workbench.engine.task.skill_choice import SkillChoice


class SkillCatalogue(Struct, frozen=True):
    """All skills by name, and the folders that were searched for them, the nearest first."""

    skills: tuple[SkillEntry, ...]
    places: tuple[SkillPlace, ...]


async def list_skills(invocation: Invocation, say: Say = say_nothing) -> SkillCatalogue:
    """Return the skills that a task here may use; tell `say` if the repo's own do not count without trust."""
    return await _catalogue(await _folders(invocation, say))


async def check_skills(invocation: Invocation) -> SkillCatalogue:
    """Return all skills with their problems, those of a repository without trust too: they are only read."""
    try:
        repo = await find_repo(invocation)
    except RepoError:
        return await list_skills(invocation)
    settings = await settings_to_check(repo)
    return await _catalogue(skill_folders(repo.root, settings.skills))


async def show_skill(invocation: Invocation, name: str, say: Say = say_nothing) -> tuple[SkillEntry, str]:
    """Return a skill and its text; raise `SkillError` for an unknown one, or one that cannot be used."""
    folders = await _folders(invocation, say)
    body = await folders.body(name)
    entry = next((each for each in await folders.list() if each.name == name), None)
    if entry is None:
        raise SkillError(
            f"the skill {name!r} was removed meanwhile", advice="`agent skills list` shows those there are"
        )
    return entry, body


async def choose_skills(
    invocation: Invocation, query: "SkillQuery", max_tokens: int | None = None, say: Say = say_nothing
) -> "SkillChoice":
    """Return the skills that fit a query into `max_tokens` (None: `skills.max_tokens`), estimated without a model."""
    from msgspec.structs import replace

    from agent_workbench.engine.task.skill_choice import estimate_tokens, pick_skills

    repo, settings = await repo_or_folder(invocation, say)
    most = settings.skills.max_tokens if max_tokens is None else max_tokens
    catalogue = skill_folders(repo.root, settings.skills)
    return await pick_skills(catalogue, replace(query, max_tokens=most), estimate_tokens)


async def _folders(invocation: Invocation, say: Say) -> "SkillFolders":
    repo, settings = await repo_or_folder(invocation, say)
    return skill_folders(repo.root, settings.skills)


async def _catalogue(folders: "SkillFolders") -> SkillCatalogue:
    return SkillCatalogue(await folders.list(), await folders.places())


async def discipline_prompt(invocation: Invocation, consultant: str) -> tuple[str, str]:
    """Return the repository's root, and the protocols with the discipline of a consultant as its model gets them.

    Raises `UsageError` for an unknown consultant, `SkillError` for a missing discipline.
    """
    from agent_workbench.core.consult.requests import PROTOCOLS, consultant_named
    from agent_workbench.engine.consult.context import RULE

    discipline = consultant_named(consultant).discipline
    root = (await find_repo(invocation)).root
    folders = await _folders(invocation, say_nothing)
    texts = [(await folders.body(name)).strip("\n") for name in (PROTOCOLS, discipline)]
    return str(root), RULE.join(texts)
