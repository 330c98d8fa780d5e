"""Which addresses are this machine's own."""

import pytest

from agent_workbench.host.loopback import is_loopback


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("10.0.0.1", False), ("a.b", False)],
)
def test_the_own_addresses_are_told_from_others(host: str, own: bool) -> None:
    assert is_loopback(host) is own
