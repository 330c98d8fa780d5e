"""Scaffold of a service: values for the templates of a role and its playbook, and where their texts belong."""

import re
from collections.abc import Collection, Mapping

from agent_workbench.core.errors import UsageError
from agent_workbench.core.playbooks.names import role_name, service_name
from agent_workbench.core.text.messages import quoted

FOLDER = "playbooks"
"""Folder of playbooks, where a repository has one."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+:-]*", re.ASCII)
_HOSTS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:&!*-]*", re.ASCII)
MAX_ABOUT = 200


def checked_values(
    service: str, about: str = "", hosts: str = "", package: str = "", unit: str = ""
) -> Mapping[str, str]:
    """Return the values for the templates; raise `UsageError` for one that YAML or Jinja2 could read as more."""
    name = service_name(service)
    about = " ".join(about.split()) or f"Deploys {name}."
    if len(about) > MAX_ABOUT or not about.isprintable() or any(mark in about for mark in ("{{", "{%", "{#")):
        raise UsageError(
            f"about: {quoted(about[:80])} is too long, not printable or a template", advice="use plain words"
        )
    for what, value, form in (("hosts", hosts, _HOSTS), ("package", package, _PLAIN), ("unit", unit, _PLAIN)):
        if value and not form.fullmatch(value):
            raise UsageError(
                f"{what}: {quoted(value[:80])} is not accepted", advice="use letters, digits, `.`, `-`, `_`"
            )
    return {
        "service": name,
        "role": role_name(name),
        "about": about,
        "hosts": hosts or "all",
        "package": package,
        "unit": unit,
    }


def scaffold_paths(values: Mapping[str, str], existing: Collection[str]) -> Mapping[str, str]:
    """Return the path of each template's text. Ansible looks for roles beside the playbook."""
    top = f"{FOLDER}/" if any(path.startswith(f"{FOLDER}/") for path in existing) else ""
    role = f"{top}roles/{values['role']}"
    return {
        "playbook.yml": f"{top}deploy-{values['service']}.yml",
        **{f"{part}.yml": f"{role}/{part}/main.yml" for part in ("tasks", "handlers", "defaults", "meta")},
        "README.md": f"{role}/README.md",
    }
