"""Proxy of the environment for an address; the HTTP library's own reading raises for many values that others accept."""

import ipaddress
import re
from contextlib import suppress
from os import environ
from urllib.parse import urlsplit
from urllib.request import getproxies

from socksio import SOCKSError

from agent_workbench.core.errors import ConfigError
from agent_workbench.system.loopback import is_loopback

ProxyFailed = SOCKSError
"""What a proxy that does not speak SOCKS raises: the HTTP library lets it through as it is."""
_SCHEMES = ("http", "https", "socks5", "socks5h")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}", re.ASCII)
# The HTTP library takes a name of this form for an address of IPv4, and raises.
_LIKE_IPV4 = re.compile(r"[0-9]+.[0-9]+.[0-9]+.[0-9]+")
_PORTS = {"http": 80, "https": 443}


def proxy_for(url: str) -> str | None:
    """Return the proxy for an address, None for a loopback address and one that `NO_PROXY` names.

    Raises `ConfigError` with the variable's name for a proxy that cannot be used.
    """
    parts = urlsplit(url)
    host, proxies = (parts.hostname or "").rstrip("."), getproxies()
    if is_loopback(host) or _is_exempt(host, parts.port or _PORTS.get(parts.scheme, 0), proxies.get("no", "")):
        return None
    chosen = next((each for each in (parts.scheme, "all") if proxies.get(each)), "")
    return _checked(chosen, proxies[chosen]) if chosen else None


def check_proxies() -> None:
    """Raise `ConfigError` if a proxy of the environment cannot be used, also one that no address needs."""
    for scheme, value in getproxies().items():
        if value and scheme in {"http", "https", "all"}:
            _checked(scheme, value)


def _checked(scheme: str, value: str) -> str:
    proxy = value if "://" in value else f"http://{value}"
    problem = _problem(proxy)
    if not problem:
        return proxy
    name = next((each for each in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY") if each in environ), "")
    raise ConfigError(
        f"the proxy in {name or 'the settings of this system'} cannot be used: {problem}",
        advice=f"set it to an address such as http://proxy.example:3128 ({', '.join(_SCHEMES)}), or unset it",
    )


def _problem(proxy: str) -> str:
    """Return why a proxy cannot be used, empty if it can. Its password is never part of that."""
    if not proxy.isprintable() or " " in proxy:
        return "it has a space or a control character"
    try:
        parts = urlsplit(proxy)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "its host or port cannot be read"
    if parts.scheme not in _SCHEMES:
        return f"its scheme is {parts.scheme!r}"
    if port == 0 or not (_is_address(host) or (_HOST.fullmatch(host) and not _LIKE_IPV4.fullmatch(host))):
        return "its host or port cannot be read"
    return ""


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def _is_exempt(host: str, port: int, no_proxy: str) -> bool:
    """Return True if a list names the host: hosts, domains with or without `*.`, networks, each maybe with a port."""
    return any(_names(entry.rpartition("://")[2].lower(), host, port) for entry in re.split(r"[,\s]+", no_proxy))


def _names(entry: str, host: str, port: int) -> bool:
    with suppress(ValueError):
        network = ipaddress.ip_network(entry.strip("[]"), strict=False)
        return _is_address(host) and ipaddress.ip_address(host) in network
    name, _, only = entry.partition(":")
    if only and only != str(port):
        return False
    domain = name.lstrip("*.").rstrip(".")
    return name == "*" or (bool(domain) and (host == domain or host.endswith(f".{domain}")))
