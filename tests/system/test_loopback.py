"""Which addresses are this machine's own."""

import pytest

from agent_workbench.system.loopback import is_loopback


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("LOCALHOST.", True)),
        *(("127.1", True), ("0x7f000001", True), ("2130706433", True), ("0177.1", True)),
        *(("::ffff:127.0.0.1", True), ("[::ffff:127.0.0.1]", True), ("::ffff:10.0.0.1", False), ("10.1", False)),
        *(("10.0.0.1", False), ("a.b", False), ("localhost.example", False), ("127.1.example", False), ("", False)),
    ],
)
def test_the_own_addresses_are_told_from_others(host: str, own: bool) -> None:
    assert is_loopback(host) is own
