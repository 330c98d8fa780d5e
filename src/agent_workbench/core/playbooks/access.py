"""Request for a run of a playbook, and its access beyond that of other commands."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from agent_workbench.core.playbooks.recap import HostRecap
from agent_workbench.core.recorded_value import RecordedValue

MOST_LOADED = 40
CONFIG = "ansible.cfg"
_CODE_FOLDERS = frozenset({"library", "module_utils"})
_PLUGINS = "_plugins"


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
