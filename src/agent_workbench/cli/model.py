"""`agent model`: serve a model file, or ask how the configured model is."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, overrides
from agent_workbench.cli.saying import say, say_aside
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.place import Place

if TYPE_CHECKING:
    from agent_workbench.cli.options import Verbs


def add(verbs: "Verbs") -> None:
    """Add the verb with its own verbs."""
    verb = add_verb(verbs, "model", "serve a model file, or ask how the model is", status)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    serving = add_verb(below, "serve", "serve a GGUF file until interrupted", serve)
    serving.add_argument("path", nargs="?", default="", help="the file; model.path of .agent.yml when left out")
    asking = add_verb(below, "status", "say which model answers, and how large its context is", status)
    add_model_flags(asking)
    verb.set_defaults(model=None, model_url=None)


def serve(options: argparse.Namespace) -> int:
    """Serve until interrupted; print the address and how to use it."""
    from agent_workbench.calls.models import embedded_server

    flags = {"model.path": str(Path(options.path).expanduser().resolve())} if options.path else {}

    async def live() -> None:
        server = await embedded_server(Place(Path.cwd(), os.environ, flags), say)
        url, key = await server.start()
        try:
            say(f"listening {url}")
            say(f"  AGENT_API_KEY={key}    export it where you work, and in that repo's .agent.yml set")
            say(f"  model: {{url: {url}, api_key_env: AGENT_API_KEY}}")
            raise await server.ended()
        finally:
            await server.stop()

    asyncio.run(live())
    return ExitCode.DONE


def status(options: argparse.Namespace) -> int:
    """Ask the configured model what it is."""
    from agent_workbench.calls.models import configured_model

    async def ask() -> None:
        model = await configured_model(Place(Path.cwd(), os.environ, overrides(options)), say_aside)
        try:
            facts = await model.observe()
        finally:
            await model.close()
        context = f"{facts.context_tokens} tokens" if facts.context_tokens else "unknown"
        say(f"model     {facts.model}")
        say(f"endpoint  {facts.endpoint}  {facts.build}")
        say(f"context   {context} for one conversation")
        say(f"grammar   {'taken' if facts.takes_grammar else 'not taken; answers are checked all the same'}")

    asyncio.run(ask())
    return ExitCode.DONE
