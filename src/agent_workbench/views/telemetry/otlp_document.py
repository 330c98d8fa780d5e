"""A session as one document in the JSON form of OTLP: a span for each task, answer of the model, and action.

Form: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionStarted,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.events.codec import JsonObject
from agent_workbench.core.events.work import ActionResult
from agent_workbench.core.ids import SessionId
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.core.version import __version__
from agent_workbench.views.telemetry import attribute_names as names

SERVICE = "agent-workbench"
_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_NANOSECONDS = 1_000_000_000

Value = str | int | float | bool | Sequence[str] | None


def otlp_document(session: SessionId, events: Sequence[Recorded], *, content: bool = False) -> JsonObject:
    """Return the document. Only with `content` it has what model and tools said, else names and figures alone."""
    resource: dict[str, Value] = {names.SERVICE: SERVICE, names.SERVICE_VERSION: __version__}
    spans: list[JsonValue] = list(_Spans(session, content=content).of(events))
    scope: JsonObject = {"scope": {"name": SERVICE, "version": __version__}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}


class _Spans:
    """Spans of one session. Each has the id of the event that began it, so that two exports are equal."""

    def __init__(self, session: SessionId, *, content: bool) -> None:
        self._session = session
        self._content = content
        self._trace = sha256(f"trace {session}".encode()).hexdigest()[:32]
        self._task: Recorded | None = None
        self._prompt: Recorded | None = None
        self._proposed: dict[str, ActionProposed] = {}
        self._decided: dict[str, ActionDecided] = {}
        self._started: dict[str, Recorded] = {}

    def of(self, events: Sequence[Recorded]) -> Iterable[JsonObject]:
        """Yield a span when what it stands for has ended; at the end of the journal also what has not."""
        for recorded in events:
            match recorded.event:
                case TaskStarted():
                    self._task = recorded
                case TaskFinished() as finished:
                    yield from self._task_span(recorded, finished.status)
                    self._task = None
                case PromptBuilt():
                    self._prompt = recorded
                case ModelAnswered() as answered:
                    yield from self._chat_span(recorded, answered, "stop", answered.text)
                case ModelInterrupted() as cut:
                    yield from self._chat_span(recorded, cut, str(cut.cause), cut.partial)
                case ActionProposed() as proposed:
                    self._proposed[proposed.proposal.id] = proposed
                case ActionDecided() as decided:
                    self._decided[decided.proposal_id] = decided
                case ActionStarted() as started:
                    self._started[started.proposal_id] = recorded
                case ActionFinished() as done:
                    yield from self._tool_span(recorded, done)
                case _:
                    continue
        if events and self._task is not None:
            yield from self._task_span(events[-1], None)

    def _task_span(self, end: Recorded, status: TaskStatus | None) -> Iterable[JsonObject]:
        start = self._task
        if start is None or not isinstance(start.event, TaskStarted):
            return
        attributes: dict[str, Value] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT: SERVICE,
            names.TASK: start.event.task,
            names.STATUS: str(status or TaskStatus.IN_PROGRESS),
        }
        failed = status is TaskStatus.FAILED
        yield self._span(f"{names.INVOKE_AGENT} {SERVICE}", _INTERNAL, start, end, attributes, failed=failed)

    def _chat_span(
        self, end: Recorded, answer: ModelAnswered | ModelInterrupted, finish: str, text: str
    ) -> Iterable[JsonObject]:
        start, self._prompt = self._prompt, None
        if start is None or not isinstance(start.event, PromptBuilt):
            return
        prompt = start.event
        model = answer.model if isinstance(answer, ModelAnswered) else ""
        message = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": finish}]
        attributes: dict[str, Value] = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: answer.endpoint or prompt.endpoint or None,
            names.REQUEST_MODEL: model or None,
            names.RESPONSE_MODEL: model or None,
            names.REQUEST_TEMPERATURE: prompt.sampling.temperature,
            names.REQUEST_TOP_P: prompt.sampling.top_p,
            names.REQUEST_TOP_K: prompt.sampling.top_k,
            names.REQUEST_SEED: prompt.seed or None,
            names.REQUEST_MAX_TOKENS: prompt.answer_tokens or None,
            names.FINISH_REASONS: (finish,),
            **_usage(answer.figures),
            names.OUTPUT_MESSAGES: json.dumps(message) if self._content else None,
        }
        failed = isinstance(answer, ModelInterrupted)
        yield self._span(f"{names.CHAT} {model}".strip(), _CLIENT, start, end, attributes, failed=failed)

    def _tool_span(self, end: Recorded, done: ActionFinished) -> Iterable[JsonObject]:
        start, proposed = self._started.pop(done.proposal_id, None), self._proposed.get(done.proposal_id)
        if start is None or proposed is None:
            return
        proposal, decided = proposed.proposal, self._decided.get(done.proposal_id)
        attributes: dict[str, Value] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: proposal.tool,
            names.TOOL_CALL: proposal.id,
            names.DECISION: str(decided.verdict) if decided else None,
            names.DECIDED_BY: decided.by if decided else None,
            names.TOOL_ARGUMENTS: proposal.text if self._content else None,
            names.TOOL_RESULT: done.observation if self._content else None,
        }
        failed = done.result is not ActionResult.OK
        if failed:
            attributes[names.ERROR] = str(done.result)
        yield self._span(f"{names.EXECUTE_TOOL} {proposal.tool}", _INTERNAL, start, end, attributes, failed=failed)

    def _span(
        self, name: str, kind: int, start: Recorded, end: Recorded, attributes: Mapping[str, Value], *, failed: bool
    ) -> JsonObject:
        proof: dict[str, Value] = {
            names.CONVERSATION: self._session,
            names.EVENT: end.seq,
            names.EVENT_HASH: end.hash or None,
        }
        parent = self._task if self._task is not start else None
        return {
            "traceId": self._trace,
            "spanId": self._span_id(start),
            **({"parentSpanId": self._span_id(parent)} if parent is not None else {}),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": _nanoseconds(start.time),
            "endTimeUnixNano": _nanoseconds(end.time),
            "attributes": _attributes({**attributes, **proof}),
            "status": {"code": _ERROR if failed else _OK},
        }

    def _span_id(self, start: Recorded) -> str:
        return sha256(f"span {self._session} {start.seq}".encode()).hexdigest()[:16]


def _usage(figures: AnswerFigures) -> dict[str, Value]:
    return {
        names.INPUT_TOKENS: figures.prompt_tokens,
        names.CACHED_TOKENS: figures.cached_tokens,
        names.OUTPUT_TOKENS: figures.answer_tokens,
        names.DOLLARS: figures.dollars or None,
    }


def _attributes(values: Mapping[str, Value]) -> list[JsonValue]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Value) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [_value(each) for each in value or ()]}}


def _nanoseconds(time: str) -> str:
    """Return the nanoseconds since 1970 of a journal's time, which has microseconds."""
    moment = datetime.fromisoformat(time)
    return str(int(moment.timestamp()) * _NANOSECONDS + moment.microsecond * 1_000)
