"""Findings about the machine and the repository: endpoints, tests of models, the code search, MCP servers."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.errors import UsageError
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.extensions import ToolServerSettings
from agent_workbench.core.settings.models import SHORT_FORM, EndpointSettings, TokenPrice
from agent_workbench.core.state.prompt_reads import PromptReads
from agent_workbench.core.text.amounts import did_you_mean
from agent_workbench.core.tools.spec import ToolSpec

_HOST = re.compile(r"https?://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^:/?#]*)", re.IGNORECASE)
ROLES = (Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.PLANNER)

MIN_WORDS = 3
MAX_ANSWERS = 3
FIRST = 10


class EndpointLine(Struct, frozen=True):
    """One endpoint in one role's chain: its name, its address or file (empty: none), its price.

    `key_variable` is the environment variable of its key (empty: it has none); `key_set`: that variable is set.
    """

    role: str
    name: str
    where: str
    price: TokenPrice = field(default_factory=TokenPrice)
    key_variable: str = ""
    key_set: bool = False


def endpoint_named(settings: Settings, name: str) -> EndpointSettings | None:
    """Return the endpoint that a chain names, None if there is none."""
    if name != SHORT_FORM:
        return dict(settings.endpoints).get(name)
    model = settings.model
    return EndpointSettings(
        url=model.url,
        path=model.path,
        model=model.name,
        server=model.server,
        context_tokens=model.context_tokens,
        threads=model.threads,
        gpu_layers=model.gpu_layers,
        cache_type=model.cache_type,
        api_key_env=model.api_key_env,
    )


def tier_of(settings: Settings, name: str) -> EndpointTier:
    """Return the kind of an endpoint: paid if it has a price, local if this machine serves it, or nothing is set."""
    endpoint = endpoint_named(settings, name) or EndpointSettings()
    if not endpoint.dollars_per_million_tokens.is_free:
        return EndpointTier.PAID
    return (
        EndpointTier.LOCAL if endpoint.path or not endpoint.url or _is_loopback(endpoint.url) else EndpointTier.REMOTE
    )


def tier_of_label(settings: Settings, label: str) -> EndpointTier:
    """Return the kind of the endpoint that signed an answer: `NAME (ADDRESS)`, or an address alone."""
    name = label.partition(" (")[0]
    return tier_of(settings, name if name in dict(settings.endpoints) else SHORT_FORM)


def _is_loopback(url: str) -> bool:
    match = _HOST.match(url)
    host = match[1].lower() if match is not None else ""
    return host in {"localhost", "[::1]"} or host.startswith("127.")


def settings_for(settings: Settings, named: str, is_file: Callable[[str], bool]) -> tuple[str, Settings]:
    """Return the endpoint that a user named on the command line, and settings that define it.

    `named` is an endpoint's name, an address, or a GGUF file. Raises `UsageError` for anything else.
    """
    names = (*dict(settings.endpoints), SHORT_FORM)
    if named in names:
        return named, settings
    if settings.model.url and named.rstrip("/") == settings.model.url.rstrip("/"):
        return SHORT_FORM, settings
    model = replace(settings.model, name="", api_key_env="")
    if named.startswith(("http://", "https://")):
        return SHORT_FORM, replace(settings, model=replace(model, url=named, path=""))
    if is_file(named):
        return SHORT_FORM, replace(settings, model=replace(model, url="", path=named))
    raise UsageError(
        f"{named!r} is not an endpoint, an address or a file{did_you_mean(named, names)}",
        advice=f"endpoints are {', '.join(names)}; an address begins with http:// or https://",
    )


def endpoint_lines(settings: Settings, environ: Mapping[str, str]) -> tuple[EndpointLine, ...]:
    """Return every endpoint of every role, in the order in which they are asked."""
    return tuple(
        _line(role, name, endpoint_named(settings, name) or EndpointSettings(), environ)
        for role, chain in _chains(settings)
        for name in chain
    )


def _chains(settings: Settings) -> Iterator[tuple[str, tuple[str, ...]]]:
    for purpose in ROLES:
        yield purpose.value, settings.chain(purpose)
    if settings.roles.verifier:
        yield "verifier", settings.roles.verifier
    for skill, chain in settings.roles.skills:
        yield f"skills.{skill}", chain


def _line(role: str, name: str, endpoint: EndpointSettings, environ: Mapping[str, str]) -> EndpointLine:
    return EndpointLine(
        role=role,
        name=name,
        where=endpoint.url or endpoint.path,
        price=endpoint.dollars_per_million_tokens,
        key_variable=endpoint.api_key_env,
        key_set=bool(environ.get(endpoint.api_key_env, "").strip()) if endpoint.api_key_env else False,
    )


class Health(StrEnum):
    """State of an examined part."""

    GOOD = "ok"
    WARNING = "warn"
    BAD = "fail"


class Finding(Struct, frozen=True):
    """One finding: the part, its state, what was seen, and what to do (empty if it is good)."""

    part: str
    health: Health
    seen: str
    advice: str = ""


class QuestionKind(StrEnum):
    """Kind of a test question."""

    CALL = "call"
    DIFF = "diff"
    REFLEXION = "reflexion"
    PLAN = "plan"


class TrialAnswer(Struct, frozen=True):
    """One test question with its answer: whether it ended, is well-formed, kept the grammar, and is right.

    `seconds` and `first_seconds` (until the first token) were measured here, `figures` by the server.
    """

    name: str
    kind: QuestionKind
    ended: bool
    valid: bool
    kept: bool
    right: bool
    why: str
    text: str
    thought: str
    seconds: float
    first_seconds: float
    figures: AnswerFigures


class ModelReport(Struct, frozen=True):
    """Report of a model test. `reads` are those of growing prompts (None: the server does not report them).

    `keeps_grammar` and `repeats` are None if they could not be tried; `repeats_cached` is the same with the cache.
    `stopped` is the reason why not everything was asked.
    """

    facts: ModelFacts
    asked: tuple[TrialAnswer, ...]
    reads: PromptReads | None = None
    keeps_grammar: bool | None = None
    repeats: bool | None = None
    repeats_cached: bool | None = None
    stopped: str = ""

    @property
    def valid_share(self) -> float:
        """Share of the well-formed answers."""
        return _share([each.valid for each in self.asked])

    @property
    def right_share(self) -> float:
        """Share of the right answers."""
        return _share([each.right for each in self.asked])

    @property
    def tokens_per_second(self) -> float:
        """Generation speed, 0.0 if unknown."""
        tokens = sum(each.figures.answer_tokens for each in self.asked)
        told = sum(each.figures.answer_seconds for each in self.asked)
        seconds = told or sum(each.seconds - each.first_seconds for each in self.asked)
        return tokens / seconds if seconds > 0 else 0.0

    @property
    def prefill_tokens_per_second(self) -> float:
        """Speed at which the largest uncached prompt part was read, 0.0 if unknown."""
        read = max(self.asked, key=lambda each: each.figures.prompt_tokens - each.figures.cached_tokens, default=None)
        if read is None:
            return 0.0
        seconds = read.figures.prompt_seconds or read.first_seconds
        return (read.figures.prompt_tokens - read.figures.cached_tokens) / seconds if seconds > 0 else 0.0


def _share(held: list[bool]) -> float:
    return sum(held) / len(held) if held else 0.0


class Fitness(Struct, frozen=True):
    """Fitness of a model for a role: `because` is the reason, `but` are its limitations."""

    role: Purpose
    fit: bool
    because: str
    but: tuple[str, ...] = ()


class FileQuestion(Struct, frozen=True):
    """A commit message as a question, and the files that answer it. `strict`: it names none of them."""

    text: str
    answers: tuple[str, ...]
    strict: bool


class SearchFigures(Struct, frozen=True):
    """Figures of one method: recall among the first results, mean reciprocal rank, seconds for one question."""

    method: str
    questions: int
    recall: float
    reciprocal_rank: float
    seconds: float


def file_question(message: str, answers: Sequence[str]) -> FileQuestion | None:
    """Return the question that a past commit asks; None if it says too little or touched too many files."""
    if not 0 < len(answers) <= MAX_ANSWERS or len(re.findall(r"[^\W\d_]{2,}", message)) < MIN_WORDS:
        return None
    said = set(re.findall(r"\w+", message.lower()))
    names = {answer.rsplit("/", 1)[-1].split(".")[0].lower() for answer in answers}
    return FileQuestion(message, tuple(answers), said.isdisjoint(names))


def measure_search(
    method: str, questions: Sequence[FileQuestion], ranked: Sequence[Sequence[str]], seconds: float
) -> SearchFigures:
    """Return the figures of one method; `ranked` are its results for each question, best first.

    `seconds` is the average time for one question.
    """
    recalls, reciprocals = [], []
    for question, files in zip(questions, ranked, strict=True):
        recalls.append(len(set(question.answers).intersection(files[:FIRST])) / len(question.answers))
        hits = [1 / rank for rank, path in enumerate(files, 1) if path in question.answers]
        reciprocals.append(hits[0] if hits else 0.0)
    many = max(1, len(questions))
    return SearchFigures(method, len(questions), sum(recalls) / many, sum(reciprocals) / many, seconds)


class ListedServer(Struct, frozen=True):
    """A server of the settings: the file or variable that names it, and False if it is not trusted and so not used."""

    name: str
    settings: ToolServerSettings
    origin: str
    trusted: bool

    @property
    def started_as(self) -> str:
        """The command line or the address."""
        return self.settings.url or " ".join((self.settings.command, *self.settings.args))

    @property
    def grants(self) -> str:
        """The access beyond the least, as text; empty for a server at an address."""
        entry = self.settings
        if entry.url:
            return ""
        if entry.unconfined:
            return "unconfined"
        parts = [
            f"{word} {', '.join(paths)}" for word, paths in (("reads", entry.read), ("writes", entry.write)) if paths
        ]
        return "; ".join([*parts, "network" if entry.network else "no network"])


class TestedTool(Struct, frozen=True):
    """A tool that a server lists; `problem` says why it is left out, empty if it is used."""

    spec: ToolSpec
    problem: str


class ServerTest(Struct, frozen=True):
    """A server as it was when it was started: its own name and protocol, its tools, and what it did unasked.

    `error` says why there is nothing of this.
    """

    name: str
    about: str = ""
    tools: tuple[TestedTool, ...] = ()
    notices: tuple[str, ...] = ()
    error: str = ""
    advice: str = ""
    seconds: float = 0.0

    @property
    def usable(self) -> bool:
        """True if the server answered and at least one of its tools can be used."""
        return not self.error and any(not tool.problem for tool in self.tools)
