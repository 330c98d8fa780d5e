"""Survey of the repository for a plan: the code and the tests nearest to the goal, files, and test commands."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from itertools import islice

from agent_workbench.core.events import PlanSurveyed
from agent_workbench.core.model import Purpose
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.path_kinds import is_test
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.state.work import Planning
from agent_workbench.engine.answer.model_request import observe_model
from agent_workbench.engine.planning.plan_request import ANSWER_TOKENS
from agent_workbench.engine.runtime.publisher import show_index
from agent_workbench.engine.runtime.session_context import SessionContext

FOUND_PIECES = 40
LISTED_FILES = 100
MOST_CODE_TOKENS, TEST_SHARE = 6_000, 4
UNKNOWN_CONTEXT_TOKENS = 8_192
OTHER_TOKENS = 2_000
"""Room for rules, file names and tasks."""
CHARS_PER_TOKEN = 3
FIRST_FILES, FIRST_LINES, FIRST_BYTES = 4, 40, 4_000
"""Files, and lines of each, that are shown where the search finds nothing in them."""
_SOURCE = re.compile(
    r"\.(py|pyi|js|mjs|cjs|jsx|ts|tsx|go|rs|java|kt|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|lua|ex|exs|erl|hs|ml|clj|sh)$"
)


async def survey_repo(session: SessionContext, planning: Planning) -> None:
    """Record what the planner sees of the repository: tracked files alone, as they are in the user's checkout."""
    session.publisher.show_activity("waiting for the model")
    facts = await observe_model(session, Purpose.PLANNER)
    session.publisher.show_activity("searching the code for the plan")
    workspaces = session.ports.workspaces
    own = (f"{session.settings.memory.dir.strip('/')}/", ".agent.yml")
    tracked = [path for path in await workspaces.list_tracked() if not path.startswith(own)]
    sources = await workspaces.checkout_files()
    found = await _found(session, sources, planning.goal)
    # The checkout has untracked files too, which may be private.
    known = set(tracked)
    pieces = [chunk for chunk in found if chunk.path in known]
    pieces += await _beginnings(sources, [path for path in tracked if path not in {chunk.path for chunk in pieces}])
    context = facts.context_tokens or UNKNOWN_CONTEXT_TOKENS
    reserved = OTHER_TOKENS + ANSWER_TOKENS * (2 if facts.thinks else 1)
    room = max(0, min(MOST_CODE_TOKENS, context - reserved))
    tests = _fitting((chunk for chunk in pieces if is_test(chunk.path)), room // TEST_SHARE)
    code = _fitting((chunk for chunk in pieces if not is_test(chunk.path)), room - room // TEST_SHARE)
    nearest = dict.fromkeys(chunk.path for chunk in pieces)
    files = tuple(islice(dict.fromkeys((*nearest, *tracked)), LISTED_FILES))
    commands = filter(None, (session.settings.test_command, session.settings.lint_command))
    await session.record(PlanSurveyed(code, tests, tuple(commands), files, max(0, len(tracked) - len(files))))


async def _found(session: SessionContext, sources: Sources, goal: str) -> Sequence[Chunk]:
    """Return the pieces found for the goal; the progress of the index is published meanwhile."""
    retriever = session.ports.retriever
    progress = asyncio.create_task(show_index(session.publisher, retriever, sources))
    try:
        return await retriever.search(sources, CodeQuery(goal), FOUND_PIECES)
    finally:
        progress.cancel()
        await asyncio.gather(progress, return_exceptions=True)


async def _beginnings(sources: Sources, paths: Sequence[str]) -> list[Chunk]:
    """Return the first lines of some files: few words of a goal may be in the code of a small repository."""
    code = islice((path for path in paths if _SOURCE.search(path) and not is_test(path)), FIRST_FILES)
    tests = islice((path for path in paths if _SOURCE.search(path) and is_test(path)), FIRST_FILES)
    pieces = []
    for path, data in (await sources.read_files([*code, *tests])).items():
        text = data[:FIRST_BYTES].decode("utf-8", "replace")
        lines = text.split("\n")[:FIRST_LINES]
        if "\0" not in text and text.strip():
            pieces.append(Chunk(path, 1, len(lines), "\n".join(lines).rstrip("\n"), 0.0))
    return pieces


def _fitting(chunks: Iterable[Chunk], room: int) -> tuple[Chunk, ...]:
    """Return the pieces, best first, that fit into `room` tokens."""
    kept: list[Chunk] = []
    for chunk in chunks:
        tokens = chunk.tokens or len(chunk.text) // CHARS_PER_TOKEN
        if tokens <= room:
            kept.append(chunk)
            room -= tokens
    return tuple(kept)
