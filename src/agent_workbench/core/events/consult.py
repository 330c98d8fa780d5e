"""Events of consultations: what a consultant was asked, with everything its prompt is made of, and its answer."""

from enum import StrEnum

from agent_workbench.core.consult.attempts import ConsultAttempt
from agent_workbench.core.recorded_value import RecordedValue


class ConsultantAsked(RecordedValue, frozen=True):
    """A consultant was asked.

    `number` counts the consultations of the session from 1. `label` is the free label of the caller's session, `model`
    the only endpoint to ask (empty: those of the settings), `chain` the endpoints in order. The prompt is made of
    `protocols`, `discipline`, `knowledge`, `history`, `contents` (the files to judge) and `task` (the lines of the
    request). `paths` are the files, `about` the proposal that is judged. `wording` is the version of the prompt's form.
    """

    number: int
    skill: str
    phase: str
    task: str
    protocols: str
    discipline: str
    knowledge: str = ""
    history: str = ""
    contents: str = ""
    paths: tuple[str, ...] = ()
    label: str = ""
    model: str = ""
    chain: tuple[str, ...] = ()
    verifier: str = ""
    about: str = ""
    wording: int = 1
    answer_tokens: int = 0


class ConsultStatus(StrEnum):
    """End of a consultation: answered, without an answer, or stopped by the user."""

    OK = "ok"
    ERROR = "error"
    STOPPED = "stopped"


class ConsultantAnswered(RecordedValue, frozen=True):
    """A consultation ended. `text` is the answer, or what came of it; `reason` says why there is none.

    `cut_chars` of the answer are left out.
    """

    number: int
    status: ConsultStatus
    text: str
    model: str = ""
    duration_ms: int = 0
    attempts: tuple[ConsultAttempt, ...] = ()
    reason: str = ""
    cut_chars: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of all attempts."""
        return sum(each.tokens for each in self.attempts)

    @property
    def dollars(self) -> float:
        """Dollars of all attempts."""
        return sum(each.dollars for each in self.attempts)
