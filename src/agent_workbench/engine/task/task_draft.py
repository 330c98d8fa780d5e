"""Task proposed from words or the user's own prompt: goal, scope and checks; and the edits that a task names itself."""

import asyncio
import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.consult_requests import OFFERED
from agent_workbench.core.custom_prompts import NamedCall, expand, named_call
from agent_workbench.core.errors import UsageError, error_text
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import MOST_SAID_CHARS
from agent_workbench.core.outcomes import PromptExpanded, PromptsListed
from agent_workbench.core.patch.paths import literal_glob
from agent_workbench.core.plan import PathScope, Plan, Task, TaskDraft, next_id
from agent_workbench.core.ports.extensions import CustomPrompts
from agent_workbench.core.ports.search import Retriever
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.path_kinds import is_document, is_test
from agent_workbench.core.repo.project_commands import command_of, is_part_of, narrowed
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.settings import Settings
from agent_workbench.core.task_words import drafted_goal, named_checks
from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.text.mentions import looks_like_path, mention_of, mentioned_range, mentions
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.engine.proposals import propose_draft
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS
from agent_workbench.engine.runtime.tool_context import Ports
from agent_workbench.engine.task.code_lookup import MOST_CHARS, MOST_LINES, long_mention
from agent_workbench.engine.task.recovery import roll_back
from agent_workbench.engine.tools.task_edits import TOOL, draft_edits

MOST_FOUND = 8
MOST_TESTS = 4
TITLE_CHARS = 200
MOST_LOOKS, LOOK_SECONDS = 20, 0.05
SETTINGS_FILE = ".agent.yml"
ANYWHERE = ("**",)
NO_CHECKS = "no test_command is set: the model proposes a check when the task starts"
UNTRUSTED_CHECK = (
    "the test_command of .agent.yml is not trusted, so it is not run (`agent trust` shows it and asks): "
    "the model proposes a check when the task starts"
)
_TEST_COMMAND = re.compile(rb"^test_command[ \t]*:[ \t]*(?!''|\"\"|~|null\b)[^\s#]", re.MULTILINE)

MOST_REMARKS = 2
HOW = "a prompt is a file such as memory/commands/NAME.md; words for the model must not begin with a slash and a name"


class DraftSources(Struct, frozen=True):
    """Facts of the repository that a task is proposed from: its files, those found for the words, the settings."""

    files: Collection[str]
    found: Sequence[str]
    settings: Settings


async def draft_task(
    ports: Ports,
    settings: Settings,
    sources: Sources,
    files: Collection[str],
    words: str,
    *,
    complete: bool = False,
    seen: bool = False,
) -> TaskDraft:
    """Return the task that the words ask for, or the prompt that they call, under the next free id.

    The code search uses what is indexed so far, unless `complete`. A task that is `seen` before it starts has the
    checks that its words name; those of any other may be an issue's. Raises `UsageError` for words that are no task,
    `PlanError` for a plan that cannot be read, and as `expand_words`.
    """
    said = clean_words(ports.redacted((await expand_words(ports.prompts, words)).words))
    plan = await ports.plans.read() if await ports.plans.content_sha() else Plan()
    retriever = ports.retriever
    built = complete or await _is_indexed(retriever, sources)
    chunks = await retriever.search(sources, CodeQuery(said), MOST_FOUND, complete=built)
    draft = propose_task(said, next_id(plan.tasks), DraftSources(files, _paths_of(chunks), settings), seen=seen)
    long = await _too_long(sources, draft.mentions)
    kept = tuple(each for each in draft.mentions if each not in long)
    settled = [
        UNTRUSTED_CHECK if each == NO_CHECKS and await _sets_test_command(sources) else each for each in draft.remarks
    ]
    remarks = [*settled, *(long_mention(each, lines) for each, lines in long.items())]
    if not built and not draft.mentions:
        remarks.append("the code is being indexed: the scope is a first guess")
    return TaskDraft(draft.task, kept, tuple(remarks))


async def _is_indexed(retriever: Retriever, sources: Sources) -> bool:
    """Return True if the files are indexed; an index that was saved is read in the moment that this waits for it."""
    for look in range(MOST_LOOKS):
        status = retriever.status(sources)
        if status.complete and status.files:
            return True
        if not look:
            retriever.prepare(sources)
        await asyncio.sleep(LOOK_SECONDS)
    return False


async def _sets_test_command(sources: Sources) -> bool:
    """Return True if the repository's own settings name a test command; without trust it does not count."""
    contents = await sources.read_files((SETTINGS_FILE,))
    return _TEST_COMMAND.search(contents.get(SETTINGS_FILE, b"")) is not None


async def _too_long(sources: Sources, asked: Sequence[str]) -> dict[str, int]:
    """Return the mentions of whole files that are too long to be pinned, with their number of lines."""
    contents = await sources.read_files(asked)
    lines = {each: data.removesuffix(b"\n").count(b"\n") + 1 for each, data in contents.items()}
    return {each: found for each, found in lines.items() if found > MOST_LINES or len(contents[each]) > MOST_CHARS}


def clean_words(words: str) -> str:
    """Return the words without what no plan may hold; raise `UsageError` if there are none, or too many."""
    text = words.strip()
    if not text:
        raise UsageError("there is nothing to do in that", advice="say in a few words what is to be done")
    if len(text.split()) == 1:
        raise UsageError(f"{quoted(text)} is one word, and no task", advice="say in a few words what is to be done")
    if len(text) > MOST_SAID_CHARS:
        raise UsageError(
            f"that has {len(text):,} characters, a task has at most {MOST_SAID_CHARS:,}",
            advice="put it into a file of the repository and mention that with @",
        )
    return sanitize(text).strip()


def propose_task(words: str, new: TaskId, sources: DraftSources, *, seen: bool = False) -> TaskDraft:
    """Return a task for these words. The files that they mention decide; else those that the search found.

    One that is `seen` before it starts has the checks that its words name, beside the test command.
    """
    asked = mentions(words)
    named = {each: place.path for each in asked if (place := mentioned_range(each, sources.files)) is not None}
    strangers = [each for each in asked if each not in named and looks_like_path(each)]
    paths = tuple(dict.fromkeys(named.values()))
    documents = bool(paths) and all(is_document(path) and not is_test(path) for path in paths)
    tests = () if documents else _tests_of(paths, sources.files)
    command = narrowed(command_of(sources.settings.test_command, paths), tests)
    said = named_checks(words) if seen else ()
    tested = any(is_part_of(each, sources.settings.test_command) for each in said)
    checks = (*said, *((command,) if command.strip() and not tested else ()))
    description, rest = _title(words)
    shown = "" if documents or not checks else drafted_goal(words, tests[0] if len(tests) == 1 else "", checks[0])
    task = Task(
        new,
        description,
        "\n".join(filter(None, (rest, shown))),
        accept_tests=checks,
        scope=PathScope(_scope(paths, sources, documents=documents)),
    )
    remarks = [f"{mention_of(each)} is no file here, so it is not pinned" for each in strangers]
    return TaskDraft(task, tuple(named), (*remarks, *(() if checks else (NO_CHECKS,))))


def _title(words: str) -> tuple[str, str]:
    """Return the first line as the description of a task, and the rest; a long first line is cut, and in the rest."""
    first, _, rest = words.partition("\n")
    first = " ".join(first.lstrip("#").split())
    if len(first) <= TITLE_CHARS:
        return first, rest.strip()
    return f"{first[:TITLE_CHARS].rpartition(' ')[0] or first[:TITLE_CHARS]} …", words


def _tests_of(paths: Sequence[str], files: Collection[str]) -> tuple[str, ...]:
    """Return the test files among the paths, and those named after the others."""
    names = {f"test_{PurePosixPath(path).stem}" for path in paths} | {
        f"{PurePosixPath(path).stem}_test" for path in paths
    }
    found = (path for path in sorted(files) if PurePosixPath(path).stem in names and is_test(path))
    return tuple(dict.fromkeys((*(path for path in paths if is_test(path)), *found)))[:MOST_TESTS]


def _scope(paths: Sequence[str], sources: DraftSources, *, documents: bool) -> tuple[str, ...]:
    """Return globs for the top folders of the files that matter, and of the tests; all files where that is unknown."""
    wanted = paths or sources.found
    folders = [path.partition("/")[0] for path in wanted if "/" in path]
    alone = [path for path in wanted if "/" not in path]
    if not wanted or (alone and not all(map(is_document, alone))) or not "".join(wanted).isprintable():
        return ANYWHERE
    tests = () if documents else (path.partition("/")[0] for path in sorted(sources.files) if _is_in_test_folder(path))
    globs = (*(f"{literal_glob(folder)}/**" for folder in (*folders, *tests)), *map(literal_glob, alone))
    return tuple(dict.fromkeys(globs))


def _is_in_test_folder(path: str) -> bool:
    folder, slash, _ = path.partition("/")
    return bool(slash) and folder.isprintable() and is_test(f"{folder}/x")


def _paths_of(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chunk.path for chunk in chunks))


async def list_prompts(prompts: CustomPrompts) -> PromptsListed:
    """Return the prompts that can be called; one with a consultant's name cannot."""
    found = await prompts.list()
    usable = tuple(each for each in found if not each.problem and each.name not in OFFERED)
    others = [each for each in found if each not in usable]
    told = [f"{each.file}: {each.problem or f'/{each.name} asks a consultant'}" for each in others[:MOST_REMARKS]]
    more = [f"{len(others) - MOST_REMARKS} more cannot be used"] if len(others) > MOST_REMARKS else []
    return PromptsListed(usable, "; ".join(sanitize_line(each, 200) for each in (*told, *more)))


async def expand_words(prompts: CustomPrompts, words: str, *, in_chat: bool = False) -> PromptExpanded:
    """Return the words that a call stands for; other words are returned as they are.

    Consultants and skills have names too, which a message of a chat may call. Raises `UsageError` for a name that is
    none, `ConfigError` and `TrustError` for a prompt that cannot be used.
    """
    call = named_call(words)
    if call is None:
        return PromptExpanded(words)
    prompt = None if call.name in OFFERED else await prompts.load(call.name)
    if prompt is None:
        if not in_chat:
            raise await _unknown(prompts, call)
        return PromptExpanded(words)
    expanded = expand(prompt.text, call.words)
    if len(expanded) > MOST_SAID_CHARS:
        raise UsageError(
            f"{prompt.file} has {len(expanded):,} characters with your words, at most {MOST_SAID_CHARS:,} can be said",
            advice="put a part of it into a file of the repository and mention that with @",
        )
    return PromptExpanded(expanded, prompt.file)


async def _unknown(prompts: CustomPrompts, call: NamedCall) -> UsageError:
    if call.name in OFFERED:
        how = f'agent chat "/{call.name} …" asks it; the words of a task must not begin so'
        return UsageError(f"/{call.name} asks a consultant, and is no task", advice=how)
    known = [each.name for each in (await list_prompts(prompts)).prompts]
    return UsageError(f"there is no prompt /{call.name}{did_you_mean(call.name, known)}", advice=HOW)


async def propose_edits(session: SessionContext) -> None:
    """Propose the task's edits as one diff; end the task as failed if one of them does not fit."""
    session.publisher.show_activity("making the edits of the task")
    try:
        draft = await draft_edits(await session.tool_context())
    except REFUSALS as refusal:
        await roll_back(session, f"the edits do not fit: {error_text(refusal)}")
        return
    await propose_draft(session, TOOL, draft)
