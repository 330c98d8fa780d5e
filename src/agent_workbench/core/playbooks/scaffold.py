"""Scaffold of a service: the names of its role and playbook, values for their templates, and their places."""

import re
from collections.abc import Collection, Mapping

from agent_workbench.core.errors import UsageError
from agent_workbench.core.text.amounts import quoted

FOLDER = "playbooks"
"""Folder of playbooks, where a repository has one."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+:-]*", re.ASCII)
_HOSTS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:&!*-]*", re.ASCII)
MAX_ABOUT = 200

MAX_CHARS = 60
_OTHERS = re.compile(r"[^a-z0-9]+")


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
