"""Detection of a server that ignores grammars: its answer is complete and is not a step."""

from agent_workbench.core.events import GrammarIgnored, ModelAnswered, PromptBuilt
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault

WHAT_CHARS = 200


def grammar_ignored(state: SessionState, answer: ModelAnswered, read: StepCall | StepFault) -> GrammarIgnored | None:
    """Return the evidence that the server ignored the grammar, None if there is none.

    A diff that fits no file is no evidence. Scripted answers are not checked.
    """
    events = (recorded.event for recorded in reversed(state.latest_events))
    asked = next((event for event in events if isinstance(event, PromptBuilt)), None)
    facts = state.model_for(asked.purpose) if asked else None
    if asked is None or not asked.grammar_sha or facts is None or facts.scripted:
        return None
    why = read.reason if isinstance(read, StepFault) else "; ".join(read.mended)
    endpoint = answer.endpoint or asked.endpoint
    return (
        GrammarIgnored(endpoint, answer.step, why[:WHAT_CHARS]) if why and endpoint not in state.ungrammatical else None
    )
