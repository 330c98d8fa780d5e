"""Adapter between the retrieval benchmark's protocol and the product's code search.

    python bench/retrieval_adapter.py REPO WORK

indexes the git repository REPO, keeping what it keeps below WORK, prints `{"ready": true}`, and answers each line
`{"id", "query", "k"}` with `{"id", "files": [best first]}`.
"""

import asyncio
import json
import sys
from pathlib import Path

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import CodeQuery
from agent_workbench.core.settings import RetrievalSettings


async def serve(root: Path, work: Path) -> None:
    """Answer queries until standard input ends."""
    sources = await Repository(root, work / "worktrees").checkout_files()
    retriever = CodeRetriever(RetrievalSettings(), work / "cache")
    try:
        await retriever.build(sources)
        print(json.dumps({"ready": True}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            files = await _files(retriever, sources, asked["query"], asked["k"])
            print(json.dumps({"id": asked["id"], "files": files}), flush=True)
    finally:
        await retriever.close()


async def _files(retriever: CodeRetriever, sources: Sources, query: str, most: int) -> list[str]:
    chunks = await retriever.search(sources, CodeQuery(query), most, complete=False)
    return list(dict.fromkeys(chunk.path for chunk in chunks))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    asyncio.run(serve(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
