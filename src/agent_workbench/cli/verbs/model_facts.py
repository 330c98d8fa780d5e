"""What a model said of itself, as lines for people."""

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.model import ModelFacts


def fact_lines(facts: ModelFacts) -> tuple[str, ...]:
    """Return a line for each thing that was found out, and one for each that the server cannot do."""
    context = f"{facts.context_tokens} tokens for one conversation" if facts.context_tokens else "unknown"
    return (
        f"model     {facts.model}",
        f"endpoint  {facts.endpoint}  {facts.build}".rstrip(),
        f"context   {context}",
        f"grammar   {'taken' if facts.takes_grammar else 'not taken; answers are checked all the same'}",
        f"tokens    {'counted' if facts.counts_tokens else 'not counted'}",
        f"cache     {'told' if facts.tells_cache else 'not told'}",
        f"thinking  {'yes' if facts.thinks else 'no'}",
        *(f"off       {lack}" for lack in facts.off),
    )


def spoken(error: WorkbenchError) -> str:
    """Return an error with what to do about it."""
    return f"{error} ({error.advice})" if error.advice else str(error)
