"""Requests to consultants: their table, arguments and prompt lines, attempts to get an answer, and the log."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType

import msgspec
from msgspec import Struct, field

from agent_workbench.core.errors import UsageError
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.text.sanitizer import without_chat_markers
from agent_workbench.core.tools.strict_json import JsonValue

PROTOCOLS = "consult-protocols"
"""Skill whose text stands before every discipline."""
ROOT, FILES, MODEL, SESSION = "project_root", "files", "model", "session_id"
MAX_LABEL_CHARS = 200
MAX_FIELD_CHARS = 60_000
MAX_FILES = 40

MESSAGE_CHARS = 200
MAX_ENTRIES = 100
MAX_HISTORY_CHARS = 8_000
HISTORY = "## Session history"


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


class ConsultantFacts(Struct, frozen=True):
    """Facts of one consultant.

    `discipline` is the skill that tells it how to work; `phase` is the first line of its prompt. `required` and
    `optional` are its arguments in the order of the prompt's lines. `paths` are those that name a file to judge,
    `outputs` those that name a file that need not exist. The values of `searched` are looked up in the knowledge.
    `about_session`: it judges the log of a session instead of files.
    """

    name: str
    summary: str
    discipline: str
    phase: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    about_session: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """All arguments in the order of the prompt's lines."""
        return (*self.required, *self.optional)

    @property
    def skills(self) -> tuple[str, ...]:
        """Names under which `roles.skills` may set its endpoints, the more exact one first."""
        family = self.name.partition("_")[0]
        return (self.name,) if family == self.name else (self.name, family)


def _consultants() -> Iterator[ConsultantFacts]:
    tdd = "consult-tdd"
    yield ConsultantFacts(
        *("tdd_red", "write one failing test for a behaviour", tdd, "red"),
        required=(ROOT, "spec"),
        optional=("test_cmd",),
        searched=("spec",),
    )
    yield ConsultantFacts(
        *("tdd_green", "propose the least code that makes a failing test pass", tdd, "green"),
        required=(ROOT, "test_path"),
        optional=("test_cmd",),
        paths=("test_path",),
    )
    yield ConsultantFacts(
        *("tdd_refactor", "propose a better shape for code whose tests pass", tdd, "refactor"),
        required=(ROOT, "test_path", "impl_path"),
        optional=("test_cmd",),
        paths=("test_path", "impl_path"),
    )
    yield ConsultantFacts(
        *("review", "review files, or a diff, for defects", "consult-review", "review"),
        required=(ROOT, FILES),
        optional=("context",),
        paths=(FILES,),
        searched=(FILES, "context"),
    )
    yield ConsultantFacts(
        *("debug", "rank hypotheses about an error, each with a way to verify it", "consult-debug", "debug"),
        required=(ROOT, "error"),
        optional=("context",),
        searched=("error", "context"),
    )
    yield ConsultantFacts(
        *("spec", "write a specification from requirements", "consult-spec", "spec"),
        required=(ROOT, "requirements"),
        optional=("output_path", "context"),
        outputs=("output_path",),
        searched=("requirements", "context"),
    )
    yield ConsultantFacts(
        *("retrospective", "find what a session's log teaches", "consult-retrospective", "retrospective"),
        required=(SESSION,),
        about_session=True,
    )
    yield ConsultantFacts(
        *("trainer", "turn a session's log into notes for later tasks", "consult-trainer-reader", "reader"),
        required=(SESSION,),
        about_session=True,
    )


CONSULTANTS: Mapping[str, ConsultantFacts] = MappingProxyType({each.name: each for each in _consultants()})
"""Every consultant by its name."""
OFFERED = tuple(name for name, facts in CONSULTANTS.items() if not facts.about_session)
"""Consultants that a model, or the user in a chat, may ask; those that judge a session are asked outside of it."""
TRAINER_WRITER = "consult-trainer-writer"
"""Discipline of the trainer's second call."""


class ConsultRequest(Struct, frozen=True):
    """Question to a consultant.

    `fields` are its arguments by name; a repo's root may be left out. `files` are the paths to review. `model` names
    the only endpoint to ask (empty: those of the settings). `session` is a free label: consultations with one label
    know of each other (empty: of none). `diff` is a change to judge, and `files` are read as they are after it; `about`
    is the proposal that it belongs to.
    """

    skill: str
    fields: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    model: str = ""
    session: str = ""
    diff: str = ""
    about: str = ""

    def field(self, name: str) -> str:
        """Return the value of an argument, empty if it is not given; files are joined by a comma."""
        if name == FILES:
            return ", ".join(self.files)
        return self.session if name == SESSION else dict(self.fields).get(name, "")


class ConsultAnswer(Struct, frozen=True):
    """Answer of a consultant: markdown, the model that wrote it, and how it came about.

    `reader_analysis` is the first answer of the trainer. `remarks` are what the user should know besides, such as a
    text that was cut.
    """

    text: str
    model: str
    duration_ms: int
    attempts: tuple[ConsultAttempt, ...] = ()
    reader_analysis: str = ""
    number: int = 0
    remarks: tuple[str, ...] = ()


def consultant_named(name: str) -> ConsultantFacts:
    """Return a consultant; raise `UsageError` with those there are."""
    facts = CONSULTANTS.get(name)
    if facts is None:
        raise UsageError(
            f"there is no consultant {quoted(name)}{did_you_mean(name, CONSULTANTS)}",
            advice=f"there are: {', '.join(CONSULTANTS)}",
        )
    return facts


def request_of(skill: str, arguments: Mapping[str, object]) -> ConsultRequest:
    """Return the request with these arguments, as a client names them; raise `UsageError` that names a wrong one."""
    facts = consultant_named(skill)
    known = (*facts.arguments, MODEL, SESSION)
    fields: list[tuple[str, str]] = []
    for name, value in arguments.items():
        if name not in known:
            raise UsageError(
                f"{skill} has no argument {quoted(name)}{did_you_mean(name, known)}",
                advice=f"it takes {', '.join(known)}",
            )
        if name == FILES:
            continue
        if not isinstance(value, str):
            raise UsageError(f"{skill}: {name}: expected a text, found {type(value).__name__}")
        fields.append((name, value))
    given = dict(fields)
    return checked_request(
        ConsultRequest(
            skill,
            tuple((name, value) for name, value in fields if name not in {MODEL, SESSION}),
            _files(skill, arguments.get(FILES, ())),
            given.get(MODEL, ""),
            given.get(SESSION, ""),
        )
    )


def _files(skill: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise UsageError(f"{skill}: {FILES}: expected a list of paths")
    return tuple(value)


def checked_request(request: ConsultRequest) -> ConsultRequest:
    """Return a request that has what its consultant needs, apart from the root; raise `UsageError` else."""
    facts = consultant_named(request.skill)
    for name, _ in request.fields:
        if name not in facts.arguments:
            raise UsageError(
                f"{request.skill} has no argument {quoted(name)}{did_you_mean(name, facts.arguments)}",
                advice=f"it takes {', '.join(facts.arguments)}",
            )
    for name in facts.required:
        if name != ROOT and not request.field(name).strip():
            raise UsageError(f"{request.skill} needs {name}", advice=f"it takes {', '.join(facts.arguments)}")
    for name, value in (*request.fields, (MODEL, request.model)):
        if len(value) > MAX_FIELD_CHARS:
            raise UsageError(
                f"{request.skill}: {name} has {len(value):,} characters, at most {MAX_FIELD_CHARS:,} are allowed",
                advice="shorten it",
            )
    if len(request.files) > MAX_FILES:
        raise UsageError(f"{len(request.files)} files are named, at most {MAX_FILES} are judged at once")
    check_label(request.session)
    return request


def check_label(label: str) -> None:
    """Raise `UsageError` for a session's label that is too long or cannot be shown."""
    if len(label) > MAX_LABEL_CHARS or not all(each.isprintable() for each in label):
        raise UsageError(
            f"{quoted(label)} is no label of a session",
            advice=f"use at most {MAX_LABEL_CHARS} printable characters",
        )


def check_root(request: ConsultRequest, root: str) -> None:
    """Raise `UsageError` if the request names another repository than the one at `root`."""
    named = request.field(ROOT)
    if named and PurePosixPath(named) != PurePosixPath(root):
        raise UsageError(
            f"{ROOT} is {quoted(named)}, but this is {root}",
            advice="name the repository that is served, or leave it out",
        )


def task_lines(request: ConsultRequest, root: str, model: str, clean: Callable[[str], str] = str) -> str:
    """Return the lines of the prompt: the phase, then each argument, with the model before the other optional ones."""
    facts = consultant_named(request.skill)
    values = {name: request.field(name) for name in facts.arguments} | {ROOT: root, MODEL: model}
    # The model stands where the protocol has it: first of the optional ones of `tdd`, last of all others.
    optional = (MODEL, *facts.optional) if facts.name.startswith("tdd") else (*facts.optional, MODEL)
    lines = [f"{name}: {clean(values[name])}" for name in (*facts.required, *optional) if values[name]]
    return "\n".join((f"phase: {facts.phase}", *lines))


def knowledge_words(request: ConsultRequest) -> str:
    """Return the words to search the knowledge for, empty if this consultant gets none."""
    facts = consultant_named(request.skill)
    joined = (" ".join(request.files) if name == FILES else request.field(name) for name in facts.searched)
    return " ".join(filter(None, joined))


def judged_paths(request: ConsultRequest) -> Sequence[str]:
    """Return the paths of the files that the consultant is to judge."""
    facts = consultant_named(request.skill)
    named = (path for name in facts.paths for path in (request.files if name == FILES else (request.field(name),)))
    return tuple(dict.fromkeys(path for path in named if path))


class LogEntry(msgspec.Struct, frozen=True):
    """One consultation as the log tells it. `message` is the beginning of its answer, `timestamp` UTC."""

    session_id: str
    timestamp: str
    skill: str
    phase: str
    project_root: str
    file_path: str
    final_status: str
    model_used: str
    duration_ms: int
    message: str
    attempts: tuple[ConsultAttempt, ...] = ()


def log_json(entries: Iterable[LogEntry]) -> str:
    """Return the newest entries as indented JSON, without the texts of attempts that were not taken."""
    return json.dumps(log_rows(entries), ensure_ascii=False, indent=2)


def log_rows(entries: Iterable[LogEntry]) -> list[JsonValue]:
    """Return the newest entries as JSON values, as `log_json` has them."""
    rows: list[JsonValue] = []
    for entry in tuple(entries)[-MAX_ENTRIES:]:
        row = msgspec.to_builtins(entry)
        row["attempts"] = [
            {
                "model": each.model or each.endpoint,
                "tier": each.tier.value,
                "duration_ms": each.duration_ms,
                "warm_start": each.warm_start,
                "verdict": each.verdict.value,
                "feedback": each.feedback,
            }
            for each in entry.attempts
        ]
        rows.append(row)
    return rows


def history_block(entries: Iterable[LogEntry], phase: str) -> str:
    """Return the block about earlier consultations, without those of the current phase; empty if there are none."""
    told = [_line(entry) for entry in entries if entry.phase != phase][-MAX_ENTRIES:]
    while told and sum(map(len, told)) > MAX_HISTORY_CHARS:
        told.pop(0)
    return "\n".join((HISTORY, "", *told, "")) if told else ""


def _line(entry: LogEntry) -> str:
    about = f" {entry.file_path}" if entry.file_path else ""
    message = " ".join(entry.message.split())
    return without_chat_markers(f"- {entry.skill} ({entry.phase}){about}, {entry.final_status}: {message}")
