"""Attempts to get an answer from a consultant, and the pass rates of models."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, field

from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.recorded_value import RecordedValue


class AttemptVerdict(StrEnum):
    """Verdict on one attempt: the answer was taken, the verifier refused it, or there was none."""

    ACCEPT = "accept"
    ESCALATE = "escalate"
    ERROR = "error"


class EndpointTier(StrEnum):
    """Kind of an endpoint: on this machine, on another one, or one that costs money."""

    LOCAL = "local"
    REMOTE = "remote"
    PAID = "paid"


class ConsultAttempt(RecordedValue, frozen=True):
    """One attempt at one endpoint.

    `endpoint` is its name in the settings, `model` who answered. `warm_start`: it was ready within 200 ms. `feedback`
    is the verifier's reason, or the error. `sha` is SHA-256 of the prompt's messages; `text` is an answer that was not
    taken. `verifying` are the figures of the verifier's own answer.
    """

    endpoint: str
    model: str
    tier: EndpointTier
    duration_ms: int
    warm_start: bool
    verdict: AttemptVerdict
    feedback: str = ""
    figures: AnswerFigures = field(default_factory=AnswerFigures)
    sha: str = ""
    seed: int = 0
    text: str = ""
    verifying: AnswerFigures = field(default_factory=AnswerFigures)

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers, the verifier's included."""
        both = (self.figures, self.verifying)
        return sum(each.prompt_tokens + each.answer_tokens for each in both)

    @property
    def dollars(self) -> float:
        """Dollars, the verifier's included."""
        return self.figures.dollars + self.verifying.dollars


class PassRate(Struct, frozen=True):
    """Attempts of one model at one consultant's questions: all, and those whose answer was taken."""

    skill: str
    model: str
    attempts: int
    accepted: int

    @property
    def share(self) -> float:
        """Accepted attempts of all, from 0.0 to 1.0."""
        return self.accepted / self.attempts if self.attempts else 0.0


def pass_rates(attempts: Iterable[tuple[str, ConsultAttempt]]) -> tuple[PassRate, ...]:
    """Return the pass rate of each model for each consultant, from pairs of a consultant's name and an attempt."""
    found: dict[tuple[str, str], PassRate] = {}
    for skill, attempt in attempts:
        key = (skill, attempt.model or attempt.endpoint)
        before = found.get(key, PassRate(*key, 0, 0))
        accepted = before.accepted + (attempt.verdict is AttemptVerdict.ACCEPT)
        found[key] = PassRate(*key, before.attempts + 1, accepted)
    return tuple(found[key] for key in sorted(found))
