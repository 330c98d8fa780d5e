"""Playbooks: runs with their recaps and access, the catalogue, lint findings, and the values of new ones."""

import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.text.amounts import counted_text, quoted
from agent_workbench.core.text.sanitizer import sanitize_line

MOST_HOSTS = 500
MAX_HOST_CHARS = 100
_HEAD = re.compile(r"^PLAY RECAP \**[ \t]*\r?$", re.MULTILINE)
_HOST = re.compile(
    r"^(?P<host>\S{1,200})[ \t]+: ok=(?P<ok>\d{1,9})[ \t]+changed=(?P<changed>\d{1,9})[ \t]+unreachable="
    r"(?P<unreachable>\d{1,9})[ \t]+failed=(?P<failed>\d{1,9})(?:[ \t]+skipped=(?P<skipped>\d{1,9}))?"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

MOST_LOADED = 40
CONFIG = "ansible.cfg"
_CODE_FOLDERS = frozenset({"library", "module_utils"})
_PLUGINS = "_plugins"

MAX_BYTES = 262_144
"""Size of a file that is read as a playbook."""
MOST_SERVICES = 20
MOST_PLAYS = 50
_SUFFIXES = frozenset({".yml", ".yaml"})
# Folders of a role or an inventory, which hold no playbooks.
_PARTS = frozenset({"tasks", "handlers", "defaults", "vars", "meta", "templates", "files", "group_vars", "host_vars"})
_SERVICE = re.compile(r"^[ \t]*#[ \t]*(?:agent|chiffon):service=(\S{1,100})[ \t]*\r?$", re.MULTILINE)
_PLAY = re.compile(
    r"^(?:-[ ]+|[ ]{2,4})(?:hosts|import_playbook|ansible\.builtin\.import_playbook):(?:[ \t]|$)", re.MULTILINE
)
_ITEM = re.compile(r"^-[ ]", re.MULTILINE)
_NAME = re.compile(r"^(?:-[ ]+|[ ]{2,4})name:[ \t]+(\S.{0,199})$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#[ \t]*([^!\s].{0,299})$", re.MULTILINE)
_HEAD_LINES = 40

FOLDER = "playbooks"
"""Folder of playbooks, where a repository has one."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+:-]*", re.ASCII)
_HOSTS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:&!*-]*", re.ASCII)
MAX_ABOUT = 200

MAX_CHARS = 60
_OTHERS = re.compile(r"[^a-z0-9]+")


class HostRecap(RecordedValue, frozen=True):
    """Numbers of tasks on one host."""

    host: str
    ok: int = 0
    changed: int = 0
    unreachable: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def text(self) -> str:
        """The numbers on one line."""
        counts = f"ok={self.ok} changed={self.changed} unreachable={self.unreachable} failed={self.failed}"
        return f"{self.host}: {counts}{f' skipped={self.skipped}' if self.skipped else ''}"


def read_recap(output: str) -> tuple[HostRecap, ...]:
    """Return the hosts of the last recap in an output, at most `MOST_HOSTS`.

    The last one is Ansible's own: whatever a host or a task prints comes before it.
    """
    plain = _COLOURS.sub("", output)
    heads = list(_HEAD.finditer(plain))
    if not heads:
        return ()
    hosts: list[HostRecap] = []
    for line in plain[heads[-1].end() :].lstrip("\r\n").splitlines():
        if (found := _HOST.match(line)) is None or len(hosts) == MOST_HOSTS:
            break
        counts = {name: int(found[name] or 0) for name in ("ok", "changed", "unreachable", "failed", "skipped")}
        hosts.append(HostRecap(sanitize_line(found["host"], MAX_HOST_CHARS), **counts))
    return tuple(hosts)


def summary(hosts: Iterable[HostRecap]) -> str:
    """Return the sums over all hosts on one line, empty without any host."""
    found = tuple(hosts)
    if not found:
        return ""
    sums = (
        f"{name}={sum(getattr(each, name) for each in found)}" for name in ("ok", "changed", "unreachable", "failed")
    )
    return f"{counted_text(len(found), 'host')}: {' '.join(sums)}"


def is_clean(hosts: Iterable[HostRecap]) -> bool:
    """Return True if no host failed and each was reached."""
    return not any(each.failed or each.unreachable for each in hosts)


class PlaybookRequest(RecordedValue, frozen=True):
    """A run that is asked for. `inventory` is a file of the repository, or host names that end in a comma.

    `extra_vars` is one JSON object. `check`: nothing is to be changed, and differences are shown.
    """

    playbook: str
    inventory: str = ""
    limit: str = ""
    tags: str = ""
    extra_vars: str = ""
    check: bool = True

    @property
    def text(self) -> str:
        """The request on one line."""
        parts = (
            self.playbook,
            f"on {self.inventory}" if self.inventory else "on the default inventory",
            f"limit {self.limit}" if self.limit else "",
            f"tags {self.tags}" if self.tags else "",
            f"with {self.extra_vars}" if self.extra_vars else "",
            "(check mode)" if self.check else "",
        )
        return " ".join(filter(None, parts))

    @property
    def inventory_path(self) -> str:
        """Path of the inventory, empty if it is no file."""
        return "" if self.inventory.endswith(",") else self.inventory


class RunAccess(RecordedValue, frozen=True):
    """Secrets of the user that a run may use besides the network: key files, the SSH agent, and named passwords."""

    keys: tuple[str, ...] = ()
    agent: bool = False
    passwords: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The access on one line."""
        named = (*self.keys, *(("the SSH agent",) if self.agent else ()), *self.passwords)
        return f"network; {', '.join(named) or 'no keys'}"


class PlaybookRun(RecordedValue, frozen=True):
    """A run at the gate: the request, the playbook's text, its access, and what else of the repository runs with it.

    `loaded` are files with code or settings that Ansible reads by itself. `checked` are the hosts of the run in check
    mode before this one, and `check_failed` is True if that run failed.
    """

    request: PlaybookRequest
    text: str
    access: RunAccess
    loaded: tuple[str, ...] = ()
    checked: tuple[HostRecap, ...] = ()
    check_failed: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """All that a gate shows of the run; an approval counts for nothing else."""
        hosts = tuple(each.text for each in self.checked)
        return (self.request.text, self.text, self.access.text, *self.loaded, *hosts, f"{self.check_failed}")


def loaded_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files with code or settings that Ansible loads without being told to; the first of very many."""
    found = sorted(path for path in paths if _is_loaded(PurePosixPath(path)))
    more = len(found) - MOST_LOADED
    return (*found[:MOST_LOADED], f"and {more:,} more") if more > 0 else tuple(found)


def _is_loaded(path: PurePosixPath) -> bool:
    if path.name == CONFIG:
        return True
    folders = path.parts[:-1]
    return any(each in _CODE_FOLDERS or each.endswith(_PLUGINS) for each in folders)


class Playbook(Struct, frozen=True):
    """A playbook: its path, the services that its comments name, the names of its plays, and its first comments."""

    path: str
    services: tuple[str, ...] = ()
    plays: tuple[str, ...] = ()
    about: str = ""

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return PurePosixPath(self.path).stem

    @property
    def text(self) -> str:
        """The words by which it is found."""
        return "\n".join((self.path, *self.services, *self.plays, self.about))


class PlaybookSearch(Struct, frozen=True):
    """Answer of a search: the one playbook that fits and why, else the `nearest` ones with the similarity of each.

    A similarity is that of meaning, None where no vectors are configured.
    """

    found: Playbook | None = None
    reason: str = ""
    nearest: tuple[tuple[Playbook, float | None], ...] = ()


def may_be_playbook(path: str) -> bool:
    """Return True if a file with this path may hold a playbook."""
    pure = PurePosixPath(path)
    hidden = any(part.startswith(".") for part in pure.parts)
    return pure.suffix.lower() in _SUFFIXES and not hidden and not _PARTS.intersection(pure.parts[:-1])


def read_playbook(path: str, text: str) -> Playbook | None:
    """Return the playbook in a file, None if it holds none."""
    if not _ITEM.search(text) or not _PLAY.search(text):
        return None
    head = "\n".join(text.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    services = tuple(dict.fromkeys(_SERVICE.findall(text)))[:MOST_SERVICES]
    comments = [line for line in _COMMENT.findall(head) if ":service=" not in line]
    plays = tuple(name.strip().strip("\"'") for name in _NAME.findall(text)[:MOST_PLAYS])
    return Playbook(path, services, plays, "\n".join(comments))


class LintCategory(StrEnum):
    """Subject of a finding."""

    IDEMPOTENCY = "idempotency"
    ERROR_HANDLING = "error_handling"
    PERFORMANCE = "performance"
    BEST_PRACTICES = "best_practices"
    STANDARDS = "standards"


REASONS: Mapping[str, tuple[LintCategory, str]] = {
    "no-changed-when": (
        LintCategory.IDEMPOTENCY,
        "a command always reports a change, so handlers run each time and a second run is not quiet",
    ),
    "command-instead-of-module": (
        LintCategory.IDEMPOTENCY,
        "a module looks at the state first and changes only what differs; a command does it again",
    ),
    "latest": (LintCategory.IDEMPOTENCY, "the newest version differs from run to run, so two runs give two results"),
    "package-latest": (
        LintCategory.IDEMPOTENCY,
        "state: latest upgrades whenever something newer appears; name a version or use state: present",
    ),
    "ignore-errors": (LintCategory.ERROR_HANDLING, "every error is hidden, also those that nobody expected"),
    "risky-shell-pipe": (
        LintCategory.ERROR_HANDLING,
        "without pipefail only the last command of a pipe decides, so failures before it are lost",
    ),
    "risky-file-permissions": (
        LintCategory.ERROR_HANDLING,
        "without a mode the file gets that of the umask, which may let others read it",
    ),
    "no-handler": (
        LintCategory.PERFORMANCE,
        "a task that waits for a change is a handler: it then runs once, at the end",
    ),
    "command-instead-of-shell": (
        LintCategory.PERFORMANCE,
        "a shell is started for nothing, and reads quotes and variables in the arguments",
    ),
    "partial-become": (
        LintCategory.BEST_PRACTICES,
        "become_user without become does nothing, so the task runs as the wrong user",
    ),
    "no-log-password": (LintCategory.BEST_PRACTICES, "a password in a loop is printed; set no_log: true"),
    "var-naming": (LintCategory.BEST_PRACTICES, "the name collides with others or cannot be used in templates"),
    "name": (LintCategory.STANDARDS, "without a name the output does not say what a play or task is for"),
    "fqcn": (LintCategory.STANDARDS, "a short name may be another collection's module; write the full name"),
    "yaml": (LintCategory.STANDARDS, "YAML of more than one style hides mistakes such as lost indentation"),
}
"""Category and reason of the common rules."""


class LintFinding(RecordedValue, frozen=True):
    """One finding: the rule, its place, its severity, and why it matters."""

    rule: str
    path: str
    line: int
    severity: str
    category: LintCategory
    text: str
    reason: str

    @property
    def line_text(self) -> str:
        """The finding on one line."""
        why = f" ({self.reason})" if self.reason != self.text else ""
        return f"{self.path}:{self.line} {self.rule} [{self.category}, {self.severity}] {self.text}{why}"


class LintReport(RecordedValue, frozen=True):
    """Findings by severity; `left_out` is the number of others. `problem` says why there are none, empty if it ran."""

    findings: tuple[LintFinding, ...] = ()
    left_out: int = 0
    problem: str = ""

    @property
    def text(self) -> str:
        """The findings, a line for each."""
        if self.problem:
            return f"ansible-lint gave no result: {self.problem}"
        more = [f"and {self.left_out:,} more"] if self.left_out else []
        return "\n".join([*(each.line_text for each in self.findings), *more]) or "ansible-lint finds nothing"


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
