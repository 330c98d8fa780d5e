"""Whether an address is this machine's own: what is sent there goes through no proxy."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or a number, is this machine as only it can reach itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
