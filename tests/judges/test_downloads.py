"""A judge is skipped for want of a network alone."""

import pytest

from tests.judges.downloads import fetch


def failing(said: str) -> list[str]:
    return ["sh", "-c", f"echo '{said}' >&2; exit 1"]


@pytest.mark.parametrize("said", ["Failed to establish a new connection: [Errno 111]", "npm error code ENOTFOUND"])
def test_no_network_skips(said: str) -> None:
    with pytest.raises(pytest.skip.Exception, match="machine lacks: a registry"):
        fetch(failing(said), "a registry")


@pytest.mark.parametrize("said", ["THESE PACKAGES DO NOT MATCH THE HASHES", "npm error code ETARGET"])
def test_any_other_failure_fails(said: str) -> None:
    with pytest.raises(AssertionError, match="not for want of a network"):
        fetch(failing(said), "a registry")
    fetch(["true"], "a registry")
