"""Says what a server cannot do, a sentence each, from what was found out about it."""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_workbench.core.model import ModelFacts


def with_missing_features(facts: ModelFacts) -> ModelFacts:
    """Return the facts with `off` set by what else they say."""
    return replace(facts, off=tuple(_lacks(facts)))


def _lacks(facts: ModelFacts) -> Iterator[str]:
    if not facts.takes_grammar:
        yield "answers cannot be held to a grammar; they are checked all the same"
    if not facts.counts_tokens:
        yield "tokens are not counted"
    if not facts.context_tokens:
        yield "the size of the context is not known"
    if not facts.tells_cache:
        yield "how much of a prompt was read before is not told"
