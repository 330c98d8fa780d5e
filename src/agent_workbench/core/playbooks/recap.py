"""Recap of a run: what Ansible counted for each host, read from the end of its output."""

import re
from collections.abc import Iterable

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

MOST_HOSTS = 500
MAX_HOST_CHARS = 100
_HEAD = re.compile(r"^PLAY RECAP \**[ \t]*\r?$", re.MULTILINE)
_HOST = re.compile(
    r"^(?P<host>\S{1,200})[ \t]+: ok=(?P<ok>\d{1,9})[ \t]+changed=(?P<changed>\d{1,9})[ \t]+unreachable="
    r"(?P<unreachable>\d{1,9})[ \t]+failed=(?P<failed>\d{1,9})(?:[ \t]+skipped=(?P<skipped>\d{1,9}))?"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


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
