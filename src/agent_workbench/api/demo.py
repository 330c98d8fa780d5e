"""The demo: a sample repository, and a tiny model whose answers are scripted."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.core.invocation import Invocation


async def write_demo(folder: Path, invocation: Invocation) -> Invocation:
    """Write the demo's model and repository, trust its settings, and return the invocation that opens it."""

    def write() -> None:
        from agent_workbench.adapters.demo.sample_repo import write_sample
        from agent_workbench.adapters.llama_cpp.tiny_model import write_tiny_gguf
        from agent_workbench.system.atomic_files import make_directories, storage_error
        from agent_workbench.system.user_dirs import cache_dir

        model = cache_dir() / "demo-model.gguf"
        try:
            make_directories(model.parent)
            write_tiny_gguf(model)
            write_sample(folder, model)
        except OSError as error:
            raise storage_error(f"the demo cannot be written to {error.filename or folder}", error) from error

    await asyncio.to_thread(write)
    demo = replace(invocation, folder=folder, demo=True)
    trust = await (await find_repo(demo)).trust()
    if await trust.question():
        await trust.accept()
    return demo
