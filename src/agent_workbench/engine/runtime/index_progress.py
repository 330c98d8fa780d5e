"""Progress of the index of the open workspace."""

import asyncio

from agent_workbench.core.ports.code_search import Retriever
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.engine.runtime.publisher import UpdatePublisher

BUSY_SECONDS = 0.25
# Vectors follow the files, and other sessions may drop them.
COMPLETE_SECONDS = 2.0


async def show_index(publisher: UpdatePublisher, retriever: Retriever, sources: Sources) -> None:
    """Publish the status of the index until cancelled, then that there is none."""
    try:
        while True:
            status = retriever.status(sources)
            publisher.show_index(status)
            await asyncio.sleep(COMPLETE_SECONDS if status.complete and status.files else BUSY_SECONDS)
    finally:
        publisher.show_index(None)
