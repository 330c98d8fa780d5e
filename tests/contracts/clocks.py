"""A clock that a test sets, for leases."""


class SetClock:
    """`core.ports.machine.Clock` that stays where it is put."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> str:
        return "2026-01-02T03:04:05.000000Z"

    def monotonic_seconds(self) -> float:
        return self.seconds
