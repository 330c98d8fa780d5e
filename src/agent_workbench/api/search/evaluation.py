"""Evaluation of the code search on the user's own repository."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.diagnostics.retrieval_quality import SearchFigures
from agent_workbench.core.errors import RepoError
from agent_workbench.core.invocation import Invocation

Say = Callable[[str], None]


class SearchEvaluation(Struct, frozen=True):
    """Figures of each method: for the questions that name no file they ask for (`strict`), and for all.

    `base` is the commit whose `files` were searched.
    """

    base: str
    files: int
    strict: tuple[SearchFigures, ...]
    all: tuple[SearchFigures, ...]


async def evaluate_search(invocation: Invocation, commits: int, say: Say) -> SearchEvaluation:
    """Measure on the last `commits` commits, in the tree before them; `say` is called with the progress.

    The checkout is not touched, and what is written is removed. Raises `RepoError` without a repository or with too
    short a history.
    """
    from agent_workbench.bootstrap.code_search import evaluate_code_search

    repo, settings = await trusted_repo(invocation)
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as scratch:
        say("laying out the files of the past")
        sources = await repo.repository.past_tree(commits, Path(scratch, "tree"))
        found = await evaluate_code_search(settings, invocation.environ, Path(scratch, "cache"), sources, say)
        if found is None:
            raise RepoError(
                f"none of the last {commits} commits changed 1 to 3 source files that were there before",
                advice="ask for more of the past with --commits",
            )
        return SearchEvaluation(sources.base, found.files, found.strict, found.all)
