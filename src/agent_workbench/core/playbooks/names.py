"""Names of services, and of the role and the playbook that are made for one."""

import re

from agent_workbench.core.errors import UsageError
from agent_workbench.core.text.messages import quoted

MAX_CHARS = 60
_OTHERS = re.compile(r"[^a-z0-9]+")


def service_name(said: str) -> str:
    """Return a service's name in lower-case ASCII letters, digits and dashes; raise `UsageError` if none is left."""
    name = slug(said)
    if not name:
        raise UsageError(f"{quoted(said)} is no name of a service", advice="use letters and digits, such as `my-app`")
    if len(name) > MAX_CHARS:
        raise UsageError(f"{quoted(said[:80])} has more than {MAX_CHARS} characters", advice="use a shorter name")
    return name


def slug(said: str) -> str:
    """Return a text in lower-case ASCII letters and digits, joined by dashes; empty if it has none."""
    return _OTHERS.sub("-", said.lower()).strip("-")


def role_name(service: str) -> str:
    """Return the name of a service's role: Ansible allows letters, digits and underscores, a letter first."""
    name = service.replace("-", "_")
    return name if name[0].isalpha() else f"service_{name}"
