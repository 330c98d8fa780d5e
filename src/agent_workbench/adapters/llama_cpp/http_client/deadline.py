"""How long a server may take: silence has a bound, the whole answer a generous one, reading a long prompt none."""

import asyncio

WHOLE_FACTOR = 6


class Deadline:
    """Ends after `silence_seconds` without a sign of life, and after six times as long in any case.

    While the server reads on in the prompt the second bound begins anew: a prompt is as long as it is.
    """

    def __init__(self, silence_seconds: float) -> None:
        self._silence_seconds = silence_seconds
        self._last = self._now() + WHOLE_FACTOR * silence_seconds
        self.at = self._now() + silence_seconds

    def heard(self) -> None:
        """Take a sign of life."""
        self.at = min(self._now() + self._silence_seconds, self._last)

    def moved(self) -> None:
        """Take it that more of the prompt was read."""
        self._last = self._now() + WHOLE_FACTOR * self._silence_seconds
        self.heard()

    @property
    def why(self) -> str:
        """What is wrong with a server when the deadline passed."""
        if self.at < self._last:
            return f"was silent for {self._silence_seconds:g} s"
        return f"was not done in time ({WHOLE_FACTOR * self._silence_seconds:g} s)"

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class FixedDeadline(Deadline):
    """Ends at `at`, the event loop's time, whatever is heard: for what a server answers at once."""

    def __init__(self, at: float) -> None:
        super().__init__(0.0)
        self.at = at

    def heard(self) -> None:
        """Change nothing."""

    @property
    def why(self) -> str:
        """What is wrong with a server when the deadline passed."""
        return "was not done in time"
