"""Records of the audit from the events of one session, in their order."""

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    ConsultantAnswered,
    ModelAnswered,
    ModelInterrupted,
    PlanAnswered,
    ProposalReplaced,
    Recorded,
    SessionStarted,
    TaskCommitted,
    TaskFinished,
    TaskRouted,
    TaskStarted,
)
from agent_workbench.core.history.audit_records import (
    MAX_SUBJECT_CHARS,
    AuditCost,
    AuditDecision,
    AuditEntry,
    AuditRecord,
    utc_time,
)
from agent_workbench.core.ids import NO_SESSION, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.proposals import UNASKED, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import sanitize_line

AUDITED_KINDS = frozenset(
    {
        "session_started",
        "task_routed",
        "task_started",
        "action_proposed",
        "proposal_replaced",
        "action_decided",
        "model_answered",
        "model_interrupted",
        "plan_answered",
        "consultant_answered",
        "task_committed",
        "task_finished",
    }
)
"""Kinds of the events that `AuditTrail` reads; all others may be left out."""


class WaitingProposal(Struct, frozen=True):
    """The kind of an undecided proposal, and what it is about."""

    kind: Permission
    subject: str


class AuditTrail(Struct):
    """Reader of one session's events: what the records of later events need of the earlier ones.

    It can be stored and continued when the journal has grown.
    """

    session: SessionId = NO_SESSION
    task: TaskId = TaskId("")
    service: str = ""
    intent: str = ""
    worker: str = ""
    commit: str = ""
    waiting: dict[ProposalId, WaitingProposal] = field(default_factory=dict)

    def add(self, recorded: Recorded) -> tuple[AuditRecord, ...]:
        """Return the records of the next event; raise `ValueError` if its time is none in UTC."""
        match recorded.event:
            case SessionStarted(session=session):
                self.session = session
            case TaskRouted(decision=decision):
                self.worker = _short(decision.worker)
            case TaskStarted(task=task, definition=definition):
                self.task, self.commit, self.waiting = task, "", {}
                self.service, self.intent = definition.service, str(definition.intent or "")
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal):
                self.waiting = {proposal.id: WaitingProposal(proposal.kind, _subject(proposal))}
            case ActionDecided() as decided if decided.by != UNASKED:
                return self._decision(recorded, decided)
            case ModelAnswered() | ModelInterrupted() | PlanAnswered() as answered:
                return self._cost(recorded, answered.endpoint, answered.model, answered.figures)
            case ConsultantAnswered() as answered:
                return self._consultation(recorded, answered)
            case TaskCommitted(task=task, commit=commit):
                self.task, self.commit = task, commit
            case TaskFinished() as finished:
                return (self._entry(recorded, finished),)
            case _:
                pass
        return ()

    def _entry(self, recorded: Recorded, finished: TaskFinished) -> AuditEntry:
        return AuditEntry(
            self.session,
            finished.task,
            finished.status,
            utc_time(recorded.time),
            recorded.seq,
            recorded.hash,
            self.service,
            self.intent,
            _short(finished.reason),
            self.worker,
            self.commit if finished.task == self.task else "",
        )

    def _decision(self, recorded: Recorded, decided: ActionDecided) -> tuple[AuditDecision, ...]:
        about = self.waiting.get(decided.proposal_id)
        if about is None:
            return ()
        return (
            AuditDecision(
                self.session,
                self.task,
                decided.proposal_id,
                about.kind,
                decided.verdict,
                _short(decided.by),
                utc_time(recorded.time),
                recorded.seq,
                recorded.hash,
                _short(decided.via),
                _short(decided.reason),
                about.subject,
                self.service,
                self.intent,
                self.worker,
            ),
        )

    def _consultation(self, recorded: Recorded, answered: ConsultantAnswered) -> tuple[AuditCost, ...]:
        """Return one record for each model that was asked: a line's records differ in endpoint or model."""
        sums: dict[tuple[str, str], AnswerFigures] = {}
        for each in answered.attempts:
            key = each.endpoint, each.model
            for figures in (each.figures, each.verifying):
                sums[key] = _sum(sums.get(key, AnswerFigures()), figures)
        return tuple(cost for key, figures in sums.items() for cost in self._cost(recorded, *key, figures))

    def _cost(self, recorded: Recorded, endpoint: str, model: str, figures: AnswerFigures) -> tuple[AuditCost, ...]:
        if not (figures.prompt_tokens or figures.answer_tokens or figures.dollars):
            return ()
        return (
            AuditCost(
                self.session,
                self.task,
                utc_time(recorded.time),
                recorded.seq,
                recorded.hash,
                _short(endpoint),
                _short(model),
                figures.prompt_tokens,
                figures.answer_tokens,
                figures.dollars,
                self.service,
                self.intent,
                self.worker,
            ),
        )


def joined_costs(records: Iterable[AuditRecord], apart_from: int = 0) -> tuple[AuditRecord, ...]:
    """Return the records with one cost for all answers of the same task, day, endpoint and model.

    Answers before the event `apart_from` are not joined with later ones.
    """
    others: list[AuditRecord] = []
    costs: dict[object, AuditCost] = {}
    for each in records:
        if isinstance(each, AuditCost):
            key = _shared_by(each, apart_from)
            costs[key] = _joined(costs[key], each) if key in costs else each
        else:
            others.append(each)
    return (*others, *costs.values())


def possible_records(records: Iterable[AuditRecord], apart_from: int = 0) -> frozenset[AuditRecord]:
    """Return what `joined_costs` returns for the records, and for each beginning of them."""
    found: set[AuditRecord] = set()
    costs: dict[object, AuditCost] = {}
    for each in records:
        if isinstance(each, AuditCost):
            key = _shared_by(each, apart_from)
            costs[key] = _joined(costs[key], each) if key in costs else each
            found.add(costs[key])
        else:
            found.add(each)
    return frozenset(found)


def _shared_by(cost: AuditCost, apart_from: int) -> tuple[object, ...]:
    about = (cost.task, cost.service, cost.intent, cost.worker)
    return (cost.seq < apart_from, cost.time[:10], cost.endpoint, cost.model, *about)


def _joined(one: AuditCost, later: AuditCost) -> AuditCost:
    return replace(
        later,
        prompt_tokens=one.prompt_tokens + later.prompt_tokens,
        answer_tokens=one.answer_tokens + later.answer_tokens,
        dollars=one.dollars + later.dollars,
        answers=one.answers + later.answers,
    )


def _sum(one: AnswerFigures, other: AnswerFigures) -> AnswerFigures:
    return AnswerFigures(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        answer_tokens=one.answer_tokens + other.answer_tokens,
        dollars=one.dollars + other.dollars,
    )


def _subject(proposal: Proposal) -> str:
    return _short(", ".join(proposal.paths) or next(iter(proposal.commands), "") or proposal.text)


def _short(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return sanitize_line(first, MAX_SUBJECT_CHARS)
