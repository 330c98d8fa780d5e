"""Presses of the key that stops what runs: a check, a command or a call takes two that follow one another."""

from agent_workbench.core.intents import ChangeMode, Intent, StopAction
from agent_workbench.core.settings import ApprovalMode
from agent_workbench.views.gate.gate_bar import GateView

AGAIN = "press again to end it"
NOTHING = "nothing runs that can be stopped"


class StopPresses:
    """Remembers which action the last press asked about."""

    def __init__(self) -> None:
        self._asked: tuple[StopAction, int] | None = None

    def press(self, view: GateView, number: int) -> tuple[list[Intent], str]:
        """Return the intents of a press and a remark about it; `number` counts all keys pressed in the bar.

        Any press returns to the mode `ask`.
        """
        intents: list[Intent] = [ChangeMode(ApprovalMode.ASK)] if view.accepts else []
        stop, asked = view.stop, self._asked
        self._asked = None
        if isinstance(stop, StopAction) and asked != (stop, number - 1):
            self._asked = stop, number
            return intents, AGAIN
        if stop is None:
            return intents, "" if intents else NOTHING
        return [*intents, stop], ""
