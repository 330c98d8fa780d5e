"""Deadlines of an answer: a bound on silence, a larger one on the whole answer, none on reading the prompt."""

import asyncio

WHOLE_FACTOR = 6


class Deadline:
    """Deadline after `silence_seconds` without data, and after six times as long in any case.

    The second bound starts again whenever the server reports progress in the prompt.
    """

    def __init__(self, silence_seconds: float) -> None:
        self._silence_seconds = silence_seconds
        self._last = self._now() + WHOLE_FACTOR * silence_seconds
        self.at = self._now() + silence_seconds

    def heard(self) -> None:
        """Restart the bound on silence: data came."""
        self.at = min(self._now() + self._silence_seconds, self._last)

    def moved(self) -> None:
        """Restart both bounds: more of the prompt was read."""
        self._last = self._now() + WHOLE_FACTOR * self._silence_seconds
        self.heard()

    @property
    def why(self) -> str:
        """Clause of an error message: the failure of the server if the deadline passed."""
        if self.at < self._last:
            return f"was silent for {self._silence_seconds:g} s"
        return f"was not done in time ({WHOLE_FACTOR * self._silence_seconds:g} s)"

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class FixedDeadline(Deadline):
    """Deadline at `at`, the event loop's time, that no data moves: for questions that a server answers at once."""

    def __init__(self, at: float) -> None:
        super().__init__(0.0)
        self.at = at

    def heard(self) -> None:
        """Leave the deadline as it is."""

    @property
    def why(self) -> str:
        """Clause of an error message: the failure of the server if the deadline passed."""
        return "was not done in time"
