"""The command on a machine of its own."""

from tests.e2e.conftest import machine

__all__ = ["machine"]
