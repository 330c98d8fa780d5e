"""Tail of a running command's output, published while the command runs."""

from agent_workbench.core.ports.machine import Clock
from agent_workbench.engine.runtime.publisher import UpdatePublisher

TAIL_CHARS = 4_000


class OutputTail:
    """Takes the output of one tool call; `text` is its end so far."""

    def __init__(self, publisher: UpdatePublisher, clock: Clock) -> None:
        self.text = ""
        self._publisher = publisher
        self._clock = clock
        self._started = clock.monotonic_seconds()

    def __call__(self, text: str) -> None:
        """Take the next piece of output."""
        self.text = (self.text + text)[-TAIL_CHARS:]
        seconds = self._clock.monotonic_seconds() - self._started
        self._publisher.show_output(self.text, seconds)
