"""Specs of the four tools of skills, and the arguments of a script's call."""

import json

from msgspec import Struct

from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import SKILL_TOOLS, Permission
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import JsonError, read_json

SOURCE = "skill"
LIST_SKILLS, GET_SKILL, READ_FILE_IN_SKILL, RUN_PYTHON_SCRIPT = SKILL_TOOLS
MAX_SKILL_NAME, MAX_PATH, MAX_SCRIPT = 64, 300, 16_000
"""Characters of the arguments."""


class ScriptCall(Struct, frozen=True):
    """A Python script that runs with a skill."""

    skill: str
    script: str


def _spec(name: str, summary: str, permission: Permission, **arguments: int) -> ToolSpec:
    """Return the spec of a tool whose arguments are texts of at most so many characters."""
    schema = {
        "type": "object",
        "properties": {each: {"type": "string", "maxLength": most} for each, most in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return ToolSpec(name, summary, permission, json.dumps(schema, separators=(",", ":")), SOURCE)


SKILL_SPECS = (
    _spec(LIST_SKILLS, "list the skills there are, with what each is for", Permission.READ),
    _spec(GET_SKILL, "read the whole SKILL.md of a skill", Permission.READ, skill_name=MAX_SKILL_NAME),
    _spec(
        READ_FILE_IN_SKILL,
        "read another text file of a skill",
        Permission.READ,
        skill_name=MAX_SKILL_NAME,
        file_path=MAX_PATH,
    ),
    _spec(
        RUN_PYTHON_SCRIPT,
        "run Python code in the folder of a skill, which it can import from, and return what it prints",
        Permission.SCRIPT,
        skill_name=MAX_SKILL_NAME,
        script=MAX_SCRIPT,
    ),
)
"""The specs never change with the skills there are, so a rule for one of them stays in force."""


def script_call(proposal: Proposal) -> ScriptCall | None:
    """Return the script that a proposal would run, None if it would run none."""
    if proposal.kind is not Permission.SCRIPT or proposal.tool != RUN_PYTHON_SCRIPT:
        return None
    try:
        value = read_json(proposal.text)
    except JsonError:
        return None
    match value:
        case {"skill_name": str(skill), "script": str(script), **others} if not others:
            return ScriptCall(skill, script)
    return None
