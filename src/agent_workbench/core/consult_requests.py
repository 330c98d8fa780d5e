"""Requests to consultants: the table of consultants, the arguments of each, and the lines of their prompts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.core.consult_attempts import ConsultAttempt
from agent_workbench.core.errors import UsageError
from agent_workbench.core.text.amounts import did_you_mean, quoted

PROTOCOLS = "consult-protocols"
"""Skill whose text stands before every discipline."""
ROOT, FILES, MODEL, SESSION = "project_root", "files", "model", "session_id"
MAX_LABEL_CHARS = 200
MAX_FIELD_CHARS = 60_000
MAX_FILES = 40


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
