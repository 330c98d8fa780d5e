"""Recognition of loopback addresses, for which no proxy is used."""

import ipaddress
import re
import socket

_NUMBERS = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Return True if `host`, a name or an address, is a loopback address of this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return _is_short_loopback(host)
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (inner or address).is_loopback


def _is_short_loopback(host: str) -> bool:
    """Return True for a loopback address in an old spelling: `127.1`, `0x7f000001`, `2130706433`."""
    if not _NUMBERS.fullmatch(host):
        return False  # a name, which the system's parser rejects too
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host)).is_loopback
    except OSError:
        return False
