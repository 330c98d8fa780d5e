"""Features that a server lacks, as sentences for the user."""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_workbench.core.model import ModelFacts


def with_missing_features(facts: ModelFacts) -> ModelFacts:
    """Return the facts with `off` set to the features that are missing."""
    return replace(facts, off=tuple(_lacks(facts)))


def _lacks(facts: ModelFacts) -> Iterator[str]:
    if not facts.takes_grammar:
        yield "answers cannot be held to a grammar; they are still checked"
    if not facts.counts_tokens:
        yield "tokens are not counted"
    if not facts.context_tokens:
        yield "the context size is unknown"
    if not facts.tells_cache:
        yield "the share of the prompt that came from the cache is unknown"
